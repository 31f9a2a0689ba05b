"""POST /v1/libraries/{name}/verify, reindex and rollback: whether a library is whole, and back to what it was."""

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, model_validator

from app.api.asked import Asked, DryRun, HashStart, PathLibrary
from app.api.bodies import PROBLEMS
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.cataloguing import library_size
from app.library.cataloguing import reindex as rebuild
from app.library.labelling import MAX_NOTE_CHARS
from app.library.recorded import list_snapshots
from app.library.rolling import preview_rollback, roll_back
from app.library.shapes.upkeep import (
    MOST_PROBLEMS,
    ReindexedShape,
    RolledBackShape,
    VerifiedShape,
    rolled_back_shape,
    verified_shape,
)
from app.library.verifying import verify as problems_of
from app.store.audit import record
from app.store.database import connect, writing

router = APIRouter(prefix="/v1/libraries", tags=["upkeep"], responses=PROBLEMS)


class Rollback(Asked):
    """Either the snapshot to go back to, or `undo`, which takes the last rollback back."""

    snapshot: HashStart | None = Field(default=None, description="快照哈希或其开头 | hash, or its beginning")
    undo: bool = Field(default=False, description="撤销最近一次回滚 | take the last rollback back")
    note: str | None = Field(default=None, max_length=MAX_NOTE_CHARS, description="备注 | a note")

    @model_validator(mode="after")
    def _either(self) -> "Rollback":
        if self.undo == (self.snapshot is not None):
            raise ValueError("give either snapshot or undo: true")
        return self


@router.post("/{name}/verify", summary="检查样本库与其快照 | Check a library and its snapshots")
def verify(library: PathLibrary, engine: Database, asker: Asker, work: Work) -> VerifiedShape:
    """All of the database that concerns the library, and every snapshot of it down to its last row."""
    with work.tasks.one(asker.user):
        folders = {str(frozen.path): f"of snapshot {frozen.hash}" for frozen in list_snapshots(engine, library)}
        found = problems_of(engine, library=library)
        first = [
            problem._replace(what=_without_folders(problem.what, folders)) for problem in islice(found, MOST_PROBLEMS)
        ]
        return verified_shape(len(first) + sum(1 for _ in found), first)


@router.post("/{name}/reindex", summary="重建目录与检索索引 | Make the catalogue and search index anew")
def reindex(library: PathLibrary, engine: Database, asker: Asker, work: Work) -> ReindexedShape:
    """Where verify advises it."""
    with work.tasks.one(asker.user):
        samples = library_size(engine, library)
        rebuild(engine, library)
        with connect(engine) as connection, writing(connection):
            record(connection, actor=asker.user, action="library.reindex", target=library)
    return {"library": library, "samples": samples}


@router.post("/{name}/rollback", summary="回滚到快照，或撤销回滚 | Go back to a snapshot, or forth again")
def rollback(
    library: PathLibrary,
    wanted: Rollback,
    query: Annotated[DryRun, Query()],
    engine: Database,
    asker: Asker,
    work: Work,
) -> RolledBackShape:
    """What was said since the snapshot does not count any more; nothing is deleted."""
    with work.tasks.one(asker.user):
        if query.dry_run:
            done = preview_rollback(engine, library, wanted.snapshot)
        else:
            done = roll_back(engine, library, wanted.snapshot, by=asker.user, note=wanted.note)
    return rolled_back_shape(done, undo=wanted.undo, applied=not query.dry_run)


def _without_folders(text: str, folders: dict[str, str]) -> str:
    """`text` with the server's folders called by what is in them."""
    for folder, name in folders.items():
        text = text.replace(folder, name)
    return text
