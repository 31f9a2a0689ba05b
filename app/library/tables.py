"""Open a data file as a table: its columns and its rows, whatever its format and encoding."""

import io
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

import openpyxl
from openpyxl.utils.exceptions import InvalidFileException

from app.library.encoding import check_encoding, detect_encoding
from app.library.formats import Format, detect_format, quotes_like_csv, sniff_delimiter
from app.library.readers import Broken, Row, csv_rows, json_rows, physical_lines, sheet_rows, tab_rows, text_rows
from app.library.sources import Source, check_size
from model.errors import BadInput
from model.types import preview

Rows = Iterator[Row | Broken]
LINES_TO_LOOK_AT = 200
XLSX_IN_MEMORY = 16 << 20  # bytes; larger workbooks from archives are unpacked to a temporary file
# What comes out of openpyxl and below it when a part of a workbook is broken; XML parsers raise SyntaxError.
_BROKEN_WORKBOOK = (
    zipfile.BadZipFile,
    zlib.error,
    InvalidFileException,
    SyntaxError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    OSError,
    EOFError,
    NotImplementedError,
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How to read a file. header: its first row names the columns. encoding: `auto` finds it out."""

    format: Format = Format.AUTO
    header: bool = True
    encoding: str = "auto"


@dataclass(frozen=True, slots=True)
class Table:
    """An open table. `columns` is None when there is no header; `encoding` is None for spreadsheets."""

    name: str
    columns: tuple[str, ...] | None
    width: int
    by_name: bool
    encoding: str | None
    rows: Rows

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
def open_table(source: Source, reading: Reading, *, on_read: Callable[[int], None] = lambda _: None) -> Iterator[Table]:
    """The table in `source`; its rows can be read while the block lasts.

    Raises:
        BadInput: it is empty, or can't be read in the format and encoding asked for or found.
    """
    if _is_workbook(source, reading.format):
        with source.open(on_read) as stream, _sheet(stream, source.name) as rows:
            yield _with_header(source.name, rows, header=reading.header, encoding=None)
        return
    encoding = (
        detect_encoding(source.open, name=source.name)
        if reading.encoding == "auto"
        else check_encoding(source.open, reading.encoding, name=source.name)
    )
    with source.open() as stream:
        head = list(islice(physical_lines(_decoded(stream, encoding, newline="")), LINES_TO_LOOK_AT))
    kind = detect_format(source.suffix, head) if reading.format is Format.AUTO else reading.format
    # An encoding that was asked for has read the whole file already; one that was found may leave broken lines.
    with source.open(on_read) as stream:
        if kind is Format.CSV or (kind is Format.TSV and quotes_like_csv(head)):
            delimiter = "\t" if kind is Format.TSV else sniff_delimiter(head)
            rows = csv_rows(physical_lines(_decoded(stream, encoding, newline="")), delimiter=delimiter)
            yield _with_header(source.name, rows, header=reading.header, encoding=encoding)
            return
        lines = physical_lines(_decoded(stream, encoding, newline="\n"))
        match kind:
            case Format.TSV:
                yield _with_header(source.name, tab_rows(lines), header=reading.header, encoding=encoding)
            case Format.JSONL:
                yield _objects(source.name, json_rows(lines), head, encoding)
            case _:
                columns = ("text",) if reading.header else None
                yield Table(source.name, columns, 1, by_name=False, encoding=encoding, rows=text_rows(lines))


def _is_workbook(source: Source, kind: Format) -> bool:
    if kind is not Format.AUTO:
        return kind is Format.XLSX
    with source.open() as stream:
        return source.suffix == ".xlsx" or stream.read(4) == b"PK\x03\x04"


def _decoded(stream: IO[bytes], encoding: str, *, newline: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline=newline)


@contextmanager
def _sheet(stream: IO[bytes], name: str) -> Iterator[Rows]:
    with tempfile.SpooledTemporaryFile(XLSX_IN_MEMORY) as seekable:
        shutil.copyfileobj(stream, seekable)
        packed = seekable.tell()
        try:
            with zipfile.ZipFile(seekable) as parts:
                check_size(sum(part.file_size for part in parts.infolist()), packed, name)
            book = openpyxl.load_workbook(seekable, read_only=True, data_only=True)
            sheet = book.worksheets[0]
        except _BROKEN_WORKBOOK as error:
            raise BadInput(f"{name} is not a readable .xlsx workbook ({error}); save it again as .xlsx") from None
        sheet.reset_dimensions()  # some programs write wrong ones
        with closing(book):
            yield sheet_rows(_values(sheet, name))


def _values(sheet: Any, name: str) -> Iterator[Sequence[Any]]:
    try:
        yield from sheet.iter_rows(values_only=True)
    except _BROKEN_WORKBOOK as error:
        raise BadInput(f"{name}: its first sheet is broken ({error}); save it again as .xlsx") from None


def _with_header(name: str, rows: Rows, *, header: bool, encoding: str | None) -> Table:
    first = next(rows, None)
    if first is None:
        raise BadInput(f"{name} is empty; leave it out")
    if isinstance(first, Broken):
        raise BadInput(f"{name}, line {first.line}: {first.reason}; repair it or give its --format")
    columns = tuple(str(cell if cell is not None else "").strip() for cell in first.cells) if header else None
    return Table(
        name=name,
        columns=columns,
        width=len(first.cells),
        by_name=False,
        encoding=encoding,
        rows=rows if header else chain([first], rows),
    )


def _objects(name: str, rows: Rows, head: Iterable[str], encoding: str) -> Table:
    """JSON lines: the columns are the names in the first objects."""
    looked_at = list(islice(rows, LINES_TO_LOOK_AT))
    if not looked_at:
        raise BadInput(f"{name} is empty; leave it out")
    names = dict.fromkeys(chain.from_iterable(row.cells for row in looked_at if isinstance(row, Row)))
    if not names:
        hint = "; it is one JSON list: write one object a line" if next(iter(head)).lstrip().startswith("[") else ""
        raise BadInput(f"{name}, line {looked_at[0].line}: no JSON object in its first lines{hint}")
    columns = tuple(str(column) for column in names)
    return Table(
        name=name,
        columns=columns,
        width=len(columns),
        by_name=True,
        encoding=encoding,
        rows=chain(looked_at, rows),
    )
