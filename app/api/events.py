"""/v1/events: take back what was said about a sample."""

from typing import Annotated

from fastapi import APIRouter, Path

from app.api.bodies import MAX_NUMBER, PROBLEMS, Body, Note
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.labelling import undo_event
from app.library.shapes.labels import UndoneShape, undone_shape

router = APIRouter(prefix="/v1/events", tags=["samples"], responses=PROBLEMS)


class Withdrawal(Body):
    """Why an event is taken back."""

    note: Note = None


@router.post("/{number}/undo", summary="撤销一个标签事件 | Withdraw a label event")
def undo(
    number: Annotated[int, Path(ge=1, le=MAX_NUMBER, description="事件编号 | number of the event")],
    engine: Database,
    asker: Asker,
    work: Work,
    body: Withdrawal = Withdrawal(),
) -> UndoneShape:
    """Withdraw an event by another one, in the name of the key's user; undo the undo to bring it back."""
    with work.words.one():
        return undone_shape(undo_event(engine, number, by=asker.user, note=body.note), number)
