"""`wenlei demo`: the loop, closed on real reviews."""

from pathlib import Path
from typing import Annotated

import typer

from app.demo import run_demo, show
from model.console import JsonFlag, emit


def demo(
    out: Annotated[Path, typer.Option(help="演示的文件夹 | folder of the demo")] = Path("var/demo"),
    json: JsonFlag = False,
) -> None:
    """Run every step that is not done yet, then print the table."""
    summary = run_demo(out)
    emit(summary, as_json=json, render=lambda console: show(summary, console))
