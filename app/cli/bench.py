"""`wenlei bench`: how fast a bundle is on this machine, and how much memory it takes."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli.classify import read_lines
from app.settings import load_settings
from model.bundle import open_bundle
from model.console import JsonFlag, emit
from model.errors import BadInput
from model.runtime.bench import BATCH, Report
from model.runtime.bench import bench as measure


def bench(
    bundle: Annotated[Path | None, typer.Option(help="模型包目录 | folder of the bundle")] = None,
    file: Annotated[
        Path | None, typer.Option(help="用此文件的文本测量，每行一条 | measure on these texts, one a line")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option(min=1, help="自造文本的词元数，默认 32 | tokens of a made-up text, by default 32")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, max=64, help="推理线程数 | threads of a session")] = 1,
    runs: Annotated[int, typer.Option(min=1, help="测量轮数 | rounds to measure")] = 200,
    as_json: JsonFlag = False,
) -> None:
    """Measure every precision of the bundle, in turn."""
    settings = load_settings(bundles=bundle and (bundle,))
    if not settings.bundles:
        raise BadInput("no model given; name the folder of a bundle with --bundle")
    opened = open_bundle(settings.bundles[0])
    texts = list(read_lines(file, opened.manifest.normaliser)) if file else None
    report = measure(opened, texts=texts, tokens=tokens, threads=threads, runs=runs)
    emit(report.to_json(), as_json=as_json, render=lambda console: _show(console, report))


def _show(console: Console, report: Report) -> None:
    table = Table(
        "精度 | precision",
        "p50 ms",
        "p99 ms",
        "加速 | speed-up",
        f"条/秒 | texts/s ({BATCH})",
        "内存 | memory MiB",
        "文件 | file MiB",
        title=f"{report.bundle} {report.version}",
        caption=f"{report.tokens} tokens, {report.threads} thread(s), {report.runs} rounds; "
        f"分词 | encoding {report.encode_ms} ms",
    )
    for precision, figures in report.precisions.items():
        speedup = report.speedup.get(precision)
        table.add_row(
            precision,
            f"{figures.p50_ms:.2f}",
            f"{figures.p99_ms:.2f}",
            "" if speedup is None else f"{speedup:.2f}x",
            f"{figures.texts_per_second:.0f}",
            "" if figures.memory_mib is None else f"{figures.memory_mib:.0f}",
            f"{figures.file_mib:.1f}",
        )
    console.print(table)
