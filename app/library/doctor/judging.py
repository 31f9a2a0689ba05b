"""The predictions that the doctor judges labels by: of a training by folds, on a snapshot of this very library."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.library.doctor.census import UNLABELLED, Census
from model.errors import BadRun
from model.metrics import BoolArray
from model.near import NearSettings
from model.predictions import NO_FOLD, Predictions, read_predictions
from model.run import Run
from model.types import IntArray

FOLDS = "folds"  # the key of a run's config that says how many
# Which of many near texts are compared depends on the others, so that a library of other samples may know pairs that
# the folds did not. Up to this share of the samples is left out for that; more, or an exact copy, is a leak.
MOST_LEFT_OUT = 0.001


@dataclass(frozen=True, slots=True)
class Judged:
    """What a run says about the library as it is today.

    predictions: of samples that are in the library and have the labels that the run knew them by. gone, relabelled:
    how many others there are. leaked: how many are left out because a near duplicate of theirs was trained on.
    """

    run: Run
    predictions: Predictions
    gone: int
    relabelled: int
    leaked: int


def read_judged(path: Path, census: Census, snapshots: Collection[str]) -> Judged:
    """Read the run in `path`, made by folds on one of the library's `snapshots`, given by their hashes.

    Raises:
        BadRun: there is none, or it is not finished; it was not made by folds; it is of another library, or the
        taxonomy has changed since; its folds part near duplicates; a score is not a number from 0 to 1.
    """
    run = Run.open(path)
    name = census.name
    again = f"wenlei train --snapshot HASH --folds 5 --out {path}-folds"
    if not run.config.get(FOLDS):
        raise BadRun(f"{path} was not trained by folds, so that it has seen the labels it would judge; run {again}")
    if run.snapshot not in snapshots:
        raise BadRun(
            f"{path} has predictions of another snapshot: {run.snapshot} was not frozen from library {name!r}; take "
            f"one of wenlei library snapshots --library {name}, then {again}"
        )
    if run.taxonomy != census.library.definition.taxonomy:
        raise BadRun(
            f"the taxonomy of library {name!r} is not what it was when {path} was trained; run wenlei library snapshot "
            f"--library {name}, then {again}"
        )
    found = read_predictions(run.path, run.taxonomy)
    places = {sample_id: place for place, sample_id in enumerate(census.ids)}
    rows = np.array([places.get(sample_id, -1) for sample_id in found.ids], dtype=np.int64)
    is_there = rows >= 0
    codes = {frozenset(labels): code for code, labels in enumerate(census.label_lists)}
    known = np.array([codes.get(frozenset(labels), UNLABELLED - 1) for labels in found.gold], dtype=np.int64)
    is_same = is_there & (census.codes[rows] == known) if len(rows) else is_there
    has_leaked = _leaked(census, found.folds, rows, path)
    return Judged(
        run=run,
        predictions=_some(found, is_same & ~has_leaked),
        gone=int(np.count_nonzero(~is_there)),
        relabelled=int(np.count_nonzero(is_there & ~is_same)),
        leaked=int(np.count_nonzero(is_same & has_leaked)),
    )


def _leaked(census: Census, folds: IntArray, rows: IntArray, path: Path) -> BoolArray:
    """(n,), whose near duplicates were trained on by the model that judged it. rows: places in the census, or -1.

    Raises:
        BadRun: copies are, or more than `MOST_LEFT_OUT`.
    """
    absent = NO_FOLD - 1
    fold_of = np.full(len(census.ids), absent)
    fold_of[rows[rows >= 0]] = folds[rows >= 0]
    pairs, alike = census.near.pairs, census.near.similarities
    sides = fold_of[pairs]
    # dev and test are judged by all models, each of which was trained on all folds but one
    parted = (sides != absent).all(axis=1) & (sides[:, 0] != sides[:, 1]) & (alike >= NearSettings().threshold)
    leaking = np.flatnonzero(parted)
    seen = np.zeros(len(census.ids), dtype=np.bool_)
    seen[pairs[leaking]] = True
    if len(leaking) and (alike[leaking].max() == 1 or np.count_nonzero(seen) > MOST_LEFT_OUT * len(rows)):
        worst = leaking[np.argmax(alike[leaking])]
        left, right = (census.ids[place] for place in pairs[worst])
        places = " and ".join("dev or test" if fold == NO_FOLD else f"fold {fold}" for fold in fold_of[pairs[worst]])
        raise BadRun(
            f"{path}: near duplicates are in {places}: samples {left} and {right}, similarity {alike[worst]:.2f}, so "
            f"that models have seen what they judge ({len(leaking):,} such pairs); freeze the library again with "
            f"wenlei library snapshot --library {census.name}, then train by folds again"
        )
    result: BoolArray = (rows >= 0) & seen[rows] if len(rows) else np.zeros(0, dtype=np.bool_)
    return result


def _some(predictions: Predictions, which: BoolArray) -> Predictions:
    """Those predictions alone."""
    places = np.flatnonzero(which)
    return Predictions(
        ids=[predictions.ids[place] for place in places],
        splits=[predictions.splits[place] for place in places],
        gold=[predictions.gold[place] for place in places],
        scores=predictions.scores[places],
        folds=predictions.folds[places],
    )
