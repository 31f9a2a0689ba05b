"""What the doctor reads of a library: every sample with its text, its current labels, and who gave them."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa

from app.store.samples import ROWS_AT_ONCE
from app.store.tables import catalogue, label_events, samples

PERSON = "person"


class ExaminedSample(NamedTuple):
    """labels: the current ones as a JSON list, None without any. by_person: a person gave them.

    imported_split: the position in `model.types.Split`, None where the sample was imported without one.
    """

    id: str
    text: str
    pair: str | None
    labels: str | None
    conflict: bool
    by_person: bool
    imported_split: int | None


def examined_samples(connection: sa.Connection, library_id: int) -> Iterator[ExaminedSample]:
    """All samples of the library, labelled or not, sorted by the bytes of their ids, in flat memory.

    The catalogue has to be fresh.
    """
    listed = (catalogue.c.library_id == samples.c.library_id) & (catalogue.c.sample_id == samples.c.id)
    query = (
        sa.select(
            samples.c.id,
            samples.c.text,
            samples.c.pair,
            catalogue.c.labels,
            catalogue.c.conflict,
            label_events.c.actor_kind,
            samples.c.imported_split,
        )
        .outerjoin(catalogue, listed)
        .outerjoin(label_events, label_events.c.id == catalogue.c.event)
        .where(samples.c.library_id == library_id)
        .order_by(samples.c.id)
    )
    for row in connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)):
        yield ExaminedSample(
            row.id,
            row.text,
            row.pair,
            row.labels,
            bool(row.conflict),
            row.actor_kind == PERSON,
            row.imported_split,
        )


def read_labels(of_row: str) -> tuple[str, ...]:
    """The labels of an `ExaminedSample` that has some."""
    return tuple(json.loads(of_row))


def unlabelled_but_spoken_of(connection: sa.Connection, library_id: int) -> list[str]:
    """The samples without current labels about which a person has said something, sorted."""
    same = (label_events.c.library_id == catalogue.c.library_id) & (label_events.c.sample_id == catalogue.c.sample_id)
    query = (
        sa.select(catalogue.c.sample_id)
        .join(label_events, same)
        .where(
            catalogue.c.library_id == library_id,
            catalogue.c.labels.is_(None),
            label_events.c.actor_kind == PERSON,
        )
    )
    return sorted(set(connection.scalars(query)))
