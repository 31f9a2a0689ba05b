"""Sheets of Excel workbooks: values as computed and as seen, with merged cells filled down."""

import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import IO, Any, NamedTuple
from xml.parsers import expat

import openpyxl
from openpyxl.utils import get_column_letter, range_boundaries
from openpyxl.utils.exceptions import InvalidFileException

from app.library.cells import Uncomputed
from app.library.readers import Broken, Row, sheet_rows
from app.library.sources import check_size
from model.errors import BadInput
from model.files import CHUNK
from model.types import preview

# Workbooks of texts shrink by 5 to 15 times, and what they hold becomes ten times as much in memory: strings, merges.
MAX_RATIO = 50
HARMLESS_BYTES = 32 << 20
MAX_ROWS = 1 << 20  # of a sheet, in every spreadsheet program; rows that are left out up to a higher one are all made
MAGIC = b"PK\x03\x04"
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
    expat.ExpatError,
)


class Sheet(NamedTuple):
    """A sheet, its rows numbered as a spreadsheet program shows them."""

    name: str
    rows: Iterator[Row | Broken]


@contextmanager
def open_workbook(file: IO[bytes], *, name: str, sheet: str | None) -> Iterator[list[Sheet]]:
    """All sheets that hold cells, or the one that is asked for; they can be read while the block lasts.

    Raises:
        BadInput: the workbook is broken, or has no such sheet.
    """
    try:
        with zipfile.ZipFile(file) as parts:
            unpacked = sum(part.file_size for part in parts.infolist())
            check_size(unpacked, file.seek(0, 2), name, max_ratio=MAX_RATIO, harmless=HARMLESS_BYTES)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        there = {worksheet.title: worksheet for worksheet in book.worksheets}
    except _BROKEN_WORKBOOK as error:
        raise BadInput(f"{name} is not a readable .xlsx workbook ({error}); save it again as .xlsx") from None
    with closing(book):
        if sheet is not None and sheet not in there:
            raise BadInput(f"{name} has no sheet {sheet!r}; its sheets: {preview(there, 20)}")
        wanted = there if sheet is None else {sheet: there[sheet]}
        yield [Sheet(title, sheet_rows(_values(worksheet, name, title))) for title, worksheet in wanted.items()]


class _Marks:
    """What a sheet says of its cells beside their values; openpyxl tells neither when it reads row by row.

    uncomputed: row and column of formulas without a value. merged: first row → column and last row of each range
    that goes over several rows.
    """

    def __init__(self, part: IO[bytes]) -> None:
        self.uncomputed: set[tuple[int, int]] = set()
        self.merged: dict[int, list[tuple[int, int]]] = {}
        self._place, self._formula, self._value, self._in_value = "", False, False, False
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        while chunk := part.read(CHUNK):
            parser.Parse(chunk)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag.rpartition(":")[2]:
            case "c":
                # a formula whose value is an empty text has no characters, and says that it is a text
                self._place, self._formula, self._value = attributes.get("r", ""), False, attributes.get("t") == "str"
            case "row" if int(attributes.get("r", 1)) > MAX_ROWS:
                raise ValueError(f"row {attributes['r']} is beyond {MAX_ROWS:,}, the last one of a sheet")
            case "f":
                self._formula = True
            case "v":
                self._in_value = True
            case "mergeCell":
                column, row, _, last_row = range_boundaries(attributes["ref"])
                if last_row > row:
                    self.merged.setdefault(row, []).append((column, last_row))

    def _characters(self, _: str) -> None:
        self._value = self._value or self._in_value

    def _end(self, tag: str) -> None:
        match tag.rpartition(":")[2]:
            case "v":
                self._in_value = False
            case "c" if self._formula and not self._value and self._place:
                column, row, _, _ = range_boundaries(self._place)
                self.uncomputed.add((row, column))


def _values(worksheet: Any, name: str, title: str) -> Iterator[Sequence[Any]]:
    worksheet.reset_dimensions()  # some programs write wrong ones
    try:
        with worksheet._get_source() as part:
            marks = _Marks(part)
        rows = worksheet.iter_rows(values_only=True)
        yield from _as_seen(rows, marks) if marks.merged or marks.uncomputed else rows
    except _BROKEN_WORKBOOK as error:
        raise BadInput(f"{name}: sheet {title!r} is broken ({error}); save it again as .xlsx") from None


def _as_seen(rows: Iterator[Sequence[Any]], marks: _Marks) -> Iterator[Sequence[Any]]:
    """The rows with marked cells: formulas without a value say so, and cells merged downwards repeat theirs.

    Cells merged across are left empty but for the first, or a title would become the label of itself.
    """
    filling: dict[int, tuple[int, Any]] = {}  # column → last row, value
    for number, values in enumerate(rows, 1):
        cells = list(values)
        for column, (last, value) in list(filling.items()):
            if number > last:
                del filling[column]
            else:
                cells += [None] * (column - len(cells))
                cells[column - 1] = value
        for column in range(1, len(cells) + 1):
            if (number, column) in marks.uncomputed:
                cells[column - 1] = Uncomputed(f"{get_column_letter(column)}{number}")
        for column, last in marks.merged.get(number, ()):
            if column <= len(cells):
                filling[column] = (last, cells[column - 1])
        yield cells
