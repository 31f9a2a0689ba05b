"""Put what the doctor found into the review queue."""

from collections.abc import Iterable, Sequence

import numpy as np
import sqlalchemy as sa

from app.library.doctor.examining import Examination
from app.library.doctor.findings import Kind
from app.library.review.queueing import queue_reviews
from app.store.reviews import Queued, Wanted
from model.errors import BadInput
from model.types import preview

PREDICTED = (Kind.LABEL_ERRORS, Kind.OFF_TAXONOMY, Kind.AMBIGUOUS_CLASSES, Kind.HARD_SAMPLES)
# What a second look is asked for although a person has spoken: people differ, or models contradict them.
CONTESTED = (Kind.CONFLICTS, Kind.LABEL_ERRORS)
REVIEWED = (Kind.CONFLICTS, Kind.SCRIPTS, Kind.OUTLIERS, Kind.LABEL_ERRORS, Kind.OFF_TAXONOMY, Kind.HARD_SAMPLES)


def named_kinds(names: Iterable[str], *, has_run: bool) -> tuple[Kind, ...]:
    """The kinds of findings that people name, to be put into review.

    Raises:
        BadInput: there is no such kind, it concerns no single samples, or it takes predictions and there is no run.
    """
    kinds = []
    for name in names:
        if name not in REVIEWED:
            raise BadInput(f"--to-review {name!r}: give one of {preview(REVIEWED, len(REVIEWED))}")
        if name in PREDICTED and not has_run:
            raise BadInput(f"--to-review {name}: it takes predictions; name a training by folds with --run")
        kinds.append(Kind(name))
    return tuple(kinds)


def queue_findings(engine: sa.Engine, found: Examination, kinds: Sequence[Kind], *, by: str) -> Queued:
    """Queue the samples of these findings, each for the reason that makes a look at it worth most.

    What is merely odd about a sample is no reason any more once a person has said what it is.

    Raises:
        As `app.library.review.queueing.queue_reviews`.
    """
    census = found.census
    persons = {census.ids[row] for row in np.flatnonzero(census.by_person).tolist()}
    best: dict[str, Wanted] = {}
    for finding in found.findings:
        for wanted in finding.reviews if finding.kind in kinds else ():
            if finding.kind not in CONTESTED and wanted.sample_id in persons:
                continue
            known = best.get(wanted.sample_id)
            if known is None or wanted.value > known.value:
                best[wanted.sample_id] = wanted
    return queue_reviews(engine, library=found.library, wanted=list(best.values()), by=by, version=found.version)
