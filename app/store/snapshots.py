"""Which snapshots were frozen from a library, when, and with which parameters."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import libraries, snapshots
from model.provenance import now
from model.snapshot import Snapshot


class RecordedSnapshot(NamedTuple):
    """A snapshot as it was recorded when it was frozen. `path`: absolute; the folder may be gone since."""

    library: str
    hash: str
    parent: str | None
    path: Path
    created_at: str
    parameters: dict[str, Any]


def recorded_snapshots(connection: sa.Connection, library: str | None = None) -> list[RecordedSnapshot]:
    """The snapshots of one library or of all, oldest first; what was frozen again into the same folder counts once."""
    query = (
        sa.select(
            libraries.c.name, *(snapshots.c[name] for name in ("hash", "parent", "path", "created_at", "parameters"))
        )
        .join(libraries, libraries.c.id == snapshots.c.library_id)
        .order_by(snapshots.c.id)
    )
    if library is not None:
        query = query.where(libraries.c.name == library)
    first: dict[tuple[str, str], RecordedSnapshot] = {}
    for name, content_hash, parent, path, created_at, parameters in connection.execute(query):
        record = RecordedSnapshot(name, content_hash, parent, Path(path), created_at, json.loads(parameters))
        first.setdefault((name, path), record)
    return list(first.values())


class Frozen(NamedTuple):
    """The moment at which a snapshot was frozen: the last that it could see. All None before they were recorded."""

    hash: str
    last_event: int | None
    taxonomy_version: int | None
    last_rollback: int | None


def moments(connection: sa.Connection, library_id: int, start: str) -> list[Frozen]:
    """When the snapshots were frozen from the library whose hashes begin with `start`, oldest first."""
    columns = [snapshots.c[name] for name in Frozen._fields]
    query = sa.select(*columns).where(snapshots.c.library_id == library_id, snapshots.c.hash.startswith(start))
    return [Frozen(*row) for row in connection.execute(query.order_by(snapshots.c.id))]


def last_snapshot(connection: sa.Connection, library_id: int) -> str | None:
    """The hash of the newest snapshot of the library."""
    query = sa.select(snapshots.c.hash).where(snapshots.c.library_id == library_id)
    return connection.scalar(query.order_by(snapshots.c.id.desc()).limit(1))


def record_snapshot(
    connection: sa.Connection,
    library_id: int,
    snapshot: Snapshot,
    *,
    parameters: dict[str, Any],
    last_event: int,
    taxonomy_version: int,
    last_rollback: int,
) -> None:
    """Remember that `snapshot` was frozen from the library, in which version of its taxonomy and after what."""
    connection.execute(
        sa.insert(snapshots).values(
            library_id=library_id,
            hash=snapshot.hash,
            parent=snapshot.parent,
            path=str(snapshot.path.resolve()),
            parameters=json.dumps(parameters),
            created_at=now(),
            last_event=last_event,
            taxonomy_version=taxonomy_version,
            last_rollback=last_rollback,
        )
    )
