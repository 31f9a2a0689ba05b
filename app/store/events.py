"""Label events on record: what persons say is written one by one, and read with all that is known about it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.samples import ROWS_AT_ONCE, LabelEvent, read_labels
from app.store.tables import label_events, libraries, samples, sources
from model.files import canonical_json
from model.run import now


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event, when it was written, how sure its actor was (0 to 1), and the file and line that it came from."""

    event: LabelEvent
    created_at: str
    confidence: float | None
    note: str | None
    source: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class SampleEvents:
    """A sample, and everything that was ever said about it, oldest first."""

    id: str
    text: str
    pair: str | None
    recorded: tuple[RecordedEvent, ...]

    @property
    def events(self) -> list[LabelEvent]:
        """The events alone."""
        return [recorded.event for recorded in self.recorded]


class EventPlace(NamedTuple):
    """Where an event belongs."""

    library: str
    sample_id: str


def lock_sample(connection: sa.Connection, library_id: int, sample_id: str) -> None:
    """Let nobody else write about the sample until the transaction ends, so that the newest event is the last."""
    place = (samples.c.library_id == library_id, samples.c.id == sample_id)
    # On SQLite, whoever writes has the whole database. Imports go on: they only need the sample to stay.
    connection.execute(sa.select(samples.c.id).where(*place).with_for_update(key_share=True))


def record_word(
    connection: sa.Connection,
    library_id: int,
    sample_id: str,
    *,
    person: str,
    labels: Sequence[str] = (),
    confidence: float | None = None,
    note: str | None = None,
    undoes: int | None = None,
) -> int:
    """Append what a person says about a sample, which is locked: its labels, sorted, or an undo. The event's number."""
    values = {
        "library_id": library_id,
        "sample_id": sample_id,
        "labels": canonical_json(labels).decode(),
        "actor_kind": "person",
        "actor": person,
        "created_at": now(),
        "confidence": confidence,
        "note": note,
        "undoes": undoes,
    }
    event: int = connection.execute(sa.insert(label_events).values(values).returning(label_events.c.id)).scalar_one()
    return event


def find_event(connection: sa.Connection, event: int) -> EventPlace | None:
    """Where the event of that number belongs, if there is one."""
    query = (
        sa.select(libraries.c.name, label_events.c.sample_id)
        .join(libraries, libraries.c.id == label_events.c.library_id)
        .where(label_events.c.id == event)
    )
    row = connection.execute(query).one_or_none()
    return EventPlace(*row) if row else None


def events_of_sample(connection: sa.Connection, library_id: int, sample_id: str) -> SampleEvents:
    """A sample of the library with its events, if any."""
    return next(_with_events(connection, library_id, samples.c.id == sample_id))


def events_of_contested(connection: sa.Connection, library_id: int) -> Iterator[SampleEvents]:
    """Samples on which imports or persons have ever differed, sorted by id, in flat memory."""
    said = (
        sa.select(label_events.c.sample_id)
        .where(label_events.c.library_id == library_id, label_events.c.actor_kind.in_(("import", "person")))
        .where(label_events.c.undoes.is_(None))
        .group_by(label_events.c.sample_id)
        .having(sa.func.min(label_events.c.labels) != sa.func.max(label_events.c.labels))
    )
    return _with_events(connection, library_id, samples.c.id.in_(said))


def events_of_shared(connection: sa.Connection, library_id: int) -> Iterator[SampleEvents]:
    """Samples that two or more persons have ever labelled, sorted by id, in flat memory."""
    said = (
        sa.select(label_events.c.sample_id)
        .where(label_events.c.library_id == library_id, label_events.c.actor_kind == "person")
        .where(label_events.c.undoes.is_(None))
        .group_by(label_events.c.sample_id)
        .having(sa.func.min(label_events.c.actor) != sa.func.max(label_events.c.actor))
    )
    return _with_events(connection, library_id, samples.c.id.in_(said))


def _with_events(connection: sa.Connection, library_id: int, which: sa.ColumnElement[bool]) -> Iterator[SampleEvents]:
    query = (
        sa.select(
            samples.c.id,
            samples.c.text,
            samples.c.pair,
            label_events.c.id.label("event"),
            label_events.c.labels,
            label_events.c.actor_kind,
            label_events.c.actor,
            label_events.c.undoes,
            label_events.c.created_at,
            label_events.c.confidence,
            label_events.c.note,
            sources.c.name.label("source"),
            label_events.c.line,
        )
        .outerjoin(
            label_events,
            (label_events.c.library_id == samples.c.library_id) & (label_events.c.sample_id == samples.c.id),
        )
        .outerjoin(sources, sources.c.id == label_events.c.source_id)
        .where(samples.c.library_id == library_id, which)
        .order_by(samples.c.id, label_events.c.id)
    )
    rows = connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE))
    for sample_id, group in groupby(rows, key=attrgetter("id")):
        found = list(group)
        yield SampleEvents(
            id=sample_id,
            text=found[0].text,
            pair=found[0].pair,
            recorded=tuple(_recorded(row) for row in found if row.event is not None),
        )


def _recorded(row: Any) -> RecordedEvent:
    return RecordedEvent(
        event=LabelEvent(row.event, read_labels(row.labels), row.actor_kind, row.actor, row.undoes),
        created_at=row.created_at,
        confidence=row.confidence,
        note=row.note,
        source=row.source,
        line=row.line,
    )
