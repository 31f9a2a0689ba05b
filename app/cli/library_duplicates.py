"""`wenlei library duplicates`: samples that are almost the same, and where their labels disagree."""

from typing import Annotated

import typer
from rich.console import Console

from app.library.duplicates import Duplicates, Member, find_duplicates, samples_to_read
from app.library.shapes.duplicates import duplicates_shape
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress
from model.near import NearSettings


def duplicates(
    library: Annotated[str, typer.Option(help="样本库名称 | name of the library")] = "default",
    threshold: Annotated[
        float, typer.Option(help="字二元组的 Jaccard 相似度，0.5 到 1 | similarity of the character bigrams, 0.5 to 1")
    ] = 0.8,
    conflicting: Annotated[
        bool, typer.Option("--conflicting", help="只看标签不一致的组 | only groups whose labels differ")
    ] = False,
    members: Annotated[int, typer.Option(min=2, help="每组最多显示几条 | at most so many members a group")] = 20,
    limit: Annotated[int, typer.Option(min=1, help="最多显示几组 | at most so many groups")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="跳过前几组 | after the first so many")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """近似重复的样本，及组内标签是否一致 | samples that are almost the same, and whether their labels agree."""
    settings = NearSettings(threshold=threshold)
    with (
        open_database(load_settings()) as engine,
        progress("比较 | comparing", samples_to_read(engine, library)) as advance,
    ):
        found = find_duplicates(
            engine,
            library=library,
            settings=settings,
            only_conflicting=conflicting,
            limit=limit,
            offset=offset,
            members=members,
            on_samples=advance,
        )
    total = found.conflicting if conflicting else found.groups
    emit(
        duplicates_shape(found, settings),
        as_json=as_json,
        render=lambda console: _show(console, found, offset=offset, total=total),
    )


def _show(console: Console, found: Duplicates, *, offset: int, total: int) -> None:
    """Group by group its members, numbered, and the pairs by these numbers."""
    for number, group in enumerate(found.page, start=offset + 1):
        mark = "  ! 标签不一致 labels differ" if group.conflict else ""
        _line(console, f"{number}.  {group.size:,} 条 samples{mark}")
        for place, member in enumerate(group.members, start=1):
            _line(console, f"  [{place}]  {_member(member)}")
        if group.size > len(group.members):
            _line(console, f"  …  另有 {group.size - len(group.members):,} 条 more; --members")
        places = {member.sample.id: place for place, member in enumerate(group.members, start=1)}
        for pair in group.pairs:
            sign = "!" if pair.conflict else " "
            _line(console, f"  {sign} [{places[pair.left]}] – [{places[pair.right]}]  {pair.similarity:.2f}")
    first = f"{offset + 1}–{offset + len(found.page)}" if found.page else "0"
    _line(console, f"{first} / {total:,}")
    _line(
        console,
        f"样本 samples {found.samples:,}  组 groups {found.groups:,}（{found.grouped:,} 条 samples）  "
        f"标签不一致 labels differ {found.conflicting:,}",
    )


def _member(member: Member) -> str:
    sample = member.sample
    labels = " + ".join(member.labels) if member.labels is not None else "无标签 no label"
    text = sample.text if sample.pair is None else f"{sample.text} ‖ {sample.pair}"
    return f"{sample.id}  {labels}  {text}"


def _line(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False)
