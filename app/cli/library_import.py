"""`wenlei library import`: fill a library from files, or look first at what would become of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table as Grid

from app.library.definition import ImportOptions, Proposer
from app.library.formats import Format
from app.library.importing import import_files
from app.library.label_names import read_label_names
from app.library.previewing import ROWS_LOOKED_AT, Preview, preview_files
from app.library.rows import Columns
from app.library.shapes.imports import import_preview, imported_shape
from app.library.tables import Reading, Table
from app.settings import Settings, load_settings
from app.store.database import connect, is_set_up, open_database
from app.store.libraries import LibraryDefinition, find_library
from model.console import JsonFlag, emit, progress, say
from model.types import Task, preview

CHARS_SHOWN = 60  # of a text, in a preview


def import_command(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="数据文件（可为 .zip .gz .xz）、“标签/*.txt” 文件夹，或 --format hf 的数据集名 | "
            "data files, packed or not, folders of label/*.txt, or ids of data sets for --format hf"
        ),
    ],
    text: Annotated[
        str | None,
        typer.Option(help="文本列：列名，无表头时为序号（从 0 起） | column of the text: name or index"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="标签列；省略则导入无标签文本 | column of the label")] = None,
    pair: Annotated[
        str | None, typer.Option("--text-pair", "--pair", help="第二文本列（文本对任务） | column of the second text")
    ] = None,
    library: Annotated[str, typer.Option(help="样本库名称 | name of the library")] = "default",
    file_format: Annotated[Format, typer.Option("--format", help="文件格式 | format of the files")] = Format.AUTO,
    sheet: Annotated[
        str | None,
        typer.Option(
            help="工作表，默认含所需列的全部；hf：数据集的配置 | sheet of a workbook, configuration of a data set"
        ),
    ] = None,
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="首行是否为列名 | first row names columns")
    ] = True,
    label_names: Annotated[
        Path | None, typer.Option(help="类别名称文件，第 i 行为类别 i | file that declares the classes in their order")
    ] = None,
    task: Annotated[Task | None, typer.Option(help="任务类型 | single, multi or hierarchical")] = None,
    label_sep: Annotated[str | None, typer.Option(help="多个标签之间的分隔符 | parts the labels of a text")] = None,
    level_sep: Annotated[str | None, typer.Option(help="标签层级之间的分隔符 | parts the levels of a label")] = None,
    proposed_by: Annotated[
        str | None,
        typer.Option(help="标签只是建议，不算数：rule:名称、model:名称 | only proposals, of rule:NAME or model:NAME"),
    ] = None,
    confidence: Annotated[
        str | None, typer.Option(help="建议的置信度列，0 到 1 | column of how sure the proposals are, 0 to 1")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="train、dev、test，或给出划分的列 | the split of all rows, or the column of it")
    ] = None,
    encoding: Annotated[str, typer.Option(help="字符编码，auto 自动识别 | character encoding")] = "auto",
    simplify: Annotated[
        bool | None,
        typer.Option(
            "--simplify/--no-simplify", help="新建样本库时：繁体转简体 | of a new library: simplify characters"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="只看不写：识别结果与前几行 | show what would be stored, write nothing")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """把文本导入样本库，可重复执行 | import texts; the same file twice adds nothing."""
    settings = load_settings()
    options = ImportOptions(
        library=library,
        task=task,
        label_sep=label_sep,
        level_sep=level_sep,
        names=read_label_names(label_names) if label_names else None,
        simplify=simplify,
        proposer=Proposer.read(proposed_by) if proposed_by is not None else None,
    )
    columns = Columns(text=text, label=label, pair=pair, split=split, confidence=confidence)
    reading = Reading(format=file_format, header=header, encoding=encoding, sheet=sheet)
    left_out: list[str] = []

    def tell_left_out(name: str) -> None:
        say(f"{name}: 未导入 | left out")
        left_out.append(name)

    if dry_run:
        previews = preview_files(
            files,
            options=options,
            known=_known(settings, library),
            columns=columns,
            reading=reading,
            on_skipped=tell_left_out,
        )
        emit(
            import_preview(previews, left_out=left_out),
            as_json=as_json,
            render=lambda console: _render(console, previews),
        )
        return
    total = sum(file.stat().st_size for file in files if file.is_file())
    with open_database(settings) as engine, progress("导入 | importing", total) as advance:
        imported = import_files(
            engine,
            files,
            options=options,
            columns=columns,
            reading=reading,
            rejects_folder=settings.home / "rejects",
            on_read=advance,
            on_table=_tell_table,
            on_skipped=tell_left_out,
        )
    if imported.several_in_one:
        say(
            f"注意 | warning: 类别 “{imported.several_in_one}” 像是多个标签；若是，请另建样本库并给出 --label-sep | "
            "this class looks like several labels; if so, import into another library with --label-sep"
        )
    rejects_file = str(imported.rejects_file) if imported.rejects_file else None
    told = imported_shape(imported, rejects_file=rejects_file, left_out=left_out)
    emit(told if as_json else {name: value for name, value in told.items() if value not in (None, [])}, as_json=as_json)


def _known(settings: Settings, library: str) -> LibraryDefinition | None:
    """The library as it is, if there is one; asking makes nothing."""
    if not is_set_up(settings):
        return None
    with open_database(settings) as engine, connect(engine) as connection, connection.begin():
        known = find_library(connection, library)
    return known.definition if known else None


def _tell_table(table: Table) -> None:
    if table.format is Format.XLSX and "/" in table.name:
        say(f"{table.name}: 导入此工作表 | this sheet is imported")
    if table.encoding not in (None, "utf-8", "utf-8-sig"):
        say(f"{table.name}: 编码 | encoding {table.encoding}")


def _render(console: Console, previews: Sequence[Preview]) -> None:
    for shown in previews:
        table = shown.table
        facts = [table.format.value, table.encoding, table.delimiter and f"分隔符 | delimiter {table.delimiter!r}"]
        console.print(f"\n{table.name}: {', '.join(fact for fact in facts if fact)}")
        columns = Grid("列 | column", "用作 | role", "均长 | chars", "取值 | distinct", "例 | example")
        for column in shown.facts:
            role = shown.role(column.name) or ""
            columns.add_row(column.name, role, f"{column.chars:.0f}", str(column.distinct), _short(column.example))
        console.print(columns)
        if shown.problem:
            console.print(f"不能导入 | can't be imported: {shown.problem}")
            continue
        rows = Grid("行 | line", "文本 | text", "标签 | labels", "标注人 | annotator")
        for row in shown.rows:
            text = row.text if row.pair is None else f"{row.text} ／ {row.pair}"
            rows.add_row(str(row.line), _short(text), ", ".join(json.loads(row.labels or "[]")), row.actor or "")
        console.print(rows)
        counts = preview((f"{label} {count}" for label, count in shown.labels.items()), 20)
        console.print(
            f"前 {shown.read} 行 | the first {shown.read} rows: 重复 | duplicates {shown.duplicates}, "
            f"拒绝 | rejected {shown.rejected}; 标签 | labels: {counts or '—'}"
        )
        for reason in shown.rejects:
            console.print(f"  {reason}")
    console.print(
        f"\n至多看 {ROWS_LOOKED_AT} 行，未写入任何内容 | at most {ROWS_LOOKED_AT} rows a table, nothing was written"
    )


def _short(text: str) -> str:
    return text if len(text) <= CHARS_SHOWN else text[:CHARS_SHOWN] + "…"
