"""Look at the first lines of a file and tell its format, its delimiter and how it quotes."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Any

from app.library.fasttext import begins_with_label


class Format(StrEnum):
    """The formats that can be imported; `auto` looks at the name and the content."""

    AUTO = "auto"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    JSON = "json"
    XLSX = "xlsx"
    PARQUET = "parquet"
    TXT = "txt"
    FASTTEXT = "fasttext"
    LABEL_STUDIO = "label-studio"
    DOCCANO = "doccano"
    FOLDER = "folder"
    HF = "hf"


_ARRAY_BEGINS = re.compile(r"\[\s*(?:[{\]]|$)")
_OBJECT_BEGINS = re.compile(r'\{\s*(?:"|$)')
_DELIMITERS = (",", ";", "\t")
_ROWS_TO_SNIFF = 50
_QUOTED_CELL = re.compile(r'(?:^|(?<=\t))"(?:[^"]|"")*"(?=\t|$)')
_CELL_WITH_QUOTE = re.compile(r'(?:^|(?<=\t))"')


def detect_format(suffix: str, lines: Sequence[str]) -> Format:
    """The format of a text file that ends in `suffix` and starts with `lines`; content goes before the name."""
    filled = [line.strip() for line in lines if line.strip()]
    if filled and (kind := _json_format(suffix, filled)):
        return kind
    match suffix:
        case ".csv":
            return Format.CSV
        case ".tsv":
            return Format.TSV
        case ".json" | ".jsonl" | ".ndjson":
            return Format.JSONL
    if filled and sum(begins_with_label(line) for line in filled) > len(filled) / 2:
        return Format.FASTTEXT
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


def _json_format(suffix: str, filled: Sequence[str]) -> Format | None:
    """JSON lines, or one JSON document that holds a list of objects; None when the lines are neither."""
    first = filled[0]
    if _ARRAY_BEGINS.match(first):
        return Format.JSON
    if not _OBJECT_BEGINS.match(first):
        return None
    if isinstance(value := _json(first), dict):
        alone = len(filled) == 1 and suffix not in (".jsonl", ".ndjson")
        return Format.JSON if alone and _holds_objects(value) else Format.JSONL
    if first == "{" or (suffix == ".json" and not any(isinstance(_json(line), dict) for line in filled[1:])):
        return Format.JSON
    return None


def _holds_objects(value: Any) -> bool:
    """Whether a list of objects is in `value`, and in no other list."""
    if isinstance(value, dict):
        return any(map(_holds_objects, value.values()))
    return isinstance(value, list) and any(isinstance(item, dict) for item in value)


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
