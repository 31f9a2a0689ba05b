"""`wenlei library sweeps`: what machines decided in one go, and how to take it back."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.agreeing import LibraryName, Note, examples
from app.library.shapes.sweeps import SweepList, sweep_list, undone_sweep_shape
from app.library.sweeping import list_sweeps, undo_sweep
from app.people.accounts import check_person
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress
from model.errors import BadInput

SWEEPS_EXAMPLES = examples(
    ("有哪些批次 | which sweeps there are", "wenlei library sweeps"),
    (
        "整批撤销，人标过的不受影响 | take one back; persons' words stand",
        "wenlei library sweeps --undo 3 --by 标注员甲",
    ),
)


def sweeps(
    undo: Annotated[
        int | None,
        typer.Option(min=1, max=2**31 - 1, help="撤销哪一批；撤销“撤销”即恢复 | the sweep to take back"),
    ] = None,
    by: Annotated[str | None, typer.Option(help="由谁撤销：wenlei 用户 | who takes it back: a user")] = None,
    library: LibraryName = "default",
    note: Note = None,
    as_json: JsonFlag = False,
) -> None:
    """机器批次：清洗、自动验收等整批的机器标签；可整批撤销 | what machines decided in one go; each can be undone."""
    if (undo is None) != (by is None):
        raise BadInput("--undo and --by go together: which sweep is taken back, and by whom")
    with open_database(load_settings()) as engine:
        if undo is None or by is None:
            found = sweep_list(library, list_sweeps(engine, library))
            emit(found, as_json=as_json, render=lambda console: _show(console, found))
            return
        person = check_person(engine, by)
        with progress("撤销 | taking back", None) as advance:
            swept = undo_sweep(engine, library=library, sweep=undo, by=person, note=note, on_samples=advance)
    emit(undone_sweep_shape(swept, undo), as_json=as_json)


def _show(console: Console, found: SweepList) -> None:
    table = Table()
    for heading in (
        "编号\nno.",
        "时间\nat, UTC",
        "种类\nkind",
        "模型\nmodel",
        "由谁\nby",
        "样本\nsamples",
        "撤销\nundone",
    ):
        table.add_column(heading, overflow="fold", no_wrap=heading.startswith("时间"))
    for sweep in found["sweeps"]:
        kind = sweep["kind"] if sweep["undoes"] is None else f"{sweep['kind']} {sweep['undoes']}"
        undone = "" if sweep["undone_by"] is None else str(sweep["undone_by"])
        changed = f"{sweep['outcome'].get('changed', 0):,}"
        at = sweep["at"][: len("2026-01-31T12:00")].replace("T", " ")  # to the minute, so that 80 columns hold it
        table.add_row(str(sweep["sweep"]), at, kind, sweep["actor"], sweep["by"], changed, undone)
    console.print(table)
