"""Rollbacks: stretches of the event log that do not count any more."""

from typing import NamedTuple

import sqlalchemy as sa

from app.store.tables import label_events, rollbacks
from model.run import now


class Rollback(NamedTuple):
    """The events after `after` up to `until` are out. `taxonomy_version`: the one that the rollback made."""

    id: int
    snapshot: str
    after: int
    until: int
    taxonomy_version: int
    undoes: int | None
    actor: str
    created_at: str
    note: str | None


def rollback_history(connection: sa.Connection, library_id: int) -> list[Rollback]:
    """All rollbacks of the library and their undoings, oldest first."""
    columns = [rollbacks.c[name] for name in Rollback._fields]
    query = sa.select(*columns).where(rollbacks.c.library_id == library_id).order_by(rollbacks.c.id)
    return [Rollback(*row) for row in connection.execute(query)]


def standing_rollbacks(history: list[Rollback]) -> list[Rollback]:
    """The rollbacks that hold: neither undone nor undoings, oldest first."""
    undone = {rollback.undoes for rollback in history}
    return [rollback for rollback in history if rollback.undoes is None and rollback.id not in undone]


def record_rollback(
    connection: sa.Connection,
    library_id: int,
    *,
    snapshot: str,
    after: int,
    until: int,
    taxonomy_version: int,
    actor: str,
    note: str | None,
    undoes: int | None = None,
) -> None:
    """Append a rollback, or the undoing of one."""
    values = {
        "library_id": library_id,
        "snapshot": snapshot,
        "after": after,
        "until": until,
        "taxonomy_version": taxonomy_version,
        "undoes": undoes,
        "actor": actor,
        "created_at": now(),
        "note": note,
    }
    connection.execute(sa.insert(rollbacks).values(values))


def counting(connection: sa.Connection, library_id: int) -> sa.ColumnElement[bool]:
    """The condition that a label event of the library has not been rolled back."""
    stretches = standing_rollbacks(rollback_history(connection, library_id))
    return sa.and_(sa.true(), *(sa.not_(label_events.c.id.between(gone.after + 1, gone.until)) for gone in stretches))


def events_between(
    connection: sa.Connection, library_id: int, after: int, until: int, *, counting_only: bool = True
) -> tuple[int, list[str]]:
    """How many of the library's events with numbers beyond `after` up to `until` there are, and their samples' ids."""
    here = (label_events.c.library_id == library_id, label_events.c.id > after, label_events.c.id <= until)
    counts = counting(connection, library_id) if counting_only else sa.true()
    query = sa.select(label_events.c.sample_id, sa.func.count()).where(*here, counts)
    rows = connection.execute(query.group_by(label_events.c.sample_id)).all()
    return sum(count for _, count in rows), [sample_id for sample_id, _ in rows]


def last_event(connection: sa.Connection) -> int:
    """The number of the newest label event of all libraries, or 0."""
    return connection.scalar(sa.select(sa.func.max(label_events.c.id))) or 0
