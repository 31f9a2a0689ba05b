"""How an architecture is trained, and one training of it, from a snapshot to a finished run."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from torch import nn

from model.files import only_process
from model.run import Run, start_run
from model.snapshot import Snapshot
from model.tokenization.base import Tokenizer
from model.types import Sample, Split
from training.data import Dataset, read_splits
from training.evaluate import conclude, judge
from training.loop import Objective, Options, Training, cost_of


@dataclass(frozen=True, slots=True)
class Trained:
    """A network after its training. cost: what that took and found. save: writes all that loads it into a folder."""

    classifier: nn.Module
    cost: dict[str, Any]
    save: Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A training that can begin. datasets: its splits, encoded by `tokenizer`. train: takes the checkpoint's folder."""

    tokenizer: Tokenizer
    datasets: dict[Split, Dataset]
    train: Callable[[Path], Trained]


class Recipe(Protocol):
    """An architecture with all that was chosen for its training; with `seed` and a snapshot, `config` re-makes it."""

    @property
    def arch(self) -> str: ...

    @property
    def config(self) -> dict[str, Any]: ...

    @property
    def limit(self) -> int | None: ...

    @property
    def seed(self) -> int: ...

    def prepare(self, splits: Mapping[Split, Sequence[Sample]]) -> Prepared:
        """Encode the splits by what train says, and refuse, before anything is written, what can't be trained."""
        ...

    def settled(self, cost: Mapping[str, Any]) -> Self:
        """The same recipe, with what a training that cost `cost` has chosen on dev; it isn't chosen again."""
        ...


def by_loop(
    classifier: nn.Module,
    datasets: Mapping[Split, Dataset],
    objective: Objective[Dataset],
    *,
    options: Options,
    seed: int,
    save: Callable[[Path], None],
) -> Callable[[Path], Trained]:
    """What trains `classifier` in the train loop, for `Prepared.train`; save: as of `Trained`."""
    train_set, dev_set = datasets[Split.TRAIN], datasets[Split.DEV]

    def learn(checkpoint: Path) -> Trained:
        progress = Training(
            classifier=classifier,
            train_set=train_set,
            dev_set=dev_set,
            objective=objective,
            options=options,
            seed=seed,
            checkpoint=checkpoint,
        ).run()
        return Trained(classifier=classifier, cost=cost_of(progress), save=save)

    return learn


def train(snapshot: Snapshot, recipe: Recipe, *, out: Path) -> Run:
    """Train, calibrate and evaluate; the run is in `out`. A training that was broken off there goes on.

    Raises:
        BadSnapshot: all of train has the same labels, or train or dev is empty.
        BadRun: `out` holds another run.
    """
    started = time.monotonic()
    prepared = recipe.prepare(read_splits(snapshot, limit=recipe.limit))
    run = begin(snapshot, recipe, out=out)
    with only_process(run.path):
        trained = prepared.train(run.checkpoint_path)
        run.model_path.mkdir(exist_ok=True)
        trained.save(run.model_path)
    n_samples = len(prepared.datasets.pop(Split.TRAIN))
    cost = {"seconds": round(time.monotonic() - started, 1), **trained.cost, "train_samples": n_samples}
    finished = conclude(run, judge(trained.classifier, prepared.datasets), cost=cost)
    shutil.rmtree(run.checkpoint_path, ignore_errors=True)  # not every architecture needs one
    return finished


def begin(snapshot: Snapshot, recipe: Recipe, *, out: Path, **config: Any) -> Run:
    """Start the run of `recipe` in `out`, or go on with it; `config` is what was chosen beside the recipe.

    Raises:
        BadRun: `out` holds another run.
    """
    return start_run(
        Run(
            path=out,
            arch=recipe.arch,
            config={**recipe.config, "normaliser": snapshot.normaliser.to_json(), **config},
            seed=recipe.seed,
            snapshot=snapshot.hash,
            snapshot_path=str(snapshot.path.absolute()),
            taxonomy=snapshot.taxonomy,
        )
    )
