"""Look at the first lines of a file and tell its format, its delimiter and how it quotes."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum


class Format(StrEnum):
    """The formats that can be imported; `auto` looks at the name and the content."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    XLSX = "xlsx"
    TXT = "txt"


_DELIMITERS = (",", ";", "\t")
_ROWS_TO_SNIFF = 50
_QUOTED_CELL = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*"(?=\t|$)')
_CELL_WITH_QUOTE = re.compile(r'(?:^|(?<=\t))"')


def detect_format(suffix: str, lines: Sequence[str]) -> Format:
    """The format of a text file that ends in `suffix` and starts with `lines`; content goes before the name."""
    filled = [line for line in lines if line.strip()]
    if filled and filled[0].lstrip().startswith(("{", "[")) and _is_json(filled[0]):
        return Format.JSONL
    match suffix:
        case ".csv":
            return Format.CSV
        case ".tsv":
            return Format.TSV
        case ".json" | ".jsonl" | ".ndjson":
            return Format.JSONL
    if filled and sum("\t" in line for line in filled) > len(filled) / 2:
        return Format.TSV
    return Format.TXT


def sniff_delimiter(lines: Sequence[str]) -> str:
    """The delimiter that gives the most rows of the same width: comma, semicolon or tab."""

    def regularity(delimiter: str) -> float:
        widths = Counter(_widths(lines[:_ROWS_TO_SNIFF], delimiter))
        width, count = widths.most_common(1)[0] if widths else (1, 0)
        return count / widths.total() if width > 1 else 0.0

    return max(_DELIMITERS, key=regularity)  # the first of equals, so a comma where nothing tells


def quotes_like_csv(lines: Sequence[str]) -> bool:
    """Whether a tab-separated file quotes its cells.

    A title may begin with a quotation mark of its own, so there must be cells with doubled marks inside, or
    nothing but quoted cells, and no cell that begins with a mark and breaks the rule.
    """
    text = [line.rstrip("\r\n") for line in lines if line.strip()]
    opened = sum(len(_CELL_WITH_QUOTE.findall(line)) for line in text)
    quoted = [cell for line in text for cell in _QUOTED_CELL.findall(line)]
    if not opened or len(quoted) < opened:
        return False
    return any('""' in cell[1:-1] for cell in quoted) or opened == sum(line.count("\t") + 1 for line in text)


def _widths(lines: Sequence[str], delimiter: str) -> Iterator[int]:
    with suppress(csv.Error):  # a cell is longer than any text may be; the rows before it tell enough
        yield from (len(row) for row in csv.reader(lines, delimiter=delimiter) if row)


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return line.strip() in ("{", "[")
