"""What the commands of training have in common: options, how torch is started, how figures are shown."""

import ctypes
import os
import sys
from importlib import util
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from model.errors import BadInput, MissingExtra

HomeOption = Annotated[
    Path, typer.Option(envvar="WENLEI_HOME", help="状态所在的文件夹 | the folder that holds all state")
]
SnapshotOption = Annotated[Path, typer.Option(help="快照文件夹 | folder of the snapshot")]
LimitOption = Annotated[int | None, typer.Option(min=1, help="最多用多少条训练样本 | train samples at most")]
SeedOption = Annotated[int, typer.Option(min=0, max=2**32 - 1, help="随机种子 | seed of all randomness")]
OutOption = Annotated[Path | None, typer.Option(help="训练记录文件夹 | folder of the run")]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # mallopt(3)


def start_torch() -> None:
    if missing := [name for name in ("torch", "transformers", "sklearn", "onnx") if util.find_spec(name) is None]:
        raise MissingExtra(f"training needs {', '.join(missing)}: pip install 'wenlei[train,cpu]'")
    # Threads that spin while they wait slow everything tenfold where other programs use the same cores.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _keep_freed_memory()
    from huggingface_hub.utils import logging as hub_logging
    from transformers.utils import logging

    hub_logging.set_verbosity_error()  # it would tell of every try to reach the hub; what comes of it is told below
    logging.set_verbosity_error()  # it would advise on what is done on purpose here
    logging.disable_progress_bar()


def _keep_freed_memory() -> None:
    """Let the process keep the memory that it frees: the next training step asks for it again."""
    if sys.platform == "linux" and (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)):
        mallopt(M_MMAP_THRESHOLD, 2**30)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def refuse_given(context: typer.Context, panel: str, place: str) -> None:
    """Refuse options of `panel` that were given on the command line, since nothing would come of them."""
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if getattr(option, "rich_help_panel", None) == panel and source and source.name == "COMMANDLINE":
            raise BadInput(f"{option.opts[0]} has no meaning with {place}; leave it out")


def choice(kind: type[Any], value: str, option: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise BadInput(f"{option} {value}: choose one of {', '.join(member.value for member in kind)}") from None


def show_run(console: Console, metrics: dict[str, Any], path: Path) -> None:
    """The figures, then where the run lies, which the next command asks for."""
    show_figures(console, metrics)
    console.print(f"训练记录 run  {path}", soft_wrap=True, markup=False, highlight=False)


def show_figures(console: Console, metrics: dict[str, Any]) -> None:
    table = Table("划分 split", "样本 samples", "准确率 accuracy", "宏平均 F1 macro-F1", "micro-F1", "ECE")
    for split, figures in metrics.items():
        intervals = [
            f"{figures[name]:.4f} [{figures[f'{name}_ci'][0]:.4f}, {figures[f'{name}_ci'][1]:.4f}]"
            for name in ("accuracy", "macro_f1")
        ]
        table.add_row(split, str(figures["n"]), *intervals, f"{figures['micro_f1']:.4f}", f"{figures['ece']:.4f}")
    console.print(table)
