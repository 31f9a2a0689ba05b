"""Fine-tune BERT on a snapshot: pretrained encoder, pooling, linear head."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import torch

from model.architectures.bert import BertClassifier, Pooling
from model.console import say
from model.run import Run
from model.snapshot import Snapshot
from model.tokenization import subwords
from model.types import Sample, Split, Taxonomy
from training.classifying import Classifying
from training.data import encode
from training.loop import Options, Progress, Training
from training.pretrained import Start, resolve
from training.recipe import Prepared, Trained, train
from training.start_checks import check_architecture, check_tokenizer

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


@dataclass(frozen=True, slots=True)
class BertRecipe:
    """How BERT is fine-tuned for `taxonomy`, from the weights `start`."""

    taxonomy: Taxonomy
    options: BertOptions
    start: Start
    seed: int
    arch: ClassVar[str] = "bert"

    @classmethod
    def resolve(cls, taxonomy: Taxonomy, options: BertOptions, *, seed: int, cache: Path) -> "BertRecipe":
        """The recipe with the weights that `options.init` stands for; `cache` keeps them.

        Raises:
            BadInput: they can't be had or are of no BERT.
        """
        start = resolve(options.init, cache=cache)
        check_architecture(start.folder, init=options.init, arch=cls.arch, max_length=options.max_length)
        return cls(taxonomy=taxonomy, options=options, start=start, seed=seed)

    @property
    def config(self) -> dict[str, Any]:
        return {**asdict(self.options), "start": {"name": self.start.name, "sha256": self.start.sha256}}

    @property
    def limit(self) -> int | None:
        return self.options.limit

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Encode the splits, and read the weights.

        Raises:
            BadInput: the start's tokenizer or weights can't be used.
        """
        tokenizer = subwords.load(self.start.folder, max_length=self.options.max_length)
        datasets = {split: encode(samples, tokenizer, self.taxonomy) for split, samples in splits.items()}
        train_set, dev_set = datasets[Split.TRAIN], datasets[Split.DEV]
        tokens = train_set.lengths.mean()
        say(f"{len(train_set):,} train and {len(dev_set):,} dev samples, {tokens:.0f} tokens on average")
        check_tokenizer(tokenizer, train_set, self.start)
        torch.manual_seed(self.seed)
        classifier = BertClassifier.start(
            self.start.folder,
            n_labels=len(self.taxonomy),
            pooling=self.options.pooling,
            dropout=self.options.dropout,
        )
        if self.options.freeze:
            classifier.freeze_encoder()

        def learn(checkpoint: Path) -> Trained:
            progress = Training(
                classifier=classifier,
                train_set=train_set,
                dev_set=dev_set,
                objective=Classifying(self.taxonomy, smoothing=self.options.loop.smoothing),
                options=self.options.loop,
                seed=self.seed,
                checkpoint=checkpoint,
            ).run()
            return Trained(classifier=classifier, cost=cost_of(progress), save=save)

        def save(folder: Path) -> None:
            classifier.save(folder)
            for name in TOKENIZER_FILES:
                if (self.start.folder / name).exists():
                    shutil.copyfile(self.start.folder / name, folder / name)

        return Prepared(tokenizer=tokenizer, datasets=datasets, train=learn)

    def settled(self, cost: Mapping[str, Any]) -> "BertRecipe":  # noqa: ARG002  nothing of it is chosen on dev
        """The same: every training stops where it is best on dev."""
        return self


def train_bert(snapshot: Snapshot, *, options: BertOptions, seed: int, out: Path, cache: Path) -> Run:
    """Fine-tune, keep the weights that did best on dev, calibrate and evaluate; the run is in `out`.

    A run that was broken off there goes on. `cache` keeps pretrained weights.

    Raises:
        BadInput: `options.init` can't be had or is no BERT.
        BadSnapshot: train or dev is empty.
        BadRun: `out` holds another run.
    """
    return train(snapshot, BertRecipe.resolve(snapshot.taxonomy, options, seed=seed, cache=cache), out=out)


def cost_of(progress: Progress) -> dict[str, Any]:
    """What a training took, for `run.json`."""
    return {
        "seconds": round(progress.seconds, 1),
        "steps": progress.step,
        "best_step": progress.best_step,
        "device": progress.device,
        "precision": progress.precision,
        "threads": torch.get_num_threads(),
        "history": progress.history,
    }
