"""Import files into a library: read, check, stage and merge, in one transaction, or leave no trace."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import sqlalchemy as sa

from app.library.cataloguing import catalogue_import
from app.library.cells import LabelReader, branch_names, label_names, several_in_one
from app.library.definition import ImportOptions, define, grown
from app.library.formats import Format
from app.library.hub import hub_fingerprint
from app.library.readers import Broken
from app.library.rejects import Rejects, open_rejects
from app.library.rows import Columns, RowReader, readers
from app.library.sources import Source, find_sources, fingerprint, unchanged
from app.library.tables import Reading, Table, open_tables
from app.store.audit import record
from app.store.database import connect, writing
from app.store.libraries import Library, LibraryDefinition, find_library, lock_library, save_library
from app.store.merging import IMPORT_ACTOR, SourceFile, merge
from app.store.rollbacks import last_event
from app.store.staging import StagedRow, Staging
from model.errors import BadInput
from model.types import preview

ROWS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class Imported:
    """read = added + duplicates + rejected. `duplicates`: the library, or a row before, had the text already.

    several_in_one: a new class that looks like several labels which nobody said how to part. first_rejects: where the
    first rows are that were rejected, and why.
    """

    read: int
    added: int
    duplicates: int
    rejected: int
    rejects_file: Path | None
    several_in_one: str | None
    first_rejects: tuple[str, ...]


def import_files(
    engine: sa.Engine,
    paths: list[Path],
    *,
    options: ImportOptions,
    columns: Columns,
    reading: Reading,
    rejects_folder: Path,
    by: str | None = None,
    on_read: Callable[[int], None] = lambda _: None,
    on_table: Callable[[Table], None] = lambda _: None,
    on_skipped: Callable[[str], None] = lambda _: None,
) -> Imported:
    """Import all `paths` into the library of the options, which is made where it isn't there.

    by: the user who asks for it, where that is known; then the audit log tells of it, if it comes about.

    `on_read` hears of bytes read from disk, `on_table` of each file or sheet before it is read, `on_skipped` of each
    file in an archive, and each sheet, that is not imported.

    Raises:
        BadInput: a file or column can't be used, a file changes meanwhile, or every row is rejected.
        BadTaxonomy: the library's task, separators or labels differ. Nothing is written then.
    """
    files: list[SourceFile] = []
    with connect(engine) as connection, open_rejects(rejects_folder, f"{options.library}-{paths[0].name}") as rejects:
        with connection.begin():
            definition = _definition(options, find_library(connection, options.library))
        labels = label_reader(options, definition)
        read = 0
        with connection.begin(), unchanged(paths):
            staging = Staging(connection)
            for source, sha256 in sources_to_read(paths, reading, on_skipped=on_skipped):
                with open_tables(source, reading, on_read=on_read) as tables:
                    for reader in readers(
                        tables,
                        first=len(files),
                        columns=columns,
                        normaliser=definition.normaliser,
                        labels=labels,
                        proposer=options.proposer,
                        on_skipped=on_skipped,
                    ):
                        on_table(reader.table)
                        files.append(SourceFile(reader.table.name, sha256))
                        read += _stage(staging, reader, rejects, check=lambda: grown(definition, labels.seen))
        if read == rejects.count:
            reasons = "; ".join(rejects.first) or "there are no rows"
            names = ", ".join(path.name for path in paths)
            raise BadInput(f"{names}: nothing can be imported, nothing was written: {reasons}")
        with writing(connection):
            lock_library(connection, options.library)
            known = find_library(connection, options.library)
            settled = _definition(options, known)
            gone = set(definition.taxonomy.labels) - set(settled.taxonomy.labels)
            if gone or _rules(settled) != _rules(definition):
                raise BadInput(f"library {options.library!r} was changed while its files were being read; import again")
            library = save_library(
                connection, grown(settled, labels.seen), known=known, kind="import", actor=IMPORT_ACTOR
            )
            before = last_event(connection)
            added = merge(staging, library, files)
            catalogue_import(connection, library, known=known, after=before)
            if by is not None:
                _log(connection, options.library, files, by=by, added=added)
        return Imported(
            read=read,
            added=added,
            duplicates=read - added - rejects.count,
            rejected=rejects.count,
            rejects_file=rejects.publish(),
            several_in_one=several_in_one(labels.seen) if _takes_labels_whole(options, settled) else None,
            first_rejects=tuple(rejects.first),
        )


def _log(connection: sa.Connection, library: str, files: list[SourceFile], *, by: str, added: int) -> None:
    hashes = preview(dict.fromkeys(file.sha256 for file in files))
    names = preview(file.name for file in files)
    record(connection, actor=by, action="library.import", target=library, files=names, sha256=hashes, added=str(added))


def _takes_labels_whole(options: ImportOptions, definition: LibraryDefinition) -> bool:
    """Whether nobody has said how a label cell is parted, or which classes there are."""
    separators = (options.label_sep, definition.label_sep, definition.taxonomy.level_sep)
    return not definition.declared and separators == (None, None, None)


def sources_to_read(
    paths: list[Path], reading: Reading, *, on_skipped: Callable[[str], None]
) -> list[tuple[Source, str]]:
    """The data files in `paths`, each with the SHA-256 that its samples will be traced to.

    Raises:
        BadInput: a path can't be used.
    """
    if reading.format is Format.HF:
        return [(Source(path), hub_fingerprint(str(path), reading.sheet)) for path in paths]
    found = find_sources(paths, on_skipped=on_skipped)
    hashes = {path: fingerprint(path) for path in paths}
    return [(source, hashes[source.path]) for source in found]


def _stage(staging: Staging, reader: RowReader, rejects: Rejects, *, check: Callable[[], object]) -> int:
    """Stage the rows of a table; the number that were read. `check` refuses a column of texts long before its end."""
    read = 0
    for batch, count in _batches(reader, rejects):
        staging.add(batch)
        read += count
        check()
    return read


def _batches(reader: RowReader, rejects: Rejects) -> Iterator[tuple[list[StagedRow], int]]:
    """Accepted rows in batches, each with the number of rows that were read for it; the others go to `rejects`."""
    batch: list[StagedRow] = []
    count = 0
    for row in reader.table.rows:
        count += 1
        if isinstance(row, Broken):
            rejects.add(file=reader.table.name, line=row.line, reason=row.reason, raw=row.raw)
            continue
        try:
            batch += reader(row)
        except BadInput as error:
            rejects.add(file=reader.table.name, line=row.line, reason=str(error), raw=row.cells)
        if len(batch) >= ROWS_AT_ONCE:
            yield batch, count
            batch, count = [], 0
    yield batch, count


def _definition(options: ImportOptions, known: Library | None) -> LibraryDefinition:
    return define(options, known.definition if known else None)


def _rules(definition: LibraryDefinition) -> LibraryDefinition:
    """What rows are read by: all but the labels that other imports may add meanwhile."""
    if definition.declared:
        return definition
    return replace(definition, taxonomy=replace(definition.taxonomy, labels=()))


def label_reader(options: ImportOptions, definition: LibraryDefinition) -> LabelReader:
    """Where the classes are declared, a cell names one; where this import declares them, it may also number it."""
    names = label_names(definition)
    if definition.declared and options.names:
        names = {str(index): name for index, name in enumerate(definition.taxonomy.labels)} | names
    return LabelReader(
        definition.taxonomy,
        label_sep=options.label_sep or definition.label_sep,
        names=names,
        # a proposal makes no class, unless there is none yet
        closed=definition.declared or bool(options.proposer and definition.taxonomy.labels),
        branches=branch_names(definition),
    )
