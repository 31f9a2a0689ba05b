"""Promote a bundle, roll back to the one before it, and find what is live; every move is kept, and in the audit log."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.promotion.judging import Verdict, judge
from app.store.audit import record
from app.store.database import connect, reading, writing
from app.store.models import PROMOTE, ROLLBACK, Move, append_move, live, moves, next_move
from model.bundle import Bundle, open_bundle
from model.errors import BadBundle, BadInput, UnknownModel
from model.snapshot import Snapshot
from model.types import Split

CHAMPION = "champion"
NAME = re.compile(r"[\w.-]{1,64}")


def promote(
    engine: sa.Engine,
    bundle: Bundle,
    *,
    model: str,
    alias: str,
    snapshot: Snapshot,
    split: Split,
    margin: float,
    by: str,
    force: bool = False,
    note: str | None = None,
) -> tuple[Move, Verdict]:
    """Let `bundle` be live as `model`@`alias`, if the gate lets it pass.

    The gate takes its time, and somebody else may have promoted in the meantime: then nothing is changed. force:
    without asking the gate about the bundle that is live, with a note why.

    Raises:
        BadInput: the gate refuses it, it is live already, or somebody was faster; a name is none.
    """
    for what, name in (("--model", model), ("--alias", alias)):
        if not NAME.fullmatch(name):
            raise BadInput(f"{what} {name!r}: a name is 1 to 64 letters, digits or . _ -, without spaces")
    if force and not note:
        raise BadInput("--force needs a --note that says why the gate is passed over")
    history = history_of(engine, model, alias)
    now_live = live(history)
    if now_live and now_live[-1].version == bundle.version:
        raise BadInput(f"{bundle.path} (version {bundle.version}) is {model}@{alias} already")
    champion = open_live(now_live[-1]) if now_live and not force else None
    verdict = judge(bundle, champion, snapshot, split=split, margin=margin)
    if not verdict.passed:
        raise BadInput(f"{bundle.path} is not promoted: {reason(verdict)}; make it better, or --force it with a --note")
    move = next_move(
        history,
        model=model,
        alias=alias,
        action=PROMOTE,
        version=bundle.version,
        bundle=bundle.manifest.name,
        path=str(bundle.path.resolve()),
        snapshot=bundle.manifest.snapshot,
        verdict={**verdict.to_json(), "forced": force},
        actor=by,
        note=note,
    )
    _append(engine, move)
    return move, verdict


def roll_back(engine: sa.Engine, *, model: str, alias: str, by: str, note: str | None = None) -> Move:
    """Let the bundle be live again that was so before the present one.

    Raises:
        UnknownModel: there is no such model. BadInput: nothing was live before; or somebody was faster.
        BadBundle: that bundle is not there any more, or was changed.
    """
    history = history_of(engine, model, alias)
    now_live = live(history)
    if not now_live:
        raise UnknownModel(f"there is no {model}@{alias}; wenlei models list shows what there is")
    if len(now_live) < 2:
        raise BadInput(
            f"{model}@{alias} has been {now_live[-1].version} from the first; there is nothing to go back to"
        )
    before = now_live[-2]
    open_live(before)
    move = next_move(
        history,
        **{name: getattr(before, name) for name in ("model", "alias", "version", "bundle", "path", "snapshot")},
        action=ROLLBACK,
        verdict={},
        actor=by,
        note=note,
    )
    _append(engine, move)
    return move


def history_of(engine: sa.Engine, model: str, alias: str) -> list[Move]:
    """All moves of an alias, the oldest first."""
    with connect(engine) as connection, reading(connection):
        return moves(connection, model, alias)


def all_live(engine: sa.Engine) -> list[Move]:
    """What is live now under each name."""
    with connect(engine) as connection, reading(connection):
        every = moves(connection)
    by_alias: dict[tuple[str, str], list[Move]] = {}
    for move in every:
        by_alias.setdefault((move.model, move.alias), []).append(move)
    return [live(history)[-1] for history in by_alias.values()]


def find_live(engine: sa.Engine, name: str) -> Bundle:
    """The bundle that is live as `name`: MODEL, which is its champion, or MODEL@ALIAS.

    Raises:
        UnknownModel: none is. BadBundle: it is not there any more, or was changed.
    """
    model, _, alias = name.partition("@")
    now_live = live(history_of(engine, model, alias or CHAMPION))
    if not now_live:
        raise UnknownModel(f"no bundle is live as {model}@{alias or CHAMPION}; promote one with wenlei models promote")
    return open_live(now_live[-1])


def open_live(move: Move) -> Bundle:
    """The bundle of a move, which has to be what it was then.

    Raises:
        BadBundle: it is not.
    """
    bundle = open_bundle(Path(move.path))
    if bundle.version != move.version:
        raise BadBundle(
            f"{move.path} is version {bundle.version}, {move.model}@{move.alias} was {move.version}; put that one "
            "back, or promote another with --force"
        )
    return bundle


def reason(verdict: Verdict) -> str:
    """Why the gate says what it says."""
    its = f"{verdict.metric} {100 * verdict.challenger:.2f} on {verdict.samples:,} {verdict.split} samples"
    if verdict.champion is None or verdict.low is None or verdict.high is None:
        return f"{its}; nothing to compare with"
    says = "rules out" if verdict.passed else "does not rule out"
    return (
        f"{its}, the one that is live has {100 * verdict.champion:.2f}; the difference, {100 * verdict.low:+.2f} to "
        f"{100 * verdict.high:+.2f} points, {says} that it is worse by more than {100 * verdict.margin:g}"
    )


def _append(engine: sa.Engine, move: Move) -> None:
    details: Mapping[str, Any] = {"version": move.version, "path": move.path, "note": move.note}
    with connect(engine) as connection, writing(connection):
        append_move(connection, move)
        record(
            connection, actor=move.actor, action=f"model.{move.action}", target=f"{move.model}@{move.alias}", **details
        )
