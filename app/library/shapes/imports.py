"""Imports and looks ahead at them, as commands print them and HTTP answers them."""

import json
from collections.abc import Sequence

from typing_extensions import TypedDict

from app.library.guessing import Role
from app.library.importing import Imported
from app.library.previewing import Preview

MOST_LEFT_OUT = 100


class ImportedShape(TypedDict):
    """read = added + duplicates + rejected. `first_rejects`: where and why; `rejects_file`: all of them, or null.

    several_in_one: a new class that looks like several labels which nobody said how to part, or null. left_out: files
    of an archive, and sheets, that were not imported; the first `MOST_LEFT_OUT`.
    """

    read: int
    added: int
    duplicates: int
    rejected: int
    first_rejects: list[str]
    rejects_file: str | None
    several_in_one: str | None
    left_out: list[str]


class ColumnShape(TypedDict):
    """A column. `role`: what it would be read as; `chars`: how many a cell has on average."""

    name: str
    role: Role | None
    chars: float
    distinct: int
    example: str


class RowShape(TypedDict):
    """A row as it would be stored."""

    line: int
    text: str
    pair: str | None
    labels: list[str]
    actor: str | None


class TableShape(TypedDict):
    """A file or sheet and its first rows. `problem`: why it can't be imported like this, or null."""

    name: str
    format: str
    encoding: str | None
    delimiter: str | None
    columns: list[ColumnShape]
    read: int
    duplicates: int
    rejected: int
    labels: dict[str, int]
    rows: list[RowShape]
    rejects: list[str]
    problem: str | None


class ImportPreview(TypedDict):
    """What would become of the first rows of each table; nothing was written. left_out: as of an import."""

    dry_run: bool
    tables: list[TableShape]
    left_out: list[str]


def imported_shape(imported: Imported, *, rejects_file: str | None, left_out: list[str]) -> ImportedShape:
    """An import that was done; `rejects_file`: how its reader gets at the rejects."""
    return {
        "read": imported.read,
        "added": imported.added,
        "duplicates": imported.duplicates,
        "rejected": imported.rejected,
        "first_rejects": list(imported.first_rejects),
        "rejects_file": rejects_file,
        "several_in_one": imported.several_in_one,
        "left_out": left_out[:MOST_LEFT_OUT],
    }


def import_preview(previews: Sequence[Preview], *, left_out: list[str]) -> ImportPreview:
    """A look ahead, table by table."""
    return {
        "dry_run": True,
        "tables": [_table(shown) for shown in previews],
        "left_out": left_out[:MOST_LEFT_OUT],
    }


def _table(shown: Preview) -> TableShape:
    return {
        "name": shown.table.name,
        "format": shown.table.format.value,
        "encoding": shown.table.encoding,
        "delimiter": shown.table.delimiter,
        "columns": [
            {
                "name": column.name,
                "role": shown.role(column.name),
                "chars": round(column.chars, 1),
                "distinct": column.distinct,
                "example": column.example,
            }
            for column in shown.facts
        ],
        "read": shown.read,
        "duplicates": shown.duplicates,
        "rejected": shown.rejected,
        "labels": shown.labels,
        "rows": [
            {
                "line": row.line,
                "text": row.text,
                "pair": row.pair,
                "labels": json.loads(row.labels or "[]"),
                "actor": row.actor,
            }
            for row in shown.rows
        ],
        "rejects": shown.rejects,
        "problem": shown.problem,
    }
