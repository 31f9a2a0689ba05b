"""`wenlei export`: a run as an ONNX bundle."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from model.bundle import Bundle
from model.console import JsonFlag, emit
from model.snapshot import open_snapshot
from training.cli.common import start_torch


def export(
    run: Annotated[Path, typer.Argument(help="已完成的训练记录 | a finished run")],
    out: Annotated[Path, typer.Option(help="模型包文件夹 | folder of the bundle")],
    precision: Annotated[
        str | None, typer.Option(help="逗号分隔，如 fp32,int8；默认全部 | comma-separated; all by default")
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="训练所用快照，若已搬走 | the run's snapshot, if it has been moved")
    ] = None,
    name: Annotated[str | None, typer.Option(help="模型名，默认同文件夹名 | name of the model")] = None,
    abstain_below: Annotated[
        float, typer.Option(min=0, max=1, help="最高分低于此值则拒识 | abstain when the best score is below")
    ] = 0.0,
    json: JsonFlag = False,
) -> None:
    """把训练记录导出为 ONNX 模型包；与训练结果不一致则拒绝。| Export a run as an ONNX bundle, through a parity gate."""
    start_torch()
    from model.run import Run
    from training.export import export_run

    bundle = export_run(
        Run.open(run),
        out=out,
        precisions=[part.strip() for part in precision.split(",") if part.strip()] if precision else None,
        snapshot=open_snapshot(snapshot) if snapshot else None,
        name=name,
        abstain_below=abstain_below,
    )
    result = {"bundle": str(bundle.path), "version": bundle.version, "parity": bundle.manifest.parity}
    emit(result, as_json=json, render=lambda console: _show(console, bundle))


def _show(console: Console, bundle: Bundle) -> None:
    """How like the run its exports are, then where the bundle lies, which the next command asks for."""
    table = Table("精度 precision", "文本 texts", "标签一致 same labels", "logit 最大差 largest difference")
    for precision, parity in bundle.manifest.parity.items():
        counts = (f"{parity[name]:,}" for name in ("samples", "same_labels"))
        table.add_row(precision, *counts, f"{parity['max_logit_difference']:.2g}")
    console.print(table)
    for name, value in (("版本 version", bundle.version), ("模型包 bundle", bundle.path)):
        console.print(f"{name}  {value}", soft_wrap=True, markup=False, highlight=False)
