"""`wenlei compare`: which of several runs is best, and whether that is more than chance."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from model.comparison import NAMES, REPORT, ComparisonShape, shown, shown_metrics
from model.console import JsonFlag, emit
from model.types import Split
from training.cli.common import HomeOption, start_torch

RUNS_HELP = (
    "训练记录文件夹；只差随机种子的自动合在一起，也可写 名称=记录,记录 | folders of runs; those that differ in "
    "their seed alone are taken together, and NAME=RUN,RUN does so by name"
)


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN…", help=RUNS_HELP)],
    out: Annotated[
        Path | None, typer.Option(help="结果文件夹，默认 HOME/comparisons/快照 | folder of the comparison")
    ] = None,
    split: Annotated[
        Split | None,
        typer.Option(help="在哪个划分上比较，默认 test，没有则 dev | test where all runs have it, else dev"),
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="按什么决定：accuracy、macro_f1、micro_f1 | what decides which is best")
    ] = None,
    margin: Annotated[
        float, typer.Option(min=0.01, max=20, help="差多少分以内算不差 | points within which one is no worse")
    ] = 0.5,
    live: Annotated[
        bool,
        typer.Option(
            help="导出模型包，在本机测速，并看同音字、拆字等写法 | export them, measure their speed here, and see how "
            "they take odd writing"
        ),
    ] = True,
    snapshot: Annotated[
        Path | None, typer.Option(help="快照现在的位置，若已移动 | where the snapshot is now, if it was moved")
    ] = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """比较多个训练：差距是否真实，该上线哪个；写出网页报告。| Compare runs, and say which should go live.

    例 Example:  wenlei compare var/runs/linear var/runs/bert --out var/comparison

    例 Example:  wenlei compare 教师=var/runs/bert-0,var/runs/bert-1 学生=var/runs/tiny-0,var/runs/tiny-1
    """
    start_torch()
    from training.comparison.candidates import read_contest
    from training.comparison.comparing import compare as judge

    contest = read_contest(runs, split=split, snapshot=snapshot)
    folder = out or home / "comparisons" / contest.snapshot.hash[:8]
    found = judge(contest, metric=metric, margin=margin, out=folder, live=live)
    emit({**found}, as_json=json, render=lambda console: show_comparison(console, found, folder / REPORT))


def show_comparison(console: Console, found: ComparisonShape, report: Path) -> None:
    """The candidates, what to take, and where the report is."""
    table = Table("", *("\n".join(NAMES[name]) for name in shown_metrics(found)), "p", "p50 ms", "MiB")
    best = found["candidates"][0]["name"]
    p_values = {
        pair["other"]: pair["differences"][found["metric"]]["p_holm"] for pair in found["pairs"] if pair["one"] == best
    }
    for candidate in found["candidates"]:
        figures = [shown(candidate["figures"][name], "\n") for name in shown_metrics(found)]
        p = f"{p_values[candidate['name']]:.2g}" if candidate["name"] in p_values else ""
        fastest = min((pace["p50_ms"] for pace in candidate["speed"].values()), default=None)
        table.add_row(
            candidate["name"], *figures, p, "" if fastest is None else f"{fastest:.2f}", f"{candidate['size_mib']:.1f}"
        )
    console.print(table)
    advice = found["recommendation"]
    console.print(advice["reason"], markup=False, highlight=False)
    console.print(advice["reason_en"], markup=False, highlight=False)
    console.print(f"报告 report  {report}", soft_wrap=True, markup=False, highlight=False)
