"""`wenlei library rollback`: back to a snapshot, and forth again."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.agreeing import By, Foreseen, LibraryName, Note, Yes, agreed, examples, line, person
from app.library.rolling import RolledBack, preview_rollback, roll_back
from app.library.shapes.upkeep import rolled_back_shape
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress
from model.errors import BadInput
from model.snapshot import describe_snapshot
from model.types import preview

ROLLBACK_EXAMPLES = examples(
    ("有哪些快照 | which snapshots there are", "wenlei library snapshots"),
    ("先预览：会涉及多少事件、样本 | look first at what it touches", "wenlei library rollback 85a6e901"),
    ("生效，并记下由谁 | do it, and say who did", "wenlei library rollback 85a6e901 --yes --by 标注员甲"),
    ("撤销最近一次回滚 | take the last rollback back", "wenlei library rollback --undo"),
)


def rollback(
    snapshot: Annotated[
        str | None,
        typer.Argument(
            help="回到哪个快照：哈希、其开头至少 4 位或文件夹 | the snapshot: hash, beginning of it, or folder"
        ),
    ] = None,
    undo: Annotated[bool, typer.Option("--undo", help="撤销最近一次回滚 | take the last rollback back")] = False,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """回到某快照时的标签与标签体系；此后的事件不再算数，但不删除 | go back to a snapshot; nothing is deleted."""
    if undo == (snapshot is not None):
        raise BadInput("give either the snapshot to go back to, or --undo to take the last rollback back")
    if snapshot and Path(snapshot).is_dir():
        snapshot = describe_snapshot(Path(snapshot)).hash
    with open_database(load_settings()) as engine:
        actor = person(engine, by)

        def foresee() -> Foreseen:
            touched = preview_rollback(engine, library, snapshot)
            return Foreseen(
                rolled_back_shape(touched, undo=undo, applied=False), lambda console: _show(console, touched, undo=undo)
            )

        if not agreed(foresee, yes=yes, as_json=as_json):
            return
        with progress("更新样本 | updating samples", None) as advance:
            done = roll_back(engine, library, snapshot, by=actor, note=note, on_samples=advance)

    def render(console: Console) -> None:
        if yes:  # else it was shown before it was agreed to
            _show(console, done, undo=undo)
        if undo:
            line(console, "已生效；再次回滚 | in force; to roll back again: " + _way(done.snapshot, library))
        else:
            line(console, "已生效；撤销 | in force; to take it back: " + _way("--undo", library))

    emit(rolled_back_shape(done, undo=undo, applied=True), as_json=as_json, render=render)


def _show(console: Console, done: RolledBack, *, undo: bool) -> None:
    if undo:
        line(console, f"撤销回滚 undo the rollback to: {done.snapshot}")
        count = "再次算数的事件 events that count again"
    else:
        line(console, f"回滚到快照 roll back to snapshot: {done.snapshot}")
        count = "不再算数的事件 events that count no more"
    line(console, f"  {count} {done.events:,}，涉及样本 samples touched {done.samples:,}")
    before, after = done.before.labels, done.after.labels
    for what, labels in (
        ("不再有的类别 | classes gone", [label for label in before if label not in after]),
        ("恢复的类别 | classes back", [label for label in after if label not in before]),
    ):
        if labels:
            line(console, f"  {what}: {preview(labels)}")


def _way(where: str, library: str) -> str:
    return f"wenlei library rollback {where}" + ("" if library == "default" else f" --library {library}")
