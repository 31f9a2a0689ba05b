"""/v1/snapshots: freeze a library, look at what was frozen, compare, download.

A snapshot is named by its hash; the server's folders are neither taken nor told.
"""

from contextlib import ExitStack
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse
from pydantic import Field

from app.api.asked import Asked, PathSnapshot, Plain
from app.api.bodies import PROBLEMS
from app.api.deps import Asker, Database, ServerSettings
from app.api.downloads import Download, write_download
from app.api.scratch import scratch_folder, telling_full_disk
from app.api.work import Work
from app.library.diffing import diff_snapshots
from app.library.exporting import ExportFormat
from app.library.recorded import find_record, list_snapshots, open_recorded
from app.library.shapes.snapshots import (
    DiffShape,
    FrozenShape,
    SnapshotDetails,
    SnapshotList,
    diff_shape,
    frozen_shape,
    snapshot_details,
    snapshot_shape,
)
from app.library.snapshots import Conflicts, freeze, gaps
from app.library.splits import Splitter
from app.store.audit import record
from app.store.database import connect, writing
from model.errors import BadSnapshot
from model.near import NearSettings
from model.snapshot import Snapshot
from model.types import Split

router = APIRouter(prefix="/v1/snapshots", tags=["snapshots"], responses=PROBLEMS)

MOST_EXAMPLES = 100  # of each kind
LARGEST_SEED = 2**63 - 1


class Freezing(Asked):
    """What to freeze, and how: as the options of `wenlei library snapshot`."""

    library: Plain = Field(default="default", description="样本库名称 | name of the library")
    test: float = Field(default=0.1, ge=0, lt=1, description="测试集比例 | fraction for test")
    dev: float = Field(default=0.1, ge=0, lt=1, description="开发集比例 | fraction for dev")
    seed: int = Field(default=0, ge=0, le=LARGEST_SEED, description="划分的随机种子 | seed of the splits")
    conflicts: Conflicts = Field(default=Conflicts.KEEP, description="标签冲突的样本 | samples in conflict")
    near: float = Field(
        default=NearSettings().threshold, ge=0.5, le=1, description="近重复的相似度 | how similar near duplicates are"
    )


class SnapshotsOf(Asked):
    """Of which library; without a name, of all."""

    library: Plain | None = Field(default=None, description="样本库名称 | name of the library")


class Examples(Asked):
    """How many changes are shown whole."""

    examples: int = Field(default=0, ge=0, le=MOST_EXAMPLES, description="每类变化几条样本 | samples of each kind")


class Export(Asked):
    """As what, and which split of it."""

    format: ExportFormat = Field(description="导出格式 | format")
    split: Split | None = Field(default=None, description="只导出一个划分 | one split only")


@router.get("", summary="快照列表 | The snapshots that were frozen")
def list_frozen(of: Annotated[SnapshotsOf, Query()], engine: Database) -> SnapshotList:
    """Oldest first."""
    return {"snapshots": [snapshot_shape(record) for record in list_snapshots(engine, of.library)]}


@router.post("", status_code=201, summary="冻结样本库 | Freeze a library")
def freeze_library(
    wanted: Freezing, engine: Database, settings: ServerSettings, asker: Asker, work: Work
) -> FrozenShape:
    """Freeze the labelled samples; the same content gives the same snapshot."""
    splitter = Splitter(test=wanted.test, dev=wanted.dev, seed=wanted.seed)
    with work.tasks.one(asker.user), telling_full_disk():
        frozen = freeze(
            engine,
            library=wanted.library,
            folder=settings.home / "snapshots" / wanted.library,
            splitter=splitter,
            conflicts=wanted.conflicts,
            near=NearSettings(wanted.near),
        )
        with connect(engine) as connection, writing(connection):
            record(
                connection,
                actor=asker.user,
                action="library.freeze",
                target=wanted.library,
                snapshot=frozen.snapshot.hash,
            )
    return frozen_shape(frozen, gaps(frozen))


@router.get("/{snapshot}", summary="一个快照 | One snapshot")
def show_snapshot(snapshot: PathSnapshot, engine: Database) -> SnapshotDetails:
    """Its counts, its classes, and whether it is still there."""
    return snapshot_details(find_record(engine, snapshot))


@router.get("/{before}/diff/{after}", summary="比较两个快照 | What changed from one snapshot to another")
def compare(
    before: PathSnapshot,
    after: PathSnapshot,
    shown: Annotated[Examples, Query()],
    engine: Database,
    asker: Asker,
    work: Work,
) -> DiffShape:
    """Samples added, removed, relabelled (by pairs of classes) and moved between splits."""
    with work.tasks.one(asker.user):
        old, new = _opened(engine, before), _opened(engine, after)
        return diff_shape(old, new, diff_snapshots(old, new, examples=shown.examples))


@router.get("/{snapshot}/export", summary="下载快照 | Download a snapshot", response_class=StreamingResponse)
def export(
    snapshot: PathSnapshot,
    wanted: Annotated[Export, Query()],
    engine: Database,
    settings: ServerSettings,
    asker: Asker,
    work: Work,
) -> Download:
    """The snapshot in a format that other tools read; the folder of `hf` comes as a zip."""
    with ExitStack() as until_sent:
        until_sent.enter_context(work.exports.one(asker.user))
        folder = until_sent.enter_context(scratch_folder(settings.home))
        found = _opened(engine, snapshot)
        path = write_download(found, wanted.format, wanted.split, folder)
        return Download(path, after=until_sent.pop_all())


def _opened(engine: sa.Engine, start: str) -> Snapshot:
    """The snapshot, re-hashed; what is wrong with it is told without its folder.

    Raises:
        BadSnapshot: there is none, or several, or it is not what it was.
    """
    found = find_record(engine, start)
    try:
        return open_recorded(found)
    except BadSnapshot as error:
        raise BadSnapshot(str(error).replace(str(found.path), f"snapshot {found.hash}")) from None
