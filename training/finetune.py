"""Fine-tune a pretrained network on a snapshot: its weights under a new head, all of it or the head alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from model.console import say
from model.errors import BadInput
from model.run import Run
from model.snapshot import Snapshot
from model.types import Sample, Split, Taxonomy
from training.data import encode
from training.kinds import BertKind, Kind
from training.loop import Options
from training.pretrained import OFFLINE, Start, resolve
from training.recipe import Prepared, by_loop, train
from training.start_checks import check_architecture


@dataclass(frozen=True, slots=True)
class FinetuneOptions:
    """init: `offline`, a hub id, a folder or a pretraining run. max_length: tokens a text is cut to.

    freeze: train the head alone. from_scratch: random weights in place of the start's. limit: train samples at most.
    """

    init: str = "offline"
    freeze: bool = False
    from_scratch: bool = False
    max_length: int = 128
    dropout: float = 0.1
    limit: int | None = None
    loop: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        if self.freeze and self.from_scratch:
            raise BadInput("--freeze with --from-scratch would train a head on random weights; leave one out")


@dataclass(frozen=True, slots=True)
class FinetuneRecipe:
    """How the network of `kind` is fine-tuned for `taxonomy`, from the weights `start`."""

    taxonomy: Taxonomy
    kind: Kind
    options: FinetuneOptions
    start: Start
    seed: int

    @classmethod
    def resolve(
        cls, taxonomy: Taxonomy, kind: Kind, options: FinetuneOptions, *, seed: int, cache: Path
    ) -> "FinetuneRecipe":
        """The recipe with the weights that `options.init` stands for; `cache` keeps them.

        Raises:
            BadInput: they can't be had, are of another architecture, or too short for the texts.
        """
        if options.init == OFFLINE and kind.arch != "bert":
            raise BadInput(
                f"--arch {kind.arch} has no offline start; pretrain one (wenlei pretrain --arch {kind.arch}) or take a "
                "model that you have, and give it as --init"
            )
        start = resolve(options.init, cache=cache)
        check_architecture(start.folder, init=options.init, arch=kind.arch, max_length=options.max_length)
        return cls(taxonomy=taxonomy, kind=kind, options=options, start=start, seed=seed)

    @property
    def arch(self) -> str:
        return self.kind.arch

    @property
    def config(self) -> dict[str, Any]:
        start = {"name": self.start.name, "sha256": self.start.sha256}
        return {**asdict(self.options), **self.kind.config, "start": start}

    @property
    def limit(self) -> int | None:
        return self.options.limit

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Encode the splits, and read the weights.

        Raises:
            BadInput: the start's tokenizer or weights can't be used.
        """
        opened = self.kind.open(self.start, max_length=self.options.max_length)
        datasets = {split: encode(samples, opened.tokenizer, self.taxonomy) for split, samples in splits.items()}
        train_set, dev_set = datasets[Split.TRAIN], datasets[Split.DEV]
        tokens = train_set.lengths.mean()
        say(
            f"训练 {len(train_set):,} 条，开发 {len(dev_set):,} 条，平均 {tokens:.0f} 个词元 | "
            f"{len(train_set):,} train and {len(dev_set):,} dev samples, {tokens:.0f} tokens on average"
        )
        opened.check(train_set)
        torch.manual_seed(self.seed)
        network = opened.classifier(
            n_labels=len(self.taxonomy), dropout=self.options.dropout, from_scratch=self.options.from_scratch
        )
        if self.options.freeze:
            network.freeze_encoder()

        def save(folder: Path) -> None:
            network.save(folder)
            opened.save(folder)

        loop = self.options.loop
        objective = self.kind.objective(self.taxonomy, loop, train_set)
        learn = by_loop(cast(nn.Module, network), datasets, objective, options=loop, seed=self.seed, save=save)
        return Prepared(tokenizer=opened.tokenizer, datasets=datasets, train=learn)

    def settled(self, cost: Mapping[str, Any]) -> "FinetuneRecipe":  # noqa: ARG002  nothing of it is chosen on dev
        """The same: every training stops where it is best on dev."""
        return self


def finetune(
    snapshot: Snapshot,
    *,
    options: FinetuneOptions,
    seed: int,
    out: Path,
    cache: Path,
    kind: Kind = BertKind(),
) -> Run:
    """Fine-tune, keep the weights that did best on dev, calibrate and evaluate; the run is in `out`.

    A run that was broken off there goes on. `cache` keeps pretrained weights.

    Raises:
        BadInput: `options.init` can't be had or is of another architecture.
        BadSnapshot: train or dev is empty.
        BadRun: `out` holds another run.
    """
    recipe = FinetuneRecipe.resolve(snapshot.taxonomy, kind, options, seed=seed, cache=cache)
    return train(snapshot, recipe, out=out)
