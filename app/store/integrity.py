"""Queries for what must never be in the database; each is one pass in flat memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.events import NO_LABELS
from app.store.tables import label_events, metadata, samples, sources, sweeps

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Reference:
    """Columns of one table whose values, unless NULL, must stand in the columns of another."""

    columns: tuple[sa.Column[Any], ...]
    targets: tuple[sa.Column[Any], ...]

    def __str__(self) -> str:
        return " and ".join(f"{column.table.name}.{column.name}" for column in self.columns)


class StoredText(NamedTuple):
    """A sample without its labels. `imported_split`: a position in `model.types.Split`."""

    id: str
    text: str
    pair: str | None
    imported_split: int | None


class StatedLabels(NamedTuple):
    """What label events say, as it is stored: a JSON list. `event`: the first of the `events` that say so."""

    labels: str
    event: int
    events: int


def references() -> list[Reference]:
    """The declared foreign keys, and those that are not declared because the check would slow imports down."""
    declared = [
        Reference(tuple(key.columns), tuple(element.column for element in key.elements))
        for table in metadata.sorted_tables
        for key in table.foreign_key_constraints
    ]
    return [
        *declared,
        Reference((samples.c.source_id,), (sources.c.id,)),
        Reference((label_events.c.source_id,), (sources.c.id,)),
        Reference((label_events.c.sweep_id,), (sweeps.c.id,)),
    ]


def dangling(connection: sa.Connection, reference: Reference) -> Iterator[tuple[Any, ...]]:
    """The distinct values of the reference's columns that its targets lack."""
    target = reference.targets[0].table.alias("target")
    found = sa.and_(
        *(target.c[there.name] == here for here, there in zip(reference.columns, reference.targets, strict=True))
    )
    query = (
        sa.select(*reference.columns)
        .distinct()
        .where(*(column.is_not(None) for column in reference.columns), ~sa.exists().where(found))
    )
    for row in connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)):
        yield tuple(row)


def dangling_undoes(connection: sa.Connection) -> list[int]:
    """The numbers of the undo events that withdraw no earlier event of their sample."""
    undone = label_events.alias("undone")
    found = sa.exists().where(
        undone.c.id == label_events.c.undoes,
        undone.c.id < label_events.c.id,
        undone.c.library_id == label_events.c.library_id,
        undone.c.sample_id == label_events.c.sample_id,
    )
    query = sa.select(label_events.c.id).where(label_events.c.undoes.is_not(None), ~found)
    return list(connection.scalars(query.order_by(label_events.c.id)))


def damaged_pages(connection: sa.Connection) -> list[str]:
    """What SQLite finds wrong with its file; PostgreSQL watches over its own."""
    if connection.dialect.name != "sqlite":
        return []
    return [row for row in connection.exec_driver_sql("PRAGMA integrity_check").scalars() if row != "ok"]


def count_samples(connection: sa.Connection, library_id: int) -> int:
    """How many samples the library has."""
    return connection.execute(
        sa.select(sa.func.count()).select_from(samples).where(samples.c.library_id == library_id)
    ).scalar_one()


def stored_texts(connection: sa.Connection, library_id: int) -> Iterator[StoredText]:
    """All samples of the library."""
    query = sa.select(samples.c.id, samples.c.text, samples.c.pair, samples.c.imported_split)
    rows = connection.execute(query.where(samples.c.library_id == library_id).execution_options(yield_per=ROWS_AT_ONCE))
    for row in rows:
        yield StoredText(*row)


def stated_labels(connection: sa.Connection, library_id: int) -> list[StatedLabels]:
    """Each different list of labels that an event of the library gives; persons and sweeps may give none."""
    may_give_none = label_events.c.sweep_id.is_not(None) | (label_events.c.actor_kind == "person")
    query = (
        sa.select(label_events.c.labels, sa.func.min(label_events.c.id), sa.func.count())
        .where(label_events.c.library_id == library_id, label_events.c.undoes.is_(None))
        .where(~may_give_none | (label_events.c.labels != NO_LABELS))
        .group_by(label_events.c.labels)
        .order_by(sa.func.min(label_events.c.id))
    )
    return [StatedLabels(*row) for row in connection.execute(query)]
