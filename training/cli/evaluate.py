"""`wenlei evaluate`: figures of a run or a bundle on a split."""

from pathlib import Path
from typing import Annotated

import typer

from model.console import JsonFlag, emit
from model.snapshot import open_snapshot
from model.types import Split
from training.cli.common import SnapshotOption, show_figures, start_torch


def evaluate(
    path: Annotated[Path, typer.Argument(metavar="RUN|BUNDLE", help="训练记录或模型包 | a run or a bundle")],
    snapshot: SnapshotOption,
    split: Annotated[Split, typer.Option(help="在哪个划分上评估 | which split")] = Split.TEST,
    precision: Annotated[str | None, typer.Option(help="模型包的精度，如 fp32、int8 | of a bundle: fp32, int8")] = None,
    json: JsonFlag = False,
) -> None:
    """在快照的一个划分上评估训练记录或模型包。| Evaluate a run or a bundle on one split of a snapshot."""
    start_torch()
    from training.evaluate import evaluate_path

    metrics = evaluate_path(path, open_snapshot(snapshot), split, precision=precision)
    emit(metrics, as_json=json, render=lambda console: show_figures(console, {split.value: metrics}))
