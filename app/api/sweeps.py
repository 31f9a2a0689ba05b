"""/v1/libraries/{name}/sweeps: what machines decided in one go, and how to take it back."""

from typing import Annotated

from fastapi import APIRouter, Path

from app.api.asked import PathLibrary
from app.api.bodies import PROBLEMS, Body, Note
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.shapes.sweeps import SweepList, UndoneSweepShape, sweep_list, undone_sweep_shape
from app.library.sweeping import list_sweeps, undo_sweep

router = APIRouter(prefix="/v1/libraries", tags=["sweeps"], responses=PROBLEMS)

LARGEST_SWEEP = 2**31 - 1


class SweepWithdrawal(Body):
    """Why a sweep is taken back."""

    note: Note = None


@router.get("/{name}/sweeps", summary="机器批次列表 | All sweeps")
def show_sweeps(library: PathLibrary, engine: Database) -> SweepList:
    """The doctor's cleanings, the gate's labels, and their undoings, oldest first."""
    return sweep_list(library, list_sweeps(engine, library))


@router.post("/{name}/sweeps/{number}/undo", summary="整批撤销 | Take a sweep back")
def undo(
    library: PathLibrary,
    number: Annotated[int, Path(ge=1, le=LARGEST_SWEEP, description="批次编号 | number of the sweep")],
    engine: Database,
    asker: Asker,
    work: Work,
    body: SweepWithdrawal = SweepWithdrawal(),
) -> UndoneSweepShape:
    """All of its events that still count are withdrawn, in the name of the key's user; undo that to bring them back."""
    with work.tasks.one(asker.user):
        swept = undo_sweep(engine, library=library, sweep=number, by=asker.user, note=body.note)
    return undone_sweep_shape(swept, number)
