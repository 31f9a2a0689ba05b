"""Automatic cleaning: labels that are probably wrong are dropped or replaced, in one sweep that can be undone.

What a person has said stands, however sure the models are. So do the labels of dev and test: by them models are
measured, and what measures a model is not for a model to decide. People look at those.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import sqlalchemy as sa

from app.library.doctor.census import Census
from app.library.doctor.label_errors import Verdicts, judge_labels, still_standing
from app.library.sweeping import apply_sweep
from app.store.sweeps import SweptLabels
from model.errors import BadInput
from model.predictions import Predictions
from model.run import Run
from model.types import IntArray, Split


class Action(StrEnum):
    """What becomes of a label that is probably wrong."""

    DROP = "drop"  # the sample has none any more and waits for one
    RELABEL = "relabel"  # it gets the proposed ones


@dataclass(frozen=True, slots=True)
class Applied:
    """What cleaning did. found: labels that are so probably wrong. sweep: None where nothing was written.

    changed: of these, samples that it changes, or would. kept: those left out for a person's word, or whose label has
    changed meanwhile. held_out: those left to people, for they are in dev or test.
    """

    action: Action
    min_confidence: float
    found: int
    changed: int
    kept: int
    held_out: int
    sweep: int | None = None


def apply_label_errors(
    engine: sa.Engine,
    census: Census,
    run: Run,
    predictions: Predictions,
    *,
    action: Action,
    min_confidence: float,
    by: str,
    note: str | None = None,
    dry_run: bool = False,
    on_samples: Callable[[int], None] = lambda _: None,
) -> Applied:
    """Drop or replace labels in train that are at least so probably wrong, or better replaced.

    min_confidence: 0.5 to 1; to drop a label it has to be so probably wrong, to replace it the proposed ones have to be
    so probably right. by: who has it done. dry_run: tells what would be done. `on_samples` hears of samples that are
    done.

    Raises:
        UnknownLibrary: there is no such library any more. UnknownLabel: the predictions are of other labels. BadInput:
        the confidence can't be one; the taxonomy has changed since the census, or persons have spoken about all of it
        meanwhile. Nothing is written then.
    """
    check_min_confidence(min_confidence)
    verdicts = judge_labels(predictions, run.taxonomy, still_standing(census, predictions))
    places = find_certain(verdicts, action, min_confidence).tolist()
    rows = [_swept(verdicts, place, action) for place in places if verdicts.splits[place] is Split.TRAIN]
    held_out = len(places) - len(rows)
    persons = {census.ids[row] for row in np.flatnonzero(census.by_person).tolist()}
    kept = sum(row.sample_id in persons for row in rows)
    if dry_run or kept == len(rows):
        return Applied(action, min_confidence, len(places), len(rows) - kept, kept, held_out)
    done = apply_sweep(
        engine,
        library=census.name,
        kind=action,
        actor=run.path.name,
        rows=rows,
        judged={verdicts.ids[place]: verdicts.given[place] for place in places},
        asked={"run": run.path.name, "snapshot": run.snapshot, "min_confidence": min_confidence},
        outcome={"judged": len(verdicts), "held_out": held_out},
        by=by,
        version=census.library.version,
        note=note,
        on_samples=on_samples,
    )
    return Applied(action, min_confidence, len(places), done.changed, done.kept, held_out, done.sweep)


def check_min_confidence(min_confidence: float) -> None:
    """Refuse what can't be a confidence.

    Raises:
        BadInput: it is outside 0.5 to 1.
    """
    if not 0.5 <= min_confidence <= 1:  # nor NaN
        raise BadInput(f"--min-confidence {min_confidence:g}: give a number from 0.5, as probably right as wrong, to 1")


def find_certain(verdicts: Verdicts, action: Action, min_confidence: float) -> IntArray:
    """Places of the labels that the action is certain enough of, the surest first."""
    places = verdicts.errors()
    sure = verdicts.wrong if action is Action.DROP else verdicts.confidence
    return places[sure[places] >= min_confidence]


def _swept(verdicts: Verdicts, place: int, action: Action) -> SweptLabels:
    if action is Action.DROP:
        return SweptLabels(verdicts.ids[place], (), float(verdicts.wrong[place]))
    return SweptLabels(verdicts.ids[place], verdicts.proposed[place] or (), float(verdicts.confidence[place]))
