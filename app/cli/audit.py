"""`wenlei audit …`: who did what when."""

from typing import Annotated

import typer
from rich.table import Table

from app.library.shapes.people import audit_list
from app.settings import load_settings
from app.store.audit import AuditEvent, latest_events
from app.store.database import connect, open_database, reading
from model.console import JsonFlag, emit

app = typer.Typer(no_args_is_help=True, help="审计日志 | the log of who did what")


@app.callback()
def audit() -> None:
    """审计日志 | the log of who did what, which nobody can change."""


@app.command("list")
def list_events(
    limit: Annotated[int, typer.Option(min=1, help="最多条数 | how many at most")] = 100,
    before: Annotated[
        int | None, typer.Option(help="只列此编号之前的，用于翻页 | only those before this id, to page on")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """列出最近的操作，新的在前 | list what was done lately, the newest first."""
    with open_database(load_settings()) as engine, connect(engine) as connection, reading(connection):
        found = latest_events(connection, limit, before=before)
    emit(
        audit_list(found),
        as_json=as_json,
        render=lambda console: console.print(_table(found)),
    )


def _table(found: list[AuditEvent]) -> Table:
    table = Table()
    for heading in ("时间 | at", "操作者 | who", "操作 | action", "对象 | target", "详情 | details"):
        table.add_column(heading, overflow="fold")
    for event in found:
        details = " ".join(f"{name}={value}" for name, value in event.details.items() if value is not None)
        table.add_row(event.at, event.actor, event.action, event.target, details)
    return table
