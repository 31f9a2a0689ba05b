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

_HASH_START = re.compile(r"[0-9a-f]{4,32}")


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
    if folder.is_dir():
        return open_snapshot(folder)
    if not _HASH_START.fullmatch(reference):
        raise BadSnapshot(
            f"{reference!r} is neither a folder nor a hash (4 to 32 of its digits); see wenlei library snapshots"
        )
    found = [record for record in list_snapshots(engine) if record.hash.startswith(reference)]
    hashes = sorted({record.hash for record in found})
    if not hashes:
        raise BadSnapshot(
            f"no snapshot on record begins with {reference}; see wenlei library snapshots, or give a folder"
        )
    if len(hashes) > 1:
        raise BadSnapshot(f"{reference} begins {len(hashes)} snapshots ({preview(hashes)}); give more digits")
    there = [record.path for record in found if record.path.is_dir()]
    if not there:
        raise BadSnapshot(
            f"snapshot {hashes[0]} was at {found[-1].path}, which is gone; copy it back, or give its folder"
        )
    snapshot = open_snapshot(there[-1])
    if snapshot.hash != hashes[0]:
        raise BadSnapshot(f"{there[-1]} holds snapshot {snapshot.hash}, and {hashes[0]} is on record; copy it back")
    return snapshot
