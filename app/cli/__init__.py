"""The console script `wenlei`: its commands, and how it says what went wrong.

Only the command that is called is imported; training's are found through entry points, so that a server needs
no torch to show its help.
"""

import io
import shutil
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import entry_points, version
from typing import Annotated

import typer
from rich.text import Text

from model.errors import MissingExtra, WenleiError

ENTRY_POINTS = "wenlei.commands"
INTERRUPTED = 128 + signal.SIGINT  # the exit code, as shells have it
EXTRAS = {"training": "train"}  # entry point → the extra that its imports come with

# Name → help. The module app.cli.NAME holds a function NAME, or, for a group, a typer.Typer `app`.
COMMANDS = {
    "classify": "对文本分类 | classify texts with a bundle",
    "serve": "启动 HTTP 服务 | serve bundles over HTTP",
    "demo": "演示：真实评论 → 样本库 → BERT → ONNX → 服务 | the whole loop on real reviews",
    "bench": "测量推理速度与内存 | measure the speed and memory of a bundle",
}
GROUPS = {
    "library": "标准样本库：导入、快照 | the standard-sample library: import, snapshots",
    "taxonomy": "标签体系：声明、改名、合并、拆分、移动 | the taxonomy: declare, rename, merge, split, move classes",
    "models": "上线的模型：晋升、回退 | the models that are live: promote, roll back",
    "review": "复核：领取、接受、改标签、跳过 | review samples: claim, accept, change, skip",
    "user": "用户 | users, who hold keys",
    "key": "API 密钥 | API keys",
    "audit": "审计日志 | the log of who did what",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0, or 2 after one line on stderr that says what is wrong, or 130, or 143."""
    signal.signal(signal.SIGTERM, _terminate)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a GBK terminal can't show every character
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build(given)(given, prog_name="wenlei")
    except (WenleiError, OSError) as error:
        if _debug():
            raise
        sys.stderr.write(f"wenlei: {describe(error)}\n")
        sys.exit(2)
    except KeyboardInterrupt:
        _say_interrupted()
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:  # of a command that runs typer turns the interrupt into this
            _say_interrupted()
        raise


def build(arguments: Sequence[str]) -> typer.Typer:
    """The command line, of which only what `arguments` call is imported.

    Raises:
        MissingExtra: they call none of our own commands, and the others can't be imported.
    """
    if "--help" in arguments or len(arguments) < 2:
        _fold_help()
    called = next((argument for argument in arguments if not argument.startswith("-")), None)
    root = typer.Typer(
        name="wenlei",
        help="文类：中文文本分类，从标准样本库到高速服务 | Chinese text classification, from samples to a fast server",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    root.callback()(_root)
    for name, summary in GROUPS.items():
        group = import_module(f"app.cli.{name}").app if name == called else typer.Typer()
        root.add_typer(group, name=name, help=summary)
    for name, summary in COMMANDS.items():
        function = getattr(import_module(f"app.cli.{name}"), name) if name == called else _not_called
        root.command(name, help=summary)(function)
    if called not in COMMANDS | GROUPS:
        _add_entry_points(root, called)
    return root


def describe(error: Exception) -> str:
    """`error` on one line."""
    message = str(error)
    if isinstance(error, shutil.Error):  # of a copied folder: a list of (from, to, why)
        message = "; ".join(f"{target}: {reason}" for _, target, reason in error.args[0])
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        message = f"{error.filename}: {error.strerror}"
    return " ".join(message.split())


def _fold_help() -> None:
    """Let help go on in the next line where it is too long for its column, also where it has no space to break at.

    Chinese has none, and would be cut.
    """
    from typer import rich_utils  # slow to import, and only needed for help

    class Folded(rich_utils.OptionHighlighter):
        def __call__(self, text: str | Text) -> Text:
            made = super().__call__(text)
            made.overflow = "fold"
            return made

    rich_utils.highlighter = Folded()


def _add_entry_points(root: typer.Typer, called: str | None) -> None:
    for entry_point in entry_points(group=ENTRY_POINTS):
        try:
            root.add_typer(entry_point.load())
        except ImportError as error:
            if called is not None:
                extra = EXTRAS.get(entry_point.name, entry_point.name)
                raise MissingExtra(
                    f"wenlei {called} can't be looked up: {error}; pip install 'wenlei[{extra}]'"
                ) from None


def _show_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"wenlei {version('wenlei')}\n")
        raise typer.Exit


def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="显示版本 | show the version")
    ] = False,
) -> None:
    """What can be asked of `wenlei` itself."""


def _not_called() -> None:
    """Stands for a command in the list of commands."""


def _say_interrupted() -> None:
    sys.stderr.write(
        "已中断；没有留下半成品，同样的命令可重来或继续 | interrupted; the same command starts over or goes on\n"
    )


def _terminate(*_: object) -> None:
    """End as after an error, so that half-written folders are removed."""
    sys.exit(128 + signal.SIGTERM)


def _debug() -> bool:
    from app.settings import load_settings  # pydantic is slow to import, and rarely needed here

    try:
        return load_settings().debug
    except WenleiError:
        return False
