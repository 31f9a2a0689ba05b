"""Which snapshots were frozen from a library, when, and with which parameters."""

import json
from typing import Any

import sqlalchemy as sa

from app.store.tables import snapshots
from model.run import now
from model.snapshot import Snapshot


def last_snapshot(connection: sa.Connection, library_id: int) -> str | None:
    """The hash of the newest snapshot of the library."""
    query = sa.select(snapshots.c.hash).where(snapshots.c.library_id == library_id)
    return connection.scalar(query.order_by(snapshots.c.id.desc()).limit(1))


def record_snapshot(
    connection: sa.Connection, library_id: int, snapshot: Snapshot, *, parameters: dict[str, Any]
) -> None:
    """Remember that `snapshot` was frozen from the library."""
    connection.execute(
        sa.insert(snapshots).values(
            library_id=library_id,
            hash=snapshot.hash,
            parent=snapshot.parent,
            path=str(snapshot.path.resolve()),
            parameters=json.dumps(parameters),
            created_at=now(),
        )
    )
