"""Put samples into the review queue, whoever asks: the doctor, the gate, active learning, or a person."""

from collections.abc import Sequence
from enum import StrEnum

import sqlalchemy as sa

from app.library.labelling import person_name
from app.store.audit import record
from app.store.database import connect, writing
from app.store.libraries import get_library, share_library
from app.store.reviews import Queued, Wanted, add_items
from app.store.texts import texts_of
from model.errors import BadInput, UnknownSample
from model.types import preview


class Reason(StrEnum):
    """Why a sample should be looked at."""

    CONFLICT = "conflict"  # persons or imports disagree
    DUPLICATE = "duplicate"  # near duplicates have other labels
    LABEL_ERROR = "label_error"  # models that have not seen it contradict its label
    HARD = "hard"  # models that have not seen it are unsure of its label
    OUTLIER = "outlier"  # it is unlike the others
    OFF_TAXONOMY = "off_taxonomy"  # no class seems to fit
    UNSURE = "unsure"  # the gate did not accept the model's label
    SUGGESTED = "suggested"  # a model would learn most from it


def queue_reviews(
    engine: sa.Engine, *, library: str, wanted: Sequence[Wanted], by: str, version: int | None = None
) -> Queued:
    """Queue samples for review, all of them or none; what a look at near duplicates is worth sinks with each of them.

    version: of the taxonomy that labels are proposed in, if any are.

    Raises:
        UnknownLibrary: there is no such library. UnknownSample: it has no such sample. BadInput: its taxonomy is by now
        another one. Nothing is queued then.
    """
    person = person_name(by)
    with connect(engine) as connection, writing(connection):
        share_library(connection, library)
        into = get_library(connection, library)
        if version is not None and into.version != version:
            raise BadInput(
                f"the taxonomy of library {library!r} has become version {into.version}, and the proposals are of "
                f"version {version}; do it again"
            )
        ids = [item.sample_id for item in wanted]
        if missing := sorted(set(ids) - texts_of(connection, into.id, ids).keys()):
            raise UnknownSample(f"library {library!r} has no sample {preview(missing, 3)}")
        queued = add_items(connection, into.id, wanted, by=person, version=into.version)
        record(connection, actor=person, action="review.queue", target=library, items=f"{queued.added}")
    return queued
