"""Samples as they leave the store: sorted by id, each with the label events that speak about it."""

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import sqlalchemy as sa

from app.store.rollbacks import counting
from app.store.tables import label_events, samples
from app.store.taxonomies import load_translation

ROWS_AT_ONCE = 10_000


class LabelEvent(NamedTuple):
    """What somebody said about a sample's labels. `actor_kind`: import, person, rule or model.

    labels: in the terms of today's taxonomy; none where the class is gone, or where a person said that none fits.
    undoes: the number of the event that this one withdraws; it says nothing else then. at: when it was said, ISO 8601
    in UTC. sweep: the number of the one that it belongs to, if any; what a rule or a model says counts only then, and
    no labels take the label away.
    """

    id: int
    labels: tuple[str, ...]
    actor_kind: str
    actor: str
    undoes: int | None = None
    at: str = ""
    sweep: int | None = None


class StoredSample(NamedTuple):
    """A sample with its events, oldest first.

    `protected_split`: the position in `model.types.Split` of the most protective split that any member of its
    duplicate group was imported in.
    """

    id: str
    text: str
    pair: str | None
    duplicate_group: int
    protected_split: int | None
    events: tuple[LabelEvent, ...]


def labelled_samples(connection: sa.Connection, library_id: int) -> Iterator[StoredSample]:
    """The samples that have label events which count, sorted by the bytes of their ids, in flat memory."""
    counts = counting(connection, library_id)
    translate = load_translation(connection, library_id)
    labelled = sa.exists().where(
        label_events.c.library_id == library_id, label_events.c.sample_id == samples.c.id, counts
    )
    protected = (
        sa.select(samples.c.duplicate_group, sa.func.min(samples.c.imported_split).label("split"))
        .where(samples.c.library_id == library_id, samples.c.imported_split.is_not(None), labelled)
        .group_by(samples.c.duplicate_group)
        .subquery("protected")
    )
    query = (
        sa.select(
            samples.c.id,
            samples.c.text,
            samples.c.pair,
            samples.c.duplicate_group,
            protected.c.split,
            label_events.c.id.label("event"),
            label_events.c.labels,
            label_events.c.actor_kind,
            label_events.c.actor,
            label_events.c.undoes,
            label_events.c.created_at,
            label_events.c.taxonomy_version,
            label_events.c.sweep_id,
        )
        .join(
            label_events,
            (label_events.c.library_id == samples.c.library_id) & (label_events.c.sample_id == samples.c.id),
        )
        .outerjoin(protected, protected.c.duplicate_group == samples.c.duplicate_group)
        .where(samples.c.library_id == library_id, counts)
        .order_by(samples.c.id, label_events.c.id)
    )
    rows = connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE))
    for _, group in groupby(rows, key=attrgetter("id")):
        events = list(group)
        sample = events[0]
        yield StoredSample(
            id=sample.id,
            text=sample.text,
            pair=sample.pair,
            duplicate_group=sample.duplicate_group,
            protected_split=sample.split,
            events=tuple(
                LabelEvent(
                    event.event,
                    translate(event.labels, event.taxonomy_version),
                    event.actor_kind,
                    event.actor,
                    event.undoes,
                    event.created_at,
                    event.sweep_id,
                )
                for event in events
            ),
        )


def ids_from(connection: sa.Connection, library_id: int, start: str, *, limit: int) -> list[str]:
    """The first ids in the library that begin with the hex digits `start`, sorted."""
    within = (samples.c.library_id == library_id, samples.c.id >= start, samples.c.id < start + "g")
    return list(connection.scalars(sa.select(samples.c.id).where(*within).order_by(samples.c.id).limit(limit)))
