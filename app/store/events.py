"""Label events on record: what persons say is written one by one, and read with all that is known about it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.rollbacks import counting
from app.store.samples import ROWS_AT_ONCE, LabelEvent
from app.store.tables import label_events, libraries, samples, sources
from app.store.taxonomies import Translation, load_translation
from model.files import canonical_json
from model.provenance import now

LISTS_AT_ONCE = 400  # each is two variables of a statement
NO_LABELS = "[]"  # what persons say of a text that belongs to no class, and sweeps of one whose label they take away


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event, how sure its actor was (0 to 1), and the file and line that it came from.

    said: the labels in the terms of their time. rolled_back: it does not count any more.
    """

    event: LabelEvent
    said: tuple[str, ...]
    rolled_back: bool
    confidence: float | None
    note: str | None
    source: str | None
    line: int | None

    @property
    def undecided(self) -> bool:
        """Whether it named classes and nothing of them is left: unlike a word that no class fits, it says nothing."""
        return bool(self.said) and not self.event.labels


@dataclass(frozen=True, slots=True)
class SampleEvents:
    """A sample, and everything that was ever said about it, oldest first."""

    id: str
    text: str
    pair: str | None
    recorded: tuple[RecordedEvent, ...]

    @property
    def events(self) -> list[LabelEvent]:
        """The events that count, without what is known about them."""
        return [recorded.event for recorded in self.recorded if not recorded.rolled_back]


class EventPlace(NamedTuple):
    """Where an event belongs."""

    library: str
    sample_id: str


class Stated(NamedTuple):
    """A list of labels as it is stored, JSON, and the version of the taxonomy that it was given in."""

    labels: str
    version: int


def lock_sample(connection: sa.Connection, library_id: int, sample_id: str) -> None:
    """Let nobody else write about the sample until the transaction ends, so that the newest event is the last."""
    place = (samples.c.library_id == library_id, samples.c.id == sample_id)
    # On SQLite, whoever writes has the whole database. Imports go on: they only need the sample to stay.
    connection.execute(sa.select(samples.c.id).where(*place).with_for_update(key_share=True))


def lock_samples(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> None:
    """As `lock_sample`, for some samples at once, in the order of their ids, so that no two wait for each other."""
    place = (samples.c.library_id == library_id, samples.c.id.in_(ids))
    connection.execute(sa.select(samples.c.id).where(*place).order_by(samples.c.id).with_for_update(key_share=True))


def record_word(
    connection: sa.Connection,
    library_id: int,
    sample_id: str,
    *,
    person: str,
    taxonomy_version: int,
    labels: Sequence[str] = (),
    confidence: float | None = None,
    note: str | None = None,
    undoes: int | None = None,
) -> int:
    """Append what a person says about a sample, which is locked: its labels, sorted, or an undo. The event's number.

    Without labels and without an undo, it says that the sample belongs to none of the classes.
    """
    values = {
        "library_id": library_id,
        "sample_id": sample_id,
        "labels": canonical_json(labels).decode(),
        "actor_kind": "person",
        "actor": person,
        "taxonomy_version": taxonomy_version,
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


def label_lists(connection: sa.Connection, library_id: int) -> list[Stated]:
    """Every different list of labels that an event of the library gives, in every version of the taxonomy."""
    query = sa.select(label_events.c.labels, label_events.c.taxonomy_version).distinct()
    rows = connection.execute(query.where(label_events.c.library_id == library_id, label_events.c.undoes.is_(None)))
    return [Stated(*row) for row in rows]


def samples_stating(connection: sa.Connection, library_id: int, stated: Sequence[Stated]) -> list[str]:
    """The ids, sorted, of the samples of which an event gives one of the lists of labels."""
    found: set[str] = set()
    for start in range(0, len(stated), LISTS_AT_ONCE):
        lists = sa.tuple_(label_events.c.labels, label_events.c.taxonomy_version).in_(
            stated[start : start + LISTS_AT_ONCE]
        )
        query = sa.select(label_events.c.sample_id).distinct()
        found.update(connection.scalars(query.where(label_events.c.library_id == library_id, lists)))
    return sorted(found)


def events_of_sample(connection: sa.Connection, library_id: int, sample_id: str) -> SampleEvents:
    """A sample of the library with its events, if any."""
    return next(_with_events(connection, library_id, samples.c.id == sample_id))


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


def events_of_samples(
    connection: sa.Connection, library_id: int, ids: Sequence[str], *, translate: Translation | None = None
) -> Iterator[SampleEvents]:
    """Some samples of the library, sorted by id, with their events; at most `ROWS_AT_ONCE` of them.

    translate: what their labels mean, if not what they mean in the newest version of the taxonomy.
    """
    return _with_events(connection, library_id, samples.c.id.in_(ids), translate)


def events_of_all(connection: sa.Connection, library_id: int) -> Iterator[SampleEvents]:
    """All samples of the library, sorted by id, with their events, in flat memory."""
    return _with_events(connection, library_id, sa.true())


def _with_events(
    connection: sa.Connection, library_id: int, which: sa.ColumnElement[bool], translation: Translation | None = None
) -> Iterator[SampleEvents]:
    translate = translation or load_translation(connection, library_id)
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
            label_events.c.taxonomy_version,
            label_events.c.sweep_id,
            sa.not_(counting(connection, library_id)).label("rolled_back"),
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
            recorded=tuple(_recorded(row, translate) for row in found if row.event is not None),
        )


def _recorded(row: Any, translate: Translation) -> RecordedEvent:
    labels = translate(row.labels, row.taxonomy_version)
    return RecordedEvent(
        event=LabelEvent(row.event, labels, row.actor_kind, row.actor, row.undoes, row.created_at, row.sweep_id),
        said=tuple(json.loads(row.labels)),
        rolled_back=row.rolled_back,
        confidence=row.confidence,
        note=row.note,
        source=row.source,
        line=row.line,
    )
