"""Rollbacks: which label events count, after a library went back to a snapshot, and maybe forth again."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from app.store.tables import label_events, rollbacks
from model.provenance import now


class Rollback(NamedTuple):
    """Of the events up to `until`, those count that did after event `after`, when `base` was the last rollback.

    taxonomy_version: the one that the rollback made. undoes: a rollback that this one takes back; then what counted
    before it counts.
    """

    id: int
    snapshot: str
    after: int
    until: int
    base: int
    taxonomy_version: int
    undoes: int | None
    actor: str
    created_at: str
    note: str | None


class Stretch(NamedTuple):
    """The events after number `after` up to number `until`."""

    after: int
    until: int


def rollback_history(connection: sa.Connection, library_id: int) -> list[Rollback]:
    """All rollbacks of the library and their undoings, oldest first."""
    columns = [rollbacks.c[name] for name in Rollback._fields]
    query = sa.select(*columns).where(rollbacks.c.library_id == library_id).order_by(rollbacks.c.id)
    return [Rollback(*row) for row in connection.execute(query)]


def standing_rollbacks(history: Sequence[Rollback]) -> list[Rollback]:
    """The rollbacks that hold: neither undone nor undoings, oldest first."""
    undone = {rollback.undoes for rollback in history}
    return [rollback for rollback in history if rollback.undoes is None and rollback.id not in undone]


def excluded(history: Sequence[Rollback]) -> list[Stretch]:
    """The stretches of the event log that do not count after the last of the rollbacks."""
    if not history:
        return []
    last = history[-1]
    if last.undoes is not None:
        return excluded([rollback for rollback in history if rollback.id < last.undoes])
    before = excluded([rollback for rollback in history if rollback.id <= last.base])
    clipped = [Stretch(gone.after, min(gone.until, last.after)) for gone in before if gone.after < last.after]
    return [*clipped, Stretch(last.after, last.until)]


def record_rollback(connection: sa.Connection, library_id: int, rollback: Rollback) -> None:
    """Append a rollback, or the undoing of one; its `id` and `created_at` are given to it."""
    values = {"library_id": library_id, **rollback._asdict(), "created_at": now()}
    del values["id"]
    connection.execute(sa.insert(rollbacks).values(values))


def counting(connection: sa.Connection, library_id: int) -> sa.ColumnElement[bool]:
    """The condition that a label event of the library has not been rolled back."""
    return sa.not_(within(excluded(rollback_history(connection, library_id))))


def within(stretches: Sequence[Stretch]) -> sa.ColumnElement[bool]:
    """The condition that a label event is in one of the stretches."""
    return sa.or_(sa.false(), *(label_events.c.id.between(gone.after + 1, gone.until) for gone in stretches))


def events_between(
    connection: sa.Connection, library_id: int, before: Sequence[Stretch], after: Sequence[Stretch]
) -> tuple[int, list[str]]:
    """How many of the library's events count in one of two cases and not in the other, and their samples' ids.

    before, after: what is excluded in either case.
    """
    differs = (within(before) & sa.not_(within(after))) | (within(after) & sa.not_(within(before)))
    query = sa.select(label_events.c.sample_id, sa.func.count()).where(label_events.c.library_id == library_id, differs)
    rows = connection.execute(query.group_by(label_events.c.sample_id)).all()
    return sum(count for _, count in rows), [sample_id for sample_id, _ in rows]


def last_event(connection: sa.Connection) -> int:
    """The number of the newest label event of all libraries, or 0."""
    return connection.scalar(sa.select(sa.func.max(label_events.c.id))) or 0


def last_rollback(connection: sa.Connection, library_id: int) -> int:
    """The number of the library's newest rollback or undoing of one, or 0."""
    return connection.scalar(sa.select(sa.func.max(rollbacks.c.id)).where(rollbacks.c.library_id == library_id)) or 0
