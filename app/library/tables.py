"""Open a data file as tables: their columns and their rows, whatever the format and encoding."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

from app.library import folders, parquet, workbooks
from app.library.annotations import Said, column_names, export_rows, find_export
from app.library.encoding import check_encoding, detect_encoding
from app.library.fasttext import fasttext_rows
from app.library.formats import Format, detect_format, quotes_like_csv, sniff_delimiter
from app.library.hub import hub_splits
from app.library.json_files import document_rows
from app.library.readers import (
    Broken,
    Row,
    csv_rows,
    json_rows,
    physical_lines,
    tab_rows,
    text_rows,
)
from app.library.sources import Source, open_seekable
from model.errors import BadInput
from model.types import preview

Rows = Iterator[Row | Broken]
LINES_TO_LOOK_AT = 200


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a file. header: its first row names the columns. encoding: `auto` finds it out.

    sheet: of a workbook, or the configuration of a data set of the hub; None takes all sheets.
    """

    format: Format = Format.AUTO
    header: bool = True
    encoding: str = "auto"
    sheet: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """An open table. `columns` is None when there is no header; `encoding` is None where the format has none.

    text, label: the columns that the format itself says hold them. said: where the format tells who labelled a text,
    a row's cells and its cell of the label column → what each annotator said.
    """

    name: str
    format: Format
    columns: tuple[str, ...] | None
    width: int
    by_name: bool
    rows: Rows
    encoding: str | None = None
    delimiter: str | None = None
    text: str | None = None
    label: str | None = None
    said: Callable[[Any, Any], Sequence[Said]] | None = None

    def key(self, column: str) -> int | str:
        """What finds the column's cell in a row.

        Raises:
            BadInput: there is no such column, or there are two; the message lists those there are.
        """
        if self.columns is None:
            if column.isdecimal() and int(column) < self.width:
                return int(column)
            raise BadInput(
                f"{self.name} has no column {column!r}: without a header, columns are numbers "
                f"from 0 to {self.width - 1}"
            )
        count = self.columns.count(column)
        if count == 1:
            return column if self.by_name else self.columns.index(column)
        state = "no" if not count else f"{count} times the"
        hint = "; if its first row is no header, add --no-header" if column.isdecimal() else ""
        raise BadInput(f"{self.name} has {state} column {column!r}; its columns: {preview(self.columns, 20)}{hint}")


@contextmanager
def open_tables(
    source: Source, reading: Reading, *, on_read: Callable[[int], None] = lambda _: None
) -> Iterator[list[Table]]:
    """The tables in `source`: one, or one a sheet or split; their rows can be read while the block lasts.

    Raises:
        BadInput: it is empty, or can't be read in the format and encoding asked for or found.
    """
    if reading.format is Format.HF:
        yield [_hub_table(source, *split) for split in hub_splits(str(source.path), reading.sheet)]
    elif source.path.is_dir():
        _check_format(source, reading.format, Format.FOLDER)
        yield [_folder_table(source, reading)]
    else:
        binary = _binary_format(source, reading.format)
        if reading.sheet is not None and binary is not Format.XLSX:
            raise BadInput(f"{source.name} is no workbook and has no sheets; leave out --sheet")
        if binary is None:
            with _open_text(source, reading, on_read) as table:
                yield [table]
            return
        with open_seekable(source, on_read) as file:
            if binary is Format.PARQUET:
                columns, rows = parquet.parquet_table(file, name=source.name)
                yield [Table(source.name, binary, columns, len(columns), True, _filled(source.name, rows))]
                return
            with workbooks.open_workbook(file, name=source.name, sheet=reading.sheet) as sheets:
                yield _sheet_tables(source.name, sheets, header=reading.header)


def _check_format(source: Source, asked: Format, is_one: Format) -> None:
    if asked not in (Format.AUTO, is_one):
        raise BadInput(f"{source.name} is a {is_one}, not {asked}; leave out --format")


def _binary_format(source: Source, asked: Format) -> Format | None:
    if asked is Format.FOLDER:
        raise BadInput(f"{source.name} is no folder; leave out --format")
    if asked is not Format.AUTO:
        return asked if asked in (Format.XLSX, Format.PARQUET) else None
    with source.open() as stream:
        head = stream.read(4)
    if source.suffix == ".xlsx" or head == workbooks.MAGIC:
        return Format.XLSX
    return Format.PARQUET if head == parquet.MAGIC else None


def _sheet_tables(name: str, sheets: Sequence[workbooks.Sheet], *, header: bool) -> list[Table]:
    """A table for each sheet that isn't empty; where there are several sheets, tables are called by both names."""
    tables = []
    for sheet in sheets:
        first = next(sheet.rows, None)
        if first is not None:
            table_name = name if len(sheets) == 1 else f"{name}/{sheet.name}"
            rows = chain([first], sheet.rows)
            tables.append(_with_header(table_name, Format.XLSX, rows, header=header))
    if not tables:
        raise BadInput(f"{name} is empty; leave it out")
    return tables


def _folder_table(source: Source, reading: Reading) -> Table:
    columns = folders.COLUMNS
    return Table(
        name=source.name,
        format=Format.FOLDER,
        columns=columns,
        width=len(columns),
        by_name=False,
        rows=folders.folder_rows(source.path, reading.encoding),
        text=columns[0],
        label=columns[1],
    )


def _hub_table(source: Source, split: str, columns: tuple[str, ...], rows: Rows) -> Table:
    return Table(f"{source.path}/{split}", Format.HF, columns, len(columns), by_name=True, rows=rows)


@contextmanager
def _open_text(source: Source, reading: Reading, on_read: Callable[[int], None]) -> Iterator[Table]:
    name = source.name
    encoding = (
        detect_encoding(source.open, name=name)
        if reading.encoding == "auto"
        else check_encoding(source.open, reading.encoding, name=name)
    )
    with source.open() as stream:
        head = list(islice(physical_lines(_decoded(stream, encoding, newline="")), LINES_TO_LOOK_AT))
    kind = reading.format
    if kind in (Format.AUTO, Format.LABEL_STUDIO, Format.DOCCANO):
        kind = detect_format(source.suffix, head)
        if reading.format is not Format.AUTO and kind is not Format.JSON:
            kind = Format.JSONL
    if kind is Format.JSON:
        rows = document_rows(source.open, lambda: source.open(on_read), encoding, name=name)
        yield _objects(source, kind, rows, head, encoding, asked=reading.format)
        return
    # An encoding that was asked for has read the whole file already; one that was found may leave broken lines.
    with source.open(on_read) as stream:
        if kind is Format.CSV or (kind is Format.TSV and quotes_like_csv(head)):
            delimiter = "\t" if kind is Format.TSV else sniff_delimiter(head)
            rows = csv_rows(physical_lines(_decoded(stream, encoding, newline="")), delimiter=delimiter)
            yield _with_header(name, kind, rows, header=reading.header, encoding=encoding, delimiter=delimiter)
            return
        lines = physical_lines(_decoded(stream, encoding, newline="\n"))
        match kind:
            case Format.TSV:
                rows = tab_rows(lines)
                yield _with_header(name, kind, rows, header=reading.header, encoding=encoding, delimiter="\t")
            case Format.JSONL:
                yield _objects(source, kind, json_rows(lines), head, encoding, asked=reading.format)
            case Format.FASTTEXT:
                rows = fasttext_rows(lines)
                columns = ("text", "label")
                yield Table(name, kind, columns, 2, False, rows, encoding, text="text", label="label")
            case _:
                named = ("text",) if reading.header else None
                yield Table(name, kind, named, 1, False, text_rows(lines), encoding, text="text" if named else None)


def _decoded(stream: IO[bytes], encoding: str, *, newline: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline=newline)


def _filled(name: str, rows: Rows) -> Rows:
    first = next(rows, None)
    if first is None:
        raise BadInput(f"{name} is empty; leave it out")
    return chain([first], rows)


def _with_header(
    name: str,
    kind: Format,
    rows: Rows,
    *,
    header: bool,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> Table:
    first = next(rows, None)
    if first is None:
        raise BadInput(f"{name} is empty; leave it out")
    if isinstance(first, Broken):
        raise BadInput(f"{name}, line {first.line}: {first.reason}; repair it or give its --format")
    columns = tuple(str(cell if cell is not None else "").strip() for cell in first.cells) if header else None
    return Table(
        name=name,
        format=kind,
        columns=columns,
        width=len(first.cells),
        by_name=False,
        encoding=encoding,
        delimiter=delimiter,
        rows=rows if header else chain([first], rows),
    )


def _objects(source: Source, kind: Format, rows: Rows, head: Iterable[str], encoding: str, *, asked: Format) -> Table:
    """Objects of JSON: the columns are the names in the first ones."""
    looked_at = list(islice(rows, LINES_TO_LOOK_AT))
    if not looked_at:
        raise BadInput(f"{source.name} is empty; leave it out")
    objects = [row.cells for row in looked_at if isinstance(row, Row) and isinstance(row.cells, Mapping)]
    if not any(objects):
        hint = "; it is one JSON list: take --format json" if next(iter(head)).lstrip().startswith("[") else ""
        raise BadInput(f"{source.name}, line {looked_at[0].line}: no JSON object in its first lines{hint}")
    try:
        export = find_export(objects, asked=asked, member=source.member)
    except BadInput as error:
        raise BadInput(f"{source.name}: {error}") from None
    rows = chain(looked_at, rows)
    if export is None:
        columns = tuple(str(name) for name in dict.fromkeys(chain.from_iterable(objects)))
        return Table(source.name, kind, columns, len(columns), by_name=True, encoding=encoding, rows=rows)
    columns = column_names(export, objects)
    return Table(
        name=source.name,
        format=export.format,
        columns=columns,
        width=len(columns),
        by_name=True,
        encoding=encoding,
        rows=export_rows(rows, export, columns),
        text=export.text,
        label=export.label,
        said=export.said,
    )
