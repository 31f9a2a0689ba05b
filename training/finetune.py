"""Fine-tune BERT on a snapshot: pretrained encoder, pooling, linear head."""

import shutil
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from model.architectures.bert import BertClassifier, Pooling
from model.console import say
from model.errors import BadInput
from model.files import only_process, read_json
from model.run import Run, start_run
from model.snapshot import Snapshot
from model.tokenization import subwords
from model.tokenization.subwords import SubwordTokenizer
from training.data import LENGTH_MULTIPLE, Dataset
from training.evaluate import conclude, load_splits
from training.loop import Options, Training
from training.onnx_bert import ACTIVATIONS
from training.pretrained import MODEL_TYPE, Start, resolve

MAX_UNKNOWN = 0.2  # share of tokens; a tokenizer that knows fewer is not one for these texts
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
    check_architecture(start.folder, options)
    tokenizer = subwords.load(start.folder, max_length=options.max_length)
    train_set, dev_set, test_set = load_splits(snapshot, tokenizer, limit=options.limit)
    say(f"{len(train_set):,} train and {len(dev_set):,} dev samples, {train_set.lengths.mean():.0f} tokens on average")
    check_tokenizer(tokenizer, train_set, start)
    torch.manual_seed(seed)
    classifier = BertClassifier.start(
        start.folder, n_labels=len(snapshot.taxonomy), pooling=options.pooling, dropout=options.dropout
    )
    if options.freeze:
        classifier.freeze_encoder()
    run = start_run(
        out,
        arch="bert",
        config={
            **asdict(options),
            "start": {"name": start.name, "sha256": start.sha256},
            "normaliser": snapshot.normaliser.to_json(),
        },
        seed=seed,
        snapshot=snapshot.hash,
        snapshot_path=snapshot.path,
        taxonomy=snapshot.taxonomy,
    )
    run.model_path.mkdir(exist_ok=True)
    for name in TOKENIZER_FILES:
        if (start.folder / name).exists():
            shutil.copyfile(start.folder / name, run.model_path / name)
    training = Training(
        classifier=classifier,
        train_set=train_set,
        dev_set=dev_set,
        taxonomy=snapshot.taxonomy,
        options=options.loop,
        seed=seed,
        checkpoint=run.checkpoint_path,
    )
    with only_process(run.path):
        progress = training.run()
        classifier.save(run.model_path)
    cost = {
        "seconds": round(progress.seconds, 1),
        "steps": progress.step,
        "best_step": progress.best_step,
        "train_samples": len(train_set),
        "device": progress.device,
        "precision": progress.precision,
        "threads": torch.get_num_threads(),
        "history": progress.history,
    }
    finished = conclude(run, classifier, dev_set=dev_set, test_set=test_set, cost=cost)
    shutil.rmtree(run.checkpoint_path)
    return finished


def check_architecture(folder: Path, options: BertOptions) -> None:
    """Refuse a start that is no BERT, or too short for the texts.

    Raises:
        BadInput: the model type is another, or it has fewer positions than `max_length`.
    """
    try:
        config = read_json(folder / "config.json")
        longest = int(config["max_position_embeddings"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"--init {options.init}: config.json is not that of a BERT ({error!r}); save it again") from None
    if (found := config.get("model_type")) != MODEL_TYPE or config.get("is_decoder"):
        kind = f"{found} decoder" if config.get("is_decoder") else found
        raise BadInput(f"--init {options.init} is a {kind} model, --arch bert needs an encoder of type {MODEL_TYPE}")
    if (activation := config.get("hidden_act", "gelu")) not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise BadInput(f"--init {options.init} has hidden_act {activation}, which can't be exported; only {known} can")
    positions = longest // LENGTH_MULTIPLE * LENGTH_MULTIPLE  # batches are padded to a multiple
    if options.max_length > positions:
        raise BadInput(
            f"--max-length {options.max_length} is more than the {positions} positions of {options.init}; "
            "give at most that many"
        )


def check_tokenizer(tokenizer: SubwordTokenizer, train_set: Dataset, start: Start) -> None:
    """Refuse a tokenizer that is not the encoder's, or that does not know the texts' characters.

    Raises:
        BadInput: it has more tokens than the encoder has embeddings, or most of the texts are unknown to it.
    """
    rows = read_json(start.folder / "config.json")["vocab_size"]
    if tokenizer.vocabulary_size > rows:
        raise BadInput(
            f"the tokenizer of {start.name} has {tokenizer.vocabulary_size:,} tokens, its encoder {rows:,} embeddings; "
            "they don't belong together"
        )
    tokens = np.concatenate([encoded.inputs["input_ids"] for encoded in train_set.encoded])
    if (unknown := float((tokens == tokenizer.unknown_id).mean())) > MAX_UNKNOWN:
        raise BadInput(f"{unknown:.0%} of the texts' tokens are unknown to {start.name}; take a start for Chinese")
