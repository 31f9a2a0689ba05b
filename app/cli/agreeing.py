"""Changes that are looked at before they are made: what one touches is shown, and then a person or --yes agrees."""

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple

import sqlalchemy as sa
import typer
from rich.console import Console

from app.people.accounts import check_person, who_runs_this
from model.console import emit, messages, say

YES = ("y", "yes", "是")
Yes = Annotated[bool, typer.Option("--yes", "-y", help="不再询问，直接生效 | put it into force without asking")]
By = Annotated[
    str | None,
    typer.Option(help="由谁：wenlei 用户，默认系统用户 | who does so: a user; by default that of the system"),
]
Note = Annotated[str | None, typer.Option(help="备注 | a note")]
LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]


class Foreseen(NamedTuple):
    """What a change would touch: as JSON, and as people read it."""

    result: Mapping[str, Any]
    render: Callable[[Console], None]


def agreed(foresee: Callable[[], Foreseen], *, yes: bool, as_json: bool) -> bool:
    """Whether to make the change: --yes says so, or somebody at a terminal who was shown what it touches.

    Elsewhere, what it would touch is the result of the command, and nothing is to be changed.

    Raises:
        typer.Exit: with code 1, somebody at the terminal said no, or nothing.
    """
    if yes:
        return True
    foreseen = foresee()
    if as_json or not sys.stdin.isatty():
        emit(foreseen.result, as_json=as_json, render=foreseen.render)
        say("未生效；加 --yes 使之生效 | nothing was changed; add --yes to put it into force")
        return False
    foreseen.render(messages)
    # not typer.confirm: it writes to stdout, where the result goes
    messages.print("使之生效？| Put it into force? [y/N] ", end="", markup=False, highlight=False)
    said = sys.stdin.readline()
    if not said.endswith("\n"):  # the end of the input
        say("")
    if said.strip().lower() not in YES:
        say("未生效 | nothing was changed")
        raise typer.Exit(1)
    return True


def person(engine: sa.Engine, by: str | None) -> str:
    """Who makes the change: the user that --by names, else whoever runs the command.

    Raises:
        BadInput: there is no such user, or not any more.
    """
    return who_runs_this() if by is None else check_person(engine, by)


def line(console: Console, text: str) -> None:
    """One line, however long: names are shown as they are, and what is copied is not broken."""
    console.print(text, soft_wrap=True, highlight=False, markup=False, emoji=False)


def examples(*given: tuple[str, ...]) -> str:
    """What stands below a command's help: for each example what it does, then its commands, each on its line."""
    lines = (text for example in given for text in (f"# {example[0]}", *example[1:]))
    return "\n".join(["\b", "例 | Examples", *lines])  # \b: typer keeps the line breaks
