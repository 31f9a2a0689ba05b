"""Look at files before they are imported: what they are taken for, and what would become of their first rows."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from app.library.annotations import Said
from app.library.definition import ImportOptions, define
from app.library.guessing import ColumnFacts, Role, column_facts, guess_roles
from app.library.importing import label_reader, sources_to_read
from app.library.readers import Broken, Row
from app.library.rows import Columns, RowReader
from app.library.tables import Reading, Table, open_tables
from app.store.libraries import LibraryDefinition
from app.store.staging import StagedRow
from model.errors import BadInput

ROWS_LOOKED_AT = 1000
ROWS_SHOWN = 5
REJECTS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Preview:
    """A table, the columns that would be taken, and its first rows as they would be stored.

    read, duplicates, rejected: of the first `ROWS_LOOKED_AT` rows; a duplicate repeats a text of the rows before it.
    labels: label → texts. problem: why the table can't be imported like this.
    """

    table: Table
    facts: list[ColumnFacts]
    columns: Columns
    read: int
    duplicates: int
    rejected: int
    labels: dict[str, int]
    rows: list[StagedRow]
    rejects: list[str]
    problem: str | None = None

    def role(self, column: str) -> Role | None:
        """What the column would be read as."""
        taken = {self.columns.text: Role.TEXT, self.columns.label: Role.LABEL, self.columns.split: Role.SPLIT}
        return taken.get(column)


def preview_files(
    paths: list[Path],
    *,
    options: ImportOptions,
    known: LibraryDefinition | None,
    columns: Columns,
    reading: Reading,
    on_skipped: Callable[[str], None] = lambda _: None,
) -> list[Preview]:
    """A preview of every table in `paths`; nothing is written. `known`: the library as it is, if it is there.

    Raises:
        BadInput: a file can't be read. BadTaxonomy: the options contradict each other or the library.
    """
    definition = define(options, known)
    seen: set[str] = set()
    previews = []
    for source, _ in sources_to_read(paths, reading, on_skipped=on_skipped):
        with open_tables(source, reading) as tables:
            previews += [_preview(table, columns, options, definition, seen) for table in tables]
    return previews


def _preview(
    table: Table, columns: Columns, options: ImportOptions, definition: LibraryDefinition, seen: set[str]
) -> Preview:
    rows = list(islice(table.rows, ROWS_LOOKED_AT))
    facts = _facts(table, [row for row in rows if isinstance(row, Row)])
    taken = _taken(table, facts, columns)
    preview = Preview(table, facts, taken, len(rows), 0, 0, {}, [], [])
    try:
        reader = RowReader(table, 0, taken, definition.normaliser, label_reader(options, definition), options.proposer)
    except BadInput as error:
        return replace(preview, problem=str(error))
    accepted: list[StagedRow] = []
    rejects: list[str] = []
    duplicates = 0
    for row in rows:
        try:
            staged = reader(_whole(row))
        except BadInput as error:
            rejects.append(f"{table.name}, line {row.line}: {error}")
            continue
        duplicates += staged[0].id in seen
        seen.add(staged[0].id)
        accepted += staged
    return replace(
        preview,
        duplicates=duplicates,
        rejected=len(rejects),
        labels=_count(accepted),
        rows=accepted[:ROWS_SHOWN],
        rejects=rejects[:REJECTS_SHOWN],
    )


def _whole(row: Row | Broken) -> Row:
    if isinstance(row, Broken):
        raise BadInput(row.reason)
    return row


def _facts(table: Table, rows: Sequence[Row]) -> list[ColumnFacts]:
    names = table.columns or tuple(str(number) for number in range(table.width))
    keys: Sequence[Any] = names if table.by_name else range(table.width)
    return [column_facts(name, [_cell(row, key) for row in rows]) for name, key in zip(names, keys, strict=True)]


def _cell(row: Row, key: Any) -> Any:
    """A cell as a guess sees it: of annotations, their labels."""
    cell = row.cells.get(key) if isinstance(row.cells, dict) else row.cells[key]
    if isinstance(cell, tuple):
        return [label for said in cell if isinstance(said, Said) for label in said.labels]
    return cell


def _taken(table: Table, facts: Sequence[ColumnFacts], columns: Columns) -> Columns:
    """The columns that were asked for; for the others what the format says, or a guess."""
    guessed = {role: name for name, role in guess_roles(facts).items()}
    text = columns.text or table.text or guessed.get(Role.TEXT)
    label = columns.label or table.label or guessed.get(Role.LABEL)
    split = columns.split or guessed.get(Role.SPLIT)
    return replace(columns, text=text, label=label if label != text else columns.label, split=split)


def _count(rows: Sequence[StagedRow]) -> dict[str, int]:
    counts = Counter(label for row in rows if row.labels for label in json.loads(row.labels))
    return dict(counts.most_common())
