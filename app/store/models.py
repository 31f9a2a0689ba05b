"""The moves of models: which bundle went live under which name, by whom, and by what verdict."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from app.store.tables import model_moves
from model.errors import BadInput
from model.provenance import now

PROMOTE, ROLLBACK = "promote", "rollback"


class Move(NamedTuple):
    """A bundle went live as `model`@`alias`. number: 1, 2, 3, …; verdict: of the gate, empty for a rollback."""

    model: str
    alias: str
    number: int
    action: str
    version: str
    bundle: str
    path: str
    snapshot: str
    verdict: Mapping[str, Any]
    actor: str
    at: str
    note: str | None


def moves(connection: sa.Connection, model: str | None = None, alias: str | None = None) -> list[Move]:
    """All moves, or those of a model, or of one of its aliases; the oldest first."""
    query = sa.select(model_moves).order_by(model_moves.c.model, model_moves.c.alias, model_moves.c.number)
    if model is not None:
        query = query.where(model_moves.c.model == model)
    if alias is not None:
        query = query.where(model_moves.c.alias == alias)
    return [_move(row) for row in connection.execute(query)]


def live(history: Sequence[Move]) -> list[Move]:
    """The bundles of one alias, from the first that went live to the one that is live now.

    A rollback takes the last one away. history: of that alias, the oldest first.
    """
    stack: list[Move] = []
    for move in history:
        if move.action == ROLLBACK:
            stack.pop()
        else:
            stack.append(move)
    return stack


def append_move(connection: sa.Connection, move: Move) -> None:
    """Write down `move`, which follows on the moves that whoever decided on it has seen.

    Raises:
        BadInput: there is another move of that number: somebody was faster.
    """
    values = {**move._asdict(), "verdict": json.dumps(move.verdict, ensure_ascii=False)}
    try:
        connection.execute(sa.insert(model_moves).values(values))
    except IntegrityError:
        raise BadInput(
            f"{move.model}@{move.alias} was moved in the meantime by somebody else; look at it with wenlei models show "
            f"{move.model}, and decide again"
        ) from None


def next_move(history: Sequence[Move], **changes: Any) -> Move:
    """The move that follows on `history`, now; `changes`: all but its number and time."""
    return Move(number=len(history) + 1, at=now(), **changes)


def _move(row: Any) -> Move:
    values = {name: getattr(row, name) for name in Move._fields}
    return Move(**{**values, "verdict": json.loads(row.verdict)})
