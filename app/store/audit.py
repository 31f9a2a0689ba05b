"""The audit log: who did what when. Append-only, as label events are."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from app.store.tables import audit_events
from model.provenance import now


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """`actor` did `action` (such as key.create) to `target`; `details`: with which values, never secret ones."""

    id: int
    at: str
    actor: str
    action: str
    target: str
    details: dict[str, str | None]


def record(connection: sa.Connection, *, actor: str, action: str, target: str, **details: str | None) -> None:
    """Write down what happens in the same transaction."""
    connection.execute(
        sa.insert(audit_events).values(
            at=now(), actor=actor, action=action, target=target, details=json.dumps(details, ensure_ascii=False)
        )
    )


def latest_events(connection: sa.Connection, limit: int, *, before: int | None = None) -> list[AuditEvent]:
    """The newest `limit` events, newest first; `before`: only those with smaller ids."""
    query = sa.select(audit_events).order_by(audit_events.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_events.c.id < before)
    return [
        AuditEvent(row.id, row.at, row.actor, row.action, row.target, json.loads(row.details))
        for row in connection.execute(query)
    ]
