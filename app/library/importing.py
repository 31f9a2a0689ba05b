"""Import files into a library: read, check, stage and merge, in one transaction, or leave no trace."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from app.library.cells import LabelReader, cell_split, cell_text
from app.library.definition import Wish, define, grown
from app.library.readers import Broken, Row
from app.library.rejects import Rejects, open_rejects
from app.library.sources import find_sources
from app.library.splits import SPLITS, duplicate_group, named_split
from app.library.tables import Reading, Table, open_table
from app.store.database import connect, writing
from app.store.libraries import LibraryDefinition, find_library, lock_library, save_library
from app.store.staging import SourceFile, StagedRow, Staging
from model.errors import BadInput, BadText
from model.files import sha256_file
from model.text import Normaliser, check_text, sample_id

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns hold what. `split`: a column, or the split that all rows are in."""

    text: str
    label: str | None = None
    pair: str | None = None
    split: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """read = added + duplicates + rejected. `duplicates`: the library, or a row before, had the text already."""

    read: int
    added: int
    duplicates: int
    rejected: int
    rejects_file: Path | None


def import_files(
    engine: sa.Engine,
    paths: list[Path],
    *,
    wish: Wish,
    columns: Columns,
    reading: Reading,
    rejects_folder: Path,
    on_read: Callable[[int], None] = lambda _: None,
    on_table: Callable[[Table], None] = lambda _: None,
) -> Imported:
    """Import all `paths` into the library of the wish, which is made where it isn't there.

    `on_read` hears of bytes read from disk, `on_table` of each file when it has been opened.

    Raises:
        BadInput: a file or column can't be used, or every row is rejected. BadTaxonomy: the library's task,
        separators or labels differ. Nothing is written then.
    """
    found = find_sources(paths)
    hashes = {path: sha256_file(path) for path in paths}
    with connect(engine) as connection, open_rejects(rejects_folder, f"{wish.library}-{paths[0].name}") as rejects:
        with connection.begin():
            known = find_library(connection, wish.library)
        definition = define(wish, known.definition if known else None)
        labels = _label_reader(wish, definition)
        with connection.begin():
            staging = Staging(connection)
            read = 0
            for number, source in enumerate(found):
                with open_table(source, reading, on_read=on_read) as table:
                    on_table(table)
                    reader = _RowReader(table, number, columns, definition.normaliser, labels)
                    for batch, count in _batches(reader, rejects):
                        staging.add(batch)
                        read += count
        if read == rejects.count:
            reasons = "; ".join(rejects.first) or "there are no rows"
            raise BadInput(f"{_names(paths)}: nothing can be imported, nothing was written: {reasons}")
        with writing(connection):
            lock_library(connection, wish.library)
            known = find_library(connection, wish.library)
            settled = define(wish, known.definition if known else None)
            if replace(settled.taxonomy, labels=()) != replace(definition.taxonomy, labels=()) or (
                settled.declared != definition.declared
            ):
                raise BadInput(f"library {wish.library!r} was changed while its files were being read; import again")
            library = save_library(connection, grown(settled, labels.seen), known=known)
            added = staging.merge(library.id, [SourceFile(source.name, hashes[source.path]) for source in found])
        return Imported(
            read=read,
            added=added,
            duplicates=read - added - rejects.count,
            rejected=rejects.count,
            rejects_file=rejects.publish(),
        )


class _RowReader:
    """Turns the rows of one table into rows to stage, by the columns that were asked for."""

    def __init__(self, table: Table, file: int, columns: Columns, normaliser: Normaliser, labels: LabelReader) -> None:
        self.table = table
        self._file, self._columns, self._normaliser, self._labels = file, columns, normaliser, labels
        self._text = table.key(columns.text)
        self._pair = table.key(columns.pair) if columns.pair is not None else None
        self._label = table.key(columns.label) if columns.label is not None else None
        split = named_split(columns.split) if columns.split is not None else None
        self._all_in = SPLITS.index(split) if split else None
        self._split = table.key(columns.split) if columns.split is not None and not split else None

    def __call__(self, row: Row) -> StagedRow:
        """The row to stage.

        Raises:
            BadInput: a cell is missing or can't be used.
        """
        line, cells = row
        text, raw_text = self._normal(cells, self._text, self._columns.text)
        pair, raw_pair = None, None
        if self._pair is not None:
            pair, raw_pair = self._normal(cells, self._pair, str(self._columns.pair))
        split = self._all_in if self._split is None else cell_split(_cell(cells, self._split))
        identity = sample_id(text, pair)
        return StagedRow(
            id=identity,
            text=text,
            pair=pair,
            raw_text=raw_text,
            raw_pair=raw_pair,
            duplicate_group=duplicate_group(identity, text, pair),
            split=split,
            # read last: the labels of a row that is rejected must not enter the taxonomy
            labels=None if self._label is None else self._labels(_cell(cells, self._label)),
            file=self._file,
            line=line,
        )

    def _normal(self, cells: Any, key: int | str, column: str) -> tuple[str, str | None]:
        raw = cell_text(_cell(cells, key))
        text = self._normaliser(raw)
        try:
            check_text(text, where=f"column {column}")
        except BadText:
            if any("\udc80" <= char <= "\udcff" for char in text):
                raise BadText(f"column {column}: bytes that are not {self.table.encoding}") from None
            raise
        # PostgreSQL stores no NUL
        return text, None if raw == text else raw.replace("\x00", "\ufffd")


def _cell(cells: Any, key: int | str) -> Any:
    try:
        return cells[key]
    except KeyError:
        raise BadInput(f"there is no {key!r} in this row") from None


def _batches(reader: _RowReader, rejects: Rejects) -> Iterator[tuple[list[StagedRow], int]]:
    """Accepted rows in batches, each with the number of rows that were read for it; the others go to `rejects`."""
    batch: list[StagedRow] = []
    count = 0
    for row in reader.table.rows:
        count += 1
        if isinstance(row, Broken):
            rejects.add(file=reader.table.name, line=row.line, reason=row.reason, raw=row.raw)
            continue
        try:
            batch.append(reader(row))
        except BadInput as error:
            rejects.add(file=reader.table.name, line=row.line, reason=str(error), raw=row.cells)
        if len(batch) == ROWS_AT_ONCE:
            yield batch, count
            batch, count = [], 0
    yield batch, count


def _label_reader(wish: Wish, definition: LibraryDefinition) -> LabelReader:
    """Where the classes are declared, a cell names one; where this import declares them, it may also number it."""
    names = None
    if definition.declared:
        declared = definition.taxonomy.labels
        numbers = {str(index): name for index, name in enumerate(declared)} if wish.names else {}
        names = numbers | {name: name for name in declared}
    return LabelReader(definition.taxonomy, label_sep=definition.label_sep, names=names)


def _names(paths: list[Path]) -> str:
    return ", ".join(path.name for path in paths)
