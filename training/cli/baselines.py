"""`wenlei baselines`: all architectures on one snapshot, and their comparison."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from model.comparison import REPORT
from model.console import JsonFlag, emit, say
from model.errors import BadInput, BadRun
from model.snapshot import open_snapshot
from training.cli.common import HomeOption, LimitOption, SnapshotOption, start_torch
from training.cli.compare import show_comparison
from training.comparison.lineup import BERT, CHEAP, ORDER, lineup, run_lineup

USUAL = ",".join((*CHEAP, BERT))


def baselines(
    snapshot: SnapshotOption,
    archs: Annotated[
        str, typer.Option(help=f"训练哪些，逗号分隔：{'、'.join(ORDER)} | which, with commas between")
    ] = USUAL,
    start: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ARCH=RUN",
            help="起点，可多次：bert 默认 offline，nezha、gpt、elmo 必须给 | what an architecture begins with; bert is "
            "offline unless given, nezha, gpt and elmo need one",
        ),
    ] = None,
    seeds: Annotated[str, typer.Option(help="随机种子，逗号分隔；三个起区间含种子 | seeds, with commas between")] = "0",
    minutes: Annotated[
        float | None, typer.Option(min=0, help="多少分钟后不再开始新的训练 | after which no more are begun")
    ] = None,
    max_length: Annotated[int, typer.Option(min=8, help="词元数上限 | tokens a text is cut to")] = 128,
    limit: LimitOption = None,
    live: Annotated[bool, typer.Option(help="导出并测速等 | export them, measure their speed and more")] = True,
    out: Annotated[
        Path | None, typer.Option(help="结果文件夹，默认 HOME/baselines/快照 | folder of the runs and the comparison")
    ] = None,
    home: HomeOption = Path("var"),
    json: JsonFlag = False,
) -> None:
    """在同一快照上训练各种架构，便宜的在前，然后比较；中断后同样的命令继续。| Train all, and compare them.

    例 Example:  wenlei baselines --snapshot var/snapshots/default/HASH

    例 Example:  wenlei baselines --snapshot var/snapshots/default/HASH --archs linear,bert,tinybert --seeds 0,1,2
    """
    opened = open_snapshot(snapshot)
    folder = out or home / "baselines" / opened.hash[:8]
    entries = lineup(
        snapshot,
        [arch.strip() for arch in archs.split(",")],
        starts=_starts(start or []),
        seeds=_numbers(seeds),
        max_length=max_length,
        limit=limit,
        folder=folder,
        home=home,
    )
    outcome = run_lineup(entries, minutes=minutes)
    for entry in outcome.failed:
        say(f"失败 failed: {entry}")
    for entry in outcome.left_out:
        say(f"没有时间 no time for: {entry}")
    if len(outcome.candidates) < 2:
        raise BadRun(
            f"{len(outcome.done)} of {len(entries)} trainings are done, too few to compare; see above why, and give "
            "the same command to go on"
        )
    start_torch()
    from training.comparison.candidates import read_contest
    from training.comparison.comparing import compare

    found = compare(
        read_contest(outcome.candidates, split=None, snapshot=snapshot),
        metric=None,
        margin=0.5,
        out=folder,
        live=live,
    )
    emit({**found}, as_json=json, render=lambda console: show_comparison(console, found, folder / REPORT))


def _starts(given: Sequence[str]) -> dict[str, str]:
    starts = {}
    for each in given:
        arch, equals, start = each.partition("=")
        if not (equals and start):
            raise BadInput(f"--start {each}: give ARCH=RUN, gpt=var/runs/my-gpt say")
        starts[arch] = start
    return starts


def _numbers(given: str) -> list[int]:
    try:
        return [int(each) for each in given.split(",")]
    except ValueError:
        raise BadInput(f"--seeds {given}: give numbers with commas between, 0,1,2 say") from None
