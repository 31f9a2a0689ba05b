"""Train by folds: every train sample is judged by a model that has seen neither it nor its near duplicates.

What comes of it is `predictions.parquet`, by which wrong labels are found; the models are not kept. Dev and test are
judged by all models together, and no model was trained on them. A broken-off training goes on with the fold that it
was at.
"""

import gc
import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open

from model.console import progress, say
from model.errors import BadRun
from model.files import only_process
from model.run import Run
from model.snapshot import Snapshot
from model.types import FloatArray, IntArray, Sample, Split, preview
from training.checkpoint import write_tensors
from training.data import check_labels_differ, encode, read_splits
from training.evaluate import Judged, conclude, judge
from training.folds import in_one_fold, near_folds
from training.recipe import Prepared, Recipe, begin

COST = "cost"  # the key of a fold's file under which its cost is kept
MOST_NAMED = 50  # labels in a warning; a taxonomy may have thousands


def train_by_folds(snapshot: Snapshot, recipe: Recipe, *, n_folds: int, out: Path) -> Run:
    """Train `n_folds` models and keep what they say of what they were not trained on; the run is in `out`.

    The scores of a dev or test sample come from the mean of all models' logits. Temperature and thresholds are fitted
    on dev.

    Raises:
        BadInput: there are more folds than groups of near duplicates.
        BadSnapshot: train or dev is empty, or without one of the folds all of train has the same labels.
        BadRun: `out` holds another run, or a fold in it can't be read.
    """
    splits = read_splits(snapshot, limit=recipe.limit)
    train = splits[Split.TRAIN]
    with progress("近重复 near duplicates", len(train)) as advance:
        folds = near_folds(train, n_folds=n_folds, seed=recipe.seed, on_texts=advance)
    for fold in range(n_folds):
        check_labels_differ(without(train, folds, fold), f"train samples outside fold {fold + 1} of {n_folds}")
    warn_of_labels(in_one_fold(train, folds))

    def prepare(fold: int) -> Prepared:
        say(f"折 fold {fold + 1}/{n_folds}: {np.count_nonzero(folds == fold):,} samples held out")
        return recipe.prepare({**splits, Split.TRAIN: without(train, folds, fold)})

    # What can't be trained is refused before anything is written.
    prepared = None if (out / "run.json").exists() else prepare(0)
    run = begin(snapshot, recipe, out=out, folds=n_folds)
    with only_process(run.path):
        for fold in range(n_folds):
            if not fold_file(run, fold).exists():
                train_fold(prepared or prepare(fold), run, fold, held=inside(train, folds, fold))
                prepared = None
                gc.collect()  # a training loop and its optimizer hold each other: gigabytes, for a BERT
            if fold == 0:
                recipe = recipe.settled(read_cost(run, fold))
        judged = combine(run, splits, folds)
        costs = [read_cost(run, fold) for fold in range(n_folds)]
        cost = {
            "seconds": round(sum(each["seconds"] for each in costs), 1),
            "train_samples": len(train),
            "folds": costs,
        }
        finished = conclude(run, judged, cost=cost)
        shutil.rmtree(run.checkpoint_path)
    return finished


def inside(samples: Sequence[Sample], folds: IntArray, fold: int) -> list[Sample]:
    """The samples that are in `fold`."""
    return [sample for sample, its_fold in zip(samples, folds, strict=True) if its_fold == fold]


def without(samples: Sequence[Sample], folds: IntArray, fold: int) -> list[Sample]:
    """The samples that are not in `fold`."""
    return [sample for sample, its_fold in zip(samples, folds, strict=True) if its_fold != fold]


def warn_of_labels(labels: Sequence[str]) -> None:
    """Tell which labels no model can find in the samples that have them."""
    if labels:
        say(
            f"注意：有 {len(labels)} 个标签的训练样本都在同一折里，评判它们的模型从没见过，请多导入一些 | warning: "
            f"{len(labels)} labels have all their train samples in one fold, being too few or near "
            "duplicates of each other, so that the model which judges these has never seen the label; import more of: "
            f"{preview(labels, MOST_NAMED)}"
        )


def train_fold(prepared: Prepared, run: Run, fold: int, *, held: Sequence[Sample]) -> None:
    """Train without the samples `held`, and write what is said of them, of dev and of test."""
    started = time.monotonic()
    checkpoint = run.checkpoint_path / f"fold-{fold}"
    trained = prepared.train(checkpoint)
    n_samples = len(prepared.datasets[Split.TRAIN])
    datasets = {**prepared.datasets, Split.TRAIN: encode(held, prepared.tokenizer, run.taxonomy)}
    logits = {
        split.value: torch.from_numpy(judged.logits) for split, judged in judge(trained.classifier, datasets).items()
    }
    cost = {"seconds": round(time.monotonic() - started, 1), **trained.cost, "train_samples": n_samples}
    write_tensors(fold_file(run, fold), logits, metadata={COST: json.dumps(cost)})
    shutil.rmtree(checkpoint, ignore_errors=True)  # not every architecture needs one


def combine(run: Run, splits: Mapping[Split, Sequence[Sample]], folds: IntArray) -> dict[Split, Judged]:
    """Put the folds together: of each train sample the logits of the one model that had not seen it, else the mean."""
    n_folds = run.config["folds"]
    logits = {split: np.zeros((len(samples), len(run.taxonomy)), np.float32) for split, samples in splits.items()}
    for fold in range(n_folds):
        for split, values in read_logits(run, fold).items():
            if split is Split.TRAIN:
                logits[split][folds == fold] = values
            else:
                logits[split] += values / n_folds
    return {
        split: Judged(samples, logits[split], folds if split is Split.TRAIN else None)
        for split, samples in splits.items()
    }


def fold_file(run: Run, fold: int) -> Path:
    """Where the logits of a fold lie until the run is done."""
    return run.checkpoint_path / f"fold-{fold}.safetensors"


def read_logits(run: Run, fold: int) -> dict[Split, FloatArray]:
    """What the model of `fold` said, (n_samples, n_labels): of train, the samples that were held out.

    Raises:
        BadRun: the file can't be read.
    """
    with opened(fold_file(run, fold)) as file:
        return {Split(name): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  it is no dict


def read_cost(run: Run, fold: int) -> dict[str, Any]:
    """What the training of `fold` took and found.

    Raises:
        BadRun: the file can't be read.
    """
    with opened(fold_file(run, fold)) as file:
        cost: dict[str, Any] = json.loads(file.metadata()[COST])
        return cost


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A fold's file, open."""
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (OSError, SafetensorError) as error:
        raise BadRun(f"{path} can't be read: {error}; remove it, then run the same command again") from None
