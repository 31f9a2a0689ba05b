"""Fine-tune BERT on a snapshot: pretrained encoder, pooling, linear head."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from model.architectures.bert import BertClassifier, Pooling
from model.console import say
from model.errors import BadInput
from model.files import read_json
from model.run import Run, start_run
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from training.data import LENGTH_MULTIPLE
from training.evaluate import conclude, load_splits
from training.loop import Options, train
from training.pretrained import resolve

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


@dataclass(frozen=True, slots=True)
class BertOptions:
    """init: `offline`, a hub id or a folder. max_length: tokens a text is cut to. limit: train samples at most."""

    init: str = "offline"
    pooling: Pooling = Pooling.MEAN
    freeze: bool = False
    max_length: int = 128
    dropout: float = 0.1
    limit: int | None = None
    loop: Options = field(default_factory=Options)


def train_bert(snapshot: Snapshot, *, options: BertOptions, seed: int, out: Path, cache: Path) -> Run:
    """Fine-tune, keep the weights that did best on dev, calibrate and evaluate; the run is in `out`.

    A run that was broken off there goes on. `cache` keeps pretrained weights.

    Raises:
        BadInput: `options.init` can't be had or is no BERT.
        BadSnapshot: train or dev is empty.
        BadRun: `out` holds another run.
    """
    start = resolve(options.init, cache=cache)
    check_architecture(start, options)
    run = start_run(
        out,
        arch="bert",
        config={**asdict(options), "normaliser": snapshot.normaliser.to_json()},
        seed=seed,
        snapshot=snapshot.hash,
        snapshot_path=snapshot.path,
        taxonomy=snapshot.taxonomy,
    )
    run.model_path.mkdir(exist_ok=True)
    for name in TOKENIZER_FILES:
        if (start / name).exists():
            shutil.copyfile(start / name, run.model_path / name)
    tokenizer = load_tokenizer(run.model_path, max_length=options.max_length)
    train_set, dev_set, test_set = load_splits(snapshot, tokenizer, limit=options.limit)
    say(f"{len(train_set):,} train and {len(dev_set):,} dev samples, {train_set.lengths.mean():.0f} tokens on average")
    torch.manual_seed(seed)
    classifier = BertClassifier.start(
        start, n_labels=len(snapshot.taxonomy), pooling=options.pooling, dropout=options.dropout
    )
    if options.freeze:
        classifier.freeze_encoder()
    progress = train(
        classifier,
        train_set=train_set,
        dev_set=dev_set,
        taxonomy=snapshot.taxonomy,
        options=options.loop,
        seed=seed,
        checkpoint=run.checkpoint_path,
    )
    classifier.save(run.model_path)
    cost = {
        "seconds": round(progress.seconds, 1),
        "steps": progress.step,
        "best_step": progress.best_step,
        "train_samples": len(train_set),
        "history": progress.history,
    }
    run = conclude(run, classifier, dev_set=dev_set, test_set=test_set, cost=cost)
    shutil.rmtree(run.checkpoint_path)
    return run


def check_architecture(folder: Path, options: BertOptions) -> None:
    """Refuse a start that is no BERT, or too short for the texts.

    Raises:
        BadInput: the model type is another, or it has fewer positions than `max_length`.
    """
    config = read_json(folder / "config.json")
    if (found := config.get("model_type")) != "bert":
        raise BadInput(f"--init {options.init} is a {found} model, --arch bert needs model_type bert")
    positions = config["max_position_embeddings"] // LENGTH_MULTIPLE * LENGTH_MULTIPLE
    if options.max_length > positions:
        raise BadInput(
            f"--max-length {options.max_length} is more than the {positions} positions of {options.init}; "
            "give at most that many"
        )
