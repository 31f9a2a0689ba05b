"""How every command talks: its result on stdout, as text or as one JSON object; all else on stderr."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

import typer
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")
JsonFlag = Annotated[
    bool, typer.Option("--json", help="结果输出为一个 JSON 对象 | print the result as one JSON object")
]

messages = Console(stderr=True)
LOG_SECONDS = 5.0  # at least so long between two lines of progress in a log


def emit(result: Mapping[str, Any], *, as_json: bool, render: Callable[[Console], None] | None = None) -> None:
    """Print `result`: as one line of JSON, by `render`, or as a line for each of its keys."""
    if as_json:
        sys.stdout.write(json.dumps(result, ensure_ascii=False) + "\n")
        sys.stdout.flush()  # a server's reader waits for this line, not for the server's end
        return
    console = Console(markup=False, emoji=False)  # texts and labels are shown as they are, [brackets] and :colons: too
    if render:
        render(console)
        return
    width = max((cell_len(key) for key in result), default=0)
    for key, value in result.items():
        shown = json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)
        # Paths are copied from here, so that a value is neither cut off nor broken where it is longer than the line.
        console.print(f"{set_cell_size(key, width)}  {shown}", highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Tell the person who waits what is going on."""
    messages.print(message, highlight=False, markup=False, soft_wrap=True)  # what is copied must not be broken


@contextmanager
def progress(description: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Progress on stderr, a bar on a terminal and a line now and then in a log.

    The block gets a function that moves it on by so many steps.
    """
    if not messages.is_terminal:
        yield _log_progress(description, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=messages) as bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def _log_progress(description: str, total: float | None) -> Callable[[float], None]:
    done, told, started = 0.0, 0, time.monotonic()
    quiet_until = started + LOG_SECONDS

    def advance(steps: float) -> None:
        nonlocal done, told, quiet_until
        done += steps
        now = time.monotonic()
        if total and now >= quiet_until and (tenth := int(10 * done / total)) > told:
            told, quiet_until = tenth, now + LOG_SECONDS
            say(f"{description} {done:,.0f}/{total:,.0f}, {now - started:.0f} s")

    return advance


def track(items: Iterable[Item], description: str, total: int | None) -> Iterator[Item]:
    """`items`, with a progress bar beside them."""
    with progress(description, total) as advance:
        for item in items:
            yield item
            advance(1)
