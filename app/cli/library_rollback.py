"""`wenlei library rollback`: back to a snapshot, and forth again."""

import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from app.library.rolling import RolledBack, preview_rollback, roll_back
from app.people.accounts import check_person, who_runs_this
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress, say
from model.errors import BadInput


def rollback(
    snapshot: Annotated[
        str | None,
        typer.Argument(help="回到哪个快照：哈希或其开头 | the snapshot to go back to: hash, or its beginning"),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="撤销最近一次回滚 | take the last rollback back")] = False,
    library: Annotated[str, typer.Option(help="样本库名称 | name of the library")] = "default",
    by: Annotated[str | None, typer.Option(help="由谁回滚（用户名，默认系统用户） | who does so: a user")] = None,
    note: Annotated[str | None, typer.Option(help="备注 | a note")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="不再询问，直接生效 | do it without asking")] = False,
    as_json: JsonFlag = False,
) -> None:
    """回到某快照时的标签与标签体系；此后的事件不再算数，但不删除 | go back to a snapshot; nothing is deleted."""
    if undo == (snapshot is not None):
        raise BadInput("give the snapshot to go back to, or --undo to take the last rollback back")
    with open_database(load_settings()) as engine:
        actor = who_runs_this() if by is None else check_person(engine, by)
        if not yes:
            foreseen = preview_rollback(engine, library, snapshot)
            if as_json or not sys.stdin.isatty():
                emit(
                    rollback_json(foreseen, undo=undo, applied=False),
                    as_json=as_json,
                    render=lambda console: _show(console, foreseen, undo),
                )
                say("未生效；加 --yes 使之生效 | nothing was changed; add --yes to do it")
                return
            _show(Console(), foreseen, undo)
            if not typer.confirm("使之生效？| Do it?", err=True):
                say("未生效 | nothing was changed")
                return
        with progress("更新样本 | updating samples", None) as advance:
            done = roll_back(engine, library, snapshot, by=actor, note=note, on_samples=advance)
    emit(
        rollback_json(done, undo=undo, applied=True), as_json=as_json, render=lambda console: _show(console, done, undo)
    )


def rollback_json(done: RolledBack, *, undo: bool, applied: bool) -> dict[str, Any]:
    """A rollback as commands print it, before or after it is done."""
    before, after = done.before.labels, done.after.labels
    return {
        "applied": applied,
        "undo": undo,
        "snapshot": done.snapshot,
        "events": done.events,
        "samples": done.samples,
        "classes_gone": [label for label in before if label not in after],
        "classes_back": [label for label in after if label not in before],
    }


def _show(console: Console, done: RolledBack, undo: bool) -> None:
    what = (
        "撤销回滚，再次算数 undo the rollback: counting again"
        if undo
        else "回滚，不再算数 roll back: not counting any more"
    )
    console.print(f"快照 snapshot {done.snapshot}", soft_wrap=True)
    console.print(f"{what}: 事件 events {done.events:,}  样本 samples {done.samples:,}", soft_wrap=True)
    if done.before.labels != done.after.labels:
        console.print(f"类别 classes: {len(done.before)} → {len(done.after)}")
