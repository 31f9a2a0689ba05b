"""The audit log: who did what when. Append-only, as label events are."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from app.store.tables import audit_events
from model.run import now


@dataclass(frozen=True, slots=True)
class AuditEvent:
    """`actor` did `action` (such as key.create) to `target`; `details`: with which values, never secret ones."""

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


def latest_events(connection: sa.Connection, limit: int) -> list[AuditEvent]:
    """The newest `limit` events, newest first."""
    query = sa.select(audit_events).order_by(audit_events.c.id.desc()).limit(limit)
    return [
        AuditEvent(row.at, row.actor, row.action, row.target, json.loads(row.details))
        for row in connection.execute(query)
    ]
