"""Rows out of lines: one reader a format. A line that can't be read becomes `Broken`, the rest goes on."""

import csv
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TextIO

from app.library.formulas import unguarded

# Longer lines than any text may be; a longer one is cut, so that a file without line breaks can't fill the memory.
MAX_LINE_CHARS = 1 << 20
# Of one CSV record: a quote that is never closed must not swallow the rest of the file.
MAX_RECORD_CHARS = 1 << 17


class Row(NamedTuple):
    """A row of the file. `cells`: by index, or by name.

    line: the physical line on which it begins, from 1; where there are no lines, the row's or the file's number.
    """

    line: int
    cells: Sequence[Any] | Mapping[str, Any]


class Broken(NamedTuple):
    """A line, or a row of a spreadsheet, that can't be used, and why."""

    line: int
    reason: str
    raw: str | Sequence[Any]


def physical_lines(file: TextIO) -> Iterator[str]:
    """The lines of `file` with their ends, each cut to `MAX_LINE_CHARS`."""
    while line := file.readline(MAX_LINE_CHARS):
        yield line
        while len(line) == MAX_LINE_CHARS and not line.endswith(("\n", "\r")):
            line = file.readline(MAX_LINE_CHARS)


def tab_rows(lines: Iterable[str]) -> Iterator[Row | Broken]:
    """Tab-separated cells without quoting; every row must be as wide as the first."""
    width = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        cells = line.rstrip("\r\n").split("\t")
        width = width or len(cells)
        if len(cells) == width:
            yield Row(number, cells)
        else:
            yield Broken(number, f"{len(cells)} columns instead of {width}", line)


def text_rows(lines: Iterable[str]) -> Iterator[Row | Broken]:
    """One text a line."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Row(number, [line.rstrip("\r\n")])


def json_rows(lines: Iterable[str]) -> Iterator[Row | Broken]:
    """One JSON object a line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            yield Broken(number, f"not JSON: {error}", line)
            continue
        if isinstance(value, dict):
            yield Row(number, value)
        else:
            yield Broken(number, f"a JSON object is needed, not {type(value).__name__}", line)


def sheet_rows(rows: Iterable[Sequence[Any]]) -> Iterator[Row | Broken]:
    """Rows of a spreadsheet, numbered as in it; empty cells at their ends may be there or not."""
    width = 0
    for number, values in enumerate(rows, 1):
        if all(value is None for value in values):
            continue
        width = width or len(values)
        if any(value is not None for value in values[width:]):
            yield Broken(number, f"{len(values)} columns instead of {width}", values)
        else:
            yield Row(number, [*values[:width], *[None] * (width - len(values))])


def csv_rows(lines: Iterable[str], *, delimiter: str) -> Iterator[Row | Broken]:
    """CSV records, every one as wide as the first; quoted cells may hold delimiters and line breaks.

    An apostrophe that keeps a cell from being a formula (`app.library.formulas`) is no part of it.

    When a record of several lines comes out wrong, its first line holds a quote that was never meant to open a
    cell: that line is broken, and reading goes on at the second.
    """
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter)
    width = 0
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            too_long = max(map(len, feed.taken)) >= csv.field_size_limit()
            reason = f"a cell of more than {csv.field_size_limit():,} characters" if too_long else str(error)
        else:
            width = width or len(cells)
            runaway = feed.cut_short or (len(feed.taken) > 1 and not _strictly_csv(feed.taken, delimiter))
            if len(cells) in (0, width) and not runaway:
                if cells:
                    yield Row(feed.line, [unguarded(cell) if cell[:1] == "'" else cell for cell in cells])
                feed.done()
                continue
            reason = _RUNAWAY if runaway or len(feed.taken) > 1 else f"{len(cells)} columns instead of {width}"
        yield Broken(feed.line, reason, feed.taken[0])
        feed.give_back()
        reader = csv.reader(feed, delimiter=delimiter)


_RUNAWAY = "a quote opens a cell and nothing closes it"


def _strictly_csv(record: Sequence[str], delimiter: str) -> bool:
    """Whether quotes stand only where they open and close cells.

    Readers let `"a" b` pass. Over several lines it means that the quote which opens one row was closed by
    another row's, and that the rows between would be swallowed.
    """
    try:
        for _ in csv.reader(record, delimiter=delimiter, strict=True):
            pass
    except csv.Error:
        return False
    return True


class _Feed:
    """Lines for a CSV reader; those of the record that is being read can be given back.

    `cut_short`: the lines ended, or became too many, in the middle of a record.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._again: deque[str] = deque()
        self._chars = 0
        self.taken: list[str] = []
        self.line = 1  # where the record begins
        self.cut_short = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> str:
        line = None
        if self._chars < MAX_RECORD_CHARS:
            line = self._again.popleft() if self._again else next(self._lines, None)
        if line is None:
            self.cut_short = bool(self.taken)
            raise StopIteration
        self.taken.append(line)
        self._chars += len(line)
        return line

    def done(self) -> None:
        """The record is complete."""
        self.line += len(self.taken)
        self.taken.clear()
        self._chars = 0

    def give_back(self) -> None:
        """Take the first line of the record as read, and the others again."""
        self._again.extendleft(reversed(self.taken[1:]))
        del self.taken[1:]
        self.done()
        self.cut_short = False
