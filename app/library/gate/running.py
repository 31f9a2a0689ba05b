"""Run the gate: weigh a pool, accept what the bound allows in one sweep, and send the rest to review."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import sqlalchemy as sa

from app.library.gate.calibrating import Calibration, load_calibration
from app.library.gate.comparing import Compared, compare
from app.library.gate.deciding import Decision, decide
from app.library.gate.predicting import Predicted, Predictor, together
from app.library.labelling import MAX_NOTE_CHARS
from app.library.review.queueing import Reason, queue_reviews
from app.library.scoring import library_for, only_of_pool, pool_samples, pool_size, swept_samples, swept_size
from app.library.sweeping import apply_sweep
from app.store.database import connect, reading
from app.store.libraries import get_library
from app.store.pool import labels_of
from app.store.reviews import Wanted
from app.store.sweeps import SweptLabels
from model.errors import BadInput, WenleiError
from model.metrics import BoolArray
from model.runtime.base import Classifier
from model.selective import Bound
from model.types import Split

KIND = "gate"  # of its sweeps
NOTE_CHARS = MAX_NOTE_CHARS
ITEMS_AT_ONCE = 20_000  # that are queued for review in one transaction
OnSamples = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for. calibration: a snapshot's hash, its beginning, or its folder; None: that of the training."""

    bound: Bound
    per_class: bool = False
    calibration: str | None = None
    split: Split = Split.TEST


@dataclass(frozen=True, slots=True)
class Prepared:
    """Calibration samples for the pool of a library. version: of its taxonomy."""

    library: str
    version: int
    plan: Plan
    calibration: Calibration


@dataclass(frozen=True, slots=True)
class Weighed:
    """A pool that was weighed, and nothing written.

    wrong: (n,), which calibration samples the model has wrong. before: labels that the gate gave in earlier runs, which
    the bound is made to hold for, too. contradicted: of those that are accepted again, how many have other labels, as
    another model gave them: the bound is about what this one says.
    """

    library: str
    version: int
    model: str
    plan: Plan
    calibration: Calibration
    predicted: Predicted
    wrong: BoolArray
    pool: Predicted
    before: int
    contradicted: int
    sets: list[tuple[str, ...]]
    decision: Decision
    compared: Compared


@dataclass(frozen=True, slots=True)
class Applied:
    """What was written. sweep: None where nothing was accepted. queued: items in review, None if none were wanted."""

    sweep: int | None
    accepted: int
    queued: int | None


def texts_to_judge(engine: sa.Engine, library: str) -> int:
    """At most so many texts of the library the model has to judge: the pool, and what the gate accepted before.

    Raises:
        UnknownLibrary: there is no such library.
    """
    return pool_size(engine, library) + swept_size(engine, library, KIND)


def prepare(
    engine: sa.Engine,
    *,
    library: str,
    classifier: Classifier,
    trained_on: str,
    plan: Plan,
    on_compared: OnSamples = lambda _: None,
) -> Prepared:
    """Find the calibration samples for a model and a library.

    trained_on: the hash of the snapshot that the model was trained on. `on_compared` hears of samples that were looked
    at for near duplicates.

    Raises:
        UnknownLibrary, BadSnapshot: there is none. BadTaxonomy: the model has another one. BadInput: the pool is
        empty, the model was trained on calibration samples, or none of them can be used.
    """
    found = library_for(engine, library, classifier)
    if next(pool_samples(engine, library), None) is None:
        raise BadInput(
            f"library {library!r} has no samples that were never labelled, so there is nothing to label; import texts "
            "without --label"
        )
    calibration = load_calibration(
        engine,
        library=found,
        classifier=classifier,
        trained_on=trained_on,
        reference=plan.calibration,
        split=plan.split,
        on_samples=on_compared,
    )
    if not calibration.samples:
        raise BadInput(
            f"all labels of {calibration.split} of snapshot {calibration.snapshot.hash} come from machines by now, or "
            "are gone; name a snapshot with labels of people by --calibration"
        )
    return Prepared(library, found.version, plan, calibration)


def weigh(
    engine: sa.Engine, prepared: Prepared, classifier: Classifier, *, on_scored: OnSamples = lambda _: None
) -> Weighed:
    """Find out which of the model's labels for the pool may be accepted; write nothing.

    `on_scored` hears of samples that the model has judged.

    Raises:
        UnknownLibrary: the library is gone. BadText: the model can't read a text.
    """
    plan, calibration, predictor = prepared.plan, prepared.calibration, Predictor(classifier)
    predicted = predictor.predict(calibration.samples, on_texts=on_scored)
    wrong = np.array(
        [predictor.sets[number] != gold for number, gold in zip(predicted.sets, calibration.gold, strict=True)]
    )
    pool = predictor.predict(pool_samples(engine, prepared.library), on_texts=on_scored)
    before = predictor.predict(swept_samples(engine, prepared.library, KIND), on_texts=on_scored)
    both = together(pool, before)
    decision = decide(
        predicted, wrong, both, plan.bound, sets=predictor.sets, per_class=plan.per_class, new=len(pool.ids)
    )
    said = {before.ids[place]: predictor.sets[before.sets[place]] for place in np.flatnonzero(decision.again).tolist()}
    return Weighed(
        library=prepared.library,
        version=prepared.version,
        model=f"{classifier.name}@{classifier.version}",
        plan=plan,
        calibration=calibration,
        predicted=predicted,
        wrong=wrong,
        pool=pool,
        before=len(before.ids),
        contradicted=_contradicted(engine, prepared.library, said),
        sets=predictor.sets,
        decision=decision,
        compared=compare(engine, prepared.library, predicted, both),
    )


def apply(
    engine: sa.Engine,
    weighed: Weighed,
    *,
    by: str,
    report: dict[str, Any],
    note: str,
    review: bool,
    on_written: OnSamples = lambda _: None,
) -> Applied:
    """Write what is accepted as one sweep, then queue the rest for review.

    report: what is kept with the sweep. Samples about which somebody has spoken meanwhile are left alone.

    Raises:
        BadInput: the taxonomy has changed meanwhile; nothing is written then. Any error of queueing, which says what
        was written before; to run the gate again is safe.
    """
    still = _still_in_pool(engine, weighed)
    chosen = weighed.decision.accepted & still
    sweep = None
    if chosen.any():
        rows = [SweptLabels(*_prediction(weighed, index)) for index in np.flatnonzero(chosen).tolist()]
        swept = apply_sweep(
            engine,
            library=weighed.library,
            kind=KIND,
            actor=weighed.model,
            rows=rows,
            judged={},
            asked=_asked(weighed),
            outcome=report,
            by=by,
            version=weighed.version,
            note=note,
            on_samples=on_written,
        )
        sweep, accepted = swept.sweep, swept.changed
    else:
        accepted = 0
    if not review:
        return Applied(sweep, accepted, None)
    wanted = _wanted(weighed, ~weighed.decision.accepted & still)
    queued = 0
    while some := list(islice(wanted, ITEMS_AT_ONCE)):
        try:
            added = queue_reviews(engine, library=weighed.library, wanted=some, by=by, version=weighed.version)
        except WenleiError as error:
            written = f"{accepted:,} labels were accepted in sweep {sweep}" if sweep else "no label was accepted"
            raise type(error)(
                f"{written} and {queued:,} samples are in review, but the rest is not: {error}; run the gate again, it "
                "goes on with what is left"
            ) from None
        queued += added.added + added.raised + added.known
        on_written(len(some))
    return Applied(sweep, accepted, queued)


def _asked(weighed: Weighed) -> dict[str, Any]:
    plan = weighed.plan
    return {
        "max_error": plan.bound.max_error,
        "confidence": plan.bound.confidence,
        "per_class": plan.per_class,
        "calibration": weighed.calibration.snapshot.hash,
        "split": weighed.calibration.split.value,
    }


def _prediction(weighed: Weighed, index: int) -> tuple[str, tuple[str, ...], float]:
    """The sample at `index` of the pool, its labels, and how sure the model is of them."""
    return weighed.pool.ids[index], weighed.sets[weighed.pool.sets[index]], float(weighed.pool.sure[index])


def _wanted(weighed: Weighed, rest: BoolArray) -> Iterator[Wanted]:
    """What is to be reviewed; labels that could never be accepted are not proposed either."""
    for index in np.flatnonzero(rest).tolist():
        sample, labels, sure = _prediction(weighed, index)
        able = bool(weighed.pool.able[index])
        yield Wanted(
            sample_id=sample,
            reason=Reason.UNSURE,
            value=1 - sure,
            proposed=labels if able else None,
            proposed_by=weighed.model if able else None,
            confidence=sure if able else None,
        )


def _contradicted(engine: sa.Engine, name: str, said: Mapping[str, tuple[str, ...]]) -> int:
    """How many of the samples have other labels than the model says. said: their ids → what it says."""
    ids = list(said)
    with connect(engine) as connection, reading(connection):
        library = get_library(connection, name)
        parts = [labels_of(connection, library.id, ids[start : start + 5_000]) for start in range(0, len(ids), 5_000)]
    return sum(labels != said[sample] for part in parts for sample, labels in part.items())


def _still_in_pool(engine: sa.Engine, weighed: Weighed) -> BoolArray:
    """(m,), of which samples nobody has said anything since they were read: scoring takes its time."""
    ids = weighed.pool.ids
    still = np.zeros(len(ids), bool)
    with connect(engine) as connection, reading(connection):
        library = get_library(connection, weighed.library)
        for start in range(0, len(ids), 5_000):
            some = ids[start : start + 5_000]
            free = only_of_pool(connection, library, some)
            still[start : start + len(some)] = [each in free for each in some]
    return still
