"""`wenlei library samples`: list, filter, sort and search the samples of a library, page by page."""

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.library.browsing import MAX_PER_PAGE, SORTS, SamplePage, browse
from app.library.cataloguing import ensure_catalogue, library_size
from app.library.shapes.samples import samples_shape
from app.settings import load_settings
from app.store.database import open_database
from app.store.listing import ListedSample
from model.console import JsonFlag, emit, progress

MATCH_STYLE = "bold reverse"


def list_samples(
    library: Annotated[str, typer.Option(help="样本库名称 | name of the library")] = "default",
    search: Annotated[str, typer.Option(help="文本中含有的字词 | a piece of the text")] = "",
    label: Annotated[
        str | None, typer.Option(help="带此标签的样本；层级标签可为上级 | that carry it; or a branch of levels")
    ] = None,
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="没有标签的样本 | without a label")] = False,
    conflict: Annotated[
        bool, typer.Option("--conflict", help="标签有分歧的样本 | whose labels are in conflict")
    ] = False,
    sort: Annotated[str, typer.Option(help=f"排序，- 为倒序 | order: {', '.join(SORTS)}")] = "arrival",
    page: Annotated[int, typer.Option(min=1, help="第几页 | which page")] = 1,
    per_page: Annotated[int, typer.Option(min=1, max=MAX_PER_PAGE, help="每页条数 | samples a page")] = 20,
    after: Annotated[
        str | None, typer.Option(help="从此样本编号之后列起，代替页码 | go on after this id, instead of a page")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """列出、筛选、排序、搜索样本 | list, filter, sort and search samples."""
    with open_database(load_settings()) as engine:
        with progress("编目 | cataloguing", library_size(engine, library)) as advance:
            ensure_catalogue(engine, library, on_samples=advance)
        found = browse(
            engine,
            library=library,
            query=search,
            label=label,
            unlabelled=unlabelled,
            conflict=conflict,
            sort=sort,
            page=page,
            per_page=per_page,
            after=after,
        )
    first = (page - 1) * per_page + 1 if after is None else None
    emit(samples_shape(found), as_json=as_json, render=lambda console: _show(console, found, first=first))


def _show(console: Console, found: SamplePage, *, first: int | None) -> None:
    """A row for each sample, and below which these are, of how many, and how to go on."""
    table = Table()
    table.add_column("编号 id", min_width=32)  # whole, to be copied
    for name in ("标签 label", "文本 text", "来源 source"):
        table.add_column(name, overflow="fold")
    for sample in found.samples:
        labels = " + ".join(sample.labels) or "无 none"
        table.add_row(
            sample.id,
            Text(f"{labels} !" if sample.conflict else labels),
            _text(sample, found.query),
            Text(f"{sample.source}:{sample.line}"),
        )
    console.print(table)
    if any(sample.conflict for sample in found.samples):
        _line(console, "! 标签有分歧 in conflict")
    if first is not None and found.total is not None:
        shown = f"{first:,}–{first + len(found.samples) - 1:,}" if found.samples else "0"
        _line(console, f"{shown} / {found.total:,}{'' if found.total_is_exact else ' 以上 or more'}")
    if found.next is not None:
        _line(console, f"下一页 next: --after {found.next}")


def _text(sample: ListedSample, query: str | None) -> Text:
    """The text, or both of a pair, with every place that matches marked."""
    text = Text(sample.text if sample.pair is None else f"{sample.text} ‖ {sample.pair}", overflow="fold")
    if query:
        text.highlight_words([query], MATCH_STYLE, case_sensitive=False)
    return text


def _line(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False)
