"""Find the snapshots on record again: by hash, by the beginning of a hash, or by folder."""

import re
from pathlib import Path

import sqlalchemy as sa

from app.store.database import connect, reading
from app.store.libraries import get_library
from app.store.snapshots import RecordedSnapshot, recorded_snapshots
from model.errors import BadSnapshot
from model.snapshot import Snapshot, open_snapshot
from model.types import preview

HASH_START = re.compile(r"[0-9a-f]{4,32}")


def list_snapshots(engine: sa.Engine, library: str | None = None) -> list[RecordedSnapshot]:
    """The snapshots of one library, or of all, oldest first.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        if library is not None:
            get_library(connection, library)
        return recorded_snapshots(connection, library)


def find_snapshot(engine: sa.Engine, reference: str) -> Snapshot:
    """The snapshot that `reference` means, opened and re-hashed.

    reference: the folder of any snapshot, or the first 4 or more digits of the hash of one on record.

    Raises:
        BadSnapshot: it means none or several, the folder is gone, or its content is not what the record says.
    """
    folder = Path(reference)
    return open_snapshot(folder) if folder.is_dir() else open_recorded(find_record(engine, reference))


def find_record(engine: sa.Engine, start: str) -> RecordedSnapshot:
    """The record of the snapshot whose hash begins with `start`; of several, the last whose folder is still there.

    Raises:
        BadSnapshot: `start` is not 4 or more digits of a hash, or means none or several.
    """
    if not HASH_START.fullmatch(start):
        raise BadSnapshot(
            f"{start!r} is neither a folder nor a hash (4 to 32 of its digits); see wenlei library snapshots"
        )
    found = [record for record in list_snapshots(engine) if record.hash.startswith(start)]
    hashes = sorted({record.hash for record in found})
    if not hashes:
        raise BadSnapshot(f"no snapshot on record begins with {start}; see wenlei library snapshots, or give a folder")
    if len(hashes) > 1:
        raise BadSnapshot(f"{start} begins {len(hashes)} snapshots ({preview(hashes)}); give more digits")
    there = [record for record in found if record.path.is_dir()]
    return (there or found)[-1]


def open_recorded(record: RecordedSnapshot) -> Snapshot:
    """The snapshot on record, re-hashed.

    Raises:
        BadSnapshot: its folder is gone, or its content is not what the record says.
    """
    if not record.path.is_dir():
        raise BadSnapshot(
            f"snapshot {record.hash} was at {record.path}, which is gone; copy it back, or give its folder"
        )
    snapshot = open_snapshot(record.path)
    if snapshot.hash != record.hash:
        raise BadSnapshot(f"{record.path} holds snapshot {snapshot.hash}, and {record.hash} is on record; copy it back")
    return snapshot
