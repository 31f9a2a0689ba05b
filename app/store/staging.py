"""Staging: imported rows wait in a temporary table, then enter the library by a few set-based statements.

So the library is locked only for the short while of the last step, a million rows need no more memory than a
batch, and what the import leaves does not depend on the order of the rows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import RowNumber, SampleId, label_events, samples, sources
from model.run import now

IMPORT_ACTOR = "wenlei library import"


class StagedRow(NamedTuple):
    """One accepted row of a file, or what one of its annotators said.

    `split` is a position in `model.types.Split`, `labels` a sorted JSON list. `actor`: the person who gave the labels,
    where the file tells; `said_at`: when, ISO 8601 in UTC.
    """

    id: str
    text: str
    pair: str | None
    raw_text: str | None
    raw_pair: str | None
    duplicate_group: int
    split: int | None
    labels: str | None
    file: int
    line: int
    actor: str | None = None
    said_at: str | None = None


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, or a sheet of one, that rows came from. `sha256`: of the file on disk."""

    name: str
    sha256: str


_COLUMNS = ", ".join(StagedRow._fields)
_staged = sa.Table(
    "staged_rows",
    sa.MetaData(),
    sa.Column("position", RowNumber, sa.Identity(), primary_key=True),
    sa.Column("id", SampleId, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("pair", sa.Text),
    sa.Column("raw_text", sa.Text),
    sa.Column("raw_pair", sa.Text),
    sa.Column("duplicate_group", sa.BigInteger, nullable=False),
    sa.Column("split", sa.SmallInteger),
    sa.Column("labels", sa.Text),
    sa.Column("file", sa.Integer, nullable=False),
    sa.Column("line", sa.Integer, nullable=False),
    sa.Column("actor", sa.Text),
    sa.Column("said_at", sa.Text),
    prefixes=["TEMPORARY"],
)
# the file's number in this import → its row in `sources`
_files = sa.Table(
    "staged_files",
    _staged.metadata,
    sa.Column("file", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source_id", sa.Integer, nullable=False),
    prefixes=["TEMPORARY"],
)


class Staging:
    """The temporary table of one import, on one connection; call `add` and `merge` inside transactions."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection
        # A connection that goes back to the pool would take the temporary tables with it.
        connection.detach()
        _staged.metadata.create_all(connection, checkfirst=False)
        self._persons = False

    def add(self, rows: Sequence[StagedRow]) -> None:
        """Append a batch, by the fastest way that the database has."""
        if not rows:
            return
        self._persons = self._persons or any(map(attrgetter("actor"), rows))
        if self._connection.dialect.name == "sqlite":
            marks = ", ".join("?" * len(StagedRow._fields))
            self._connection.exec_driver_sql(f"INSERT INTO staged_rows ({_COLUMNS}) VALUES ({marks})", list(rows))  # noqa: S608 - our own names
            return
        cursor: Any = self._connection.connection.cursor()  # psycopg's own, which can copy
        with cursor, cursor.copy(f"COPY staged_rows ({_COLUMNS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)

    def merge(self, library_id: int, files: Iterable[SourceFile]) -> int:
        """Move the staged rows into the library, which is locked; the number of samples that it had not yet."""
        if self._connection.dialect.name == "postgresql":
            self._connection.exec_driver_sql("ANALYZE staged_rows")  # temporary tables have no statistics otherwise
        self._record_sources(library_id, files)
        added = self._add_samples(library_id)
        self._protect_splits(library_id)
        self._add_events(library_id)
        if self._persons:
            self._add_words_of_persons(library_id)
        if self._connection.dialect.name == "postgresql" and added:
            self._connection.exec_driver_sql("ANALYZE samples")
            self._connection.exec_driver_sql("ANALYZE label_events")
        return added

    def _record_sources(self, library_id: int, files: Iterable[SourceFile]) -> None:
        for number, file in enumerate(files):
            same = (sources.c.library_id == library_id, sources.c.name == file.name, sources.c.sha256 == file.sha256)
            source_id = self._connection.scalar(sa.select(sources.c.id).where(*same))
            if source_id is None:
                values = {"library_id": library_id, "name": file.name, "sha256": file.sha256, "imported_at": now()}
                source_id = self._connection.execute(
                    sa.insert(sources).values(values).returning(sources.c.id)
                ).scalar_one()
            self._connection.execute(sa.insert(_files).values(file=number, source_id=source_id))

    def _add_samples(self, library_id: int) -> int:
        """Of the rows with the same text, the first gives the raw text and the place, all give the split."""
        first = (
            sa.select(
                _staged.c.id,
                sa.func.min(_staged.c.position).label("position"),
                sa.func.min(_staged.c.split).label("split"),
            )
            .group_by(_staged.c.id)
            .subquery("first")
        )
        known = sa.exists().where(samples.c.library_id == library_id, samples.c.id == first.c.id)
        rows = (
            sa.select(
                sa.literal(library_id),
                first.c.id,
                _staged.c.text,
                _staged.c.pair,
                _staged.c.raw_text,
                _staged.c.raw_pair,
                _staged.c.duplicate_group,
                first.c.split,
                _files.c.source_id,
                _staged.c.line,
            )
            .select_from(first)
            .join(_staged, _staged.c.position == first.c.position)
            .join(_files, _files.c.file == _staged.c.file)
            .where(~known)
            .order_by(first.c.id)
        )
        insert = sa.insert(samples).from_select([*samples.c.keys()], rows)
        return self._connection.execute(insert.execution_options(preserve_rowcount=True)).rowcount

    def _protect_splits(self, library_id: int) -> None:
        """A sample that comes again in another split moves to the one that protects more."""
        best = (
            sa.select(_staged.c.id, sa.func.min(_staged.c.split).label("split"))
            .where(_staged.c.split.is_not(None))
            .group_by(_staged.c.id)
            .subquery("best")
        )
        weaker = samples.c.imported_split.is_(None) | (samples.c.imported_split > best.c.split)
        self._connection.execute(
            sa.update(samples)
            .where(samples.c.library_id == library_id, samples.c.id == best.c.id, weaker)
            .values(imported_split=best.c.split)
        )

    def _add_events(self, library_id: int) -> None:
        """One event for each value that an import gives to a sample for the first time."""
        nobody = [_staged.c.actor.is_(None)] if self._persons else []  # asked only where it is not so of all rows
        first = (
            sa.select(_staged.c.id, _staged.c.labels, sa.func.min(_staged.c.position).label("position"))
            .where(_staged.c.labels.is_not(None), *nobody)
            .group_by(_staged.c.id, _staged.c.labels)
            .subquery("first")
        )
        known = sa.exists().where(
            label_events.c.library_id == library_id,
            label_events.c.sample_id == first.c.id,
            label_events.c.labels == first.c.labels,
            label_events.c.actor_kind == "import",
        )
        columns = ["library_id", "sample_id", "labels", "actor_kind", "actor", "source_id", "line", "created_at"]
        rows = (
            sa.select(
                sa.literal(library_id),
                first.c.id,
                first.c.labels,
                sa.literal("import"),
                sa.literal(IMPORT_ACTOR),
                _files.c.source_id,
                _staged.c.line,
                sa.literal(now()),
            )
            .select_from(first)
            .join(_staged, _staged.c.position == first.c.position)
            .join(_files, _files.c.file == _staged.c.file)
            .where(~known)
            .order_by(first.c.id)
        )
        self._connection.execute(sa.insert(label_events).from_select(columns, rows))

    def _add_words_of_persons(self, library_id: int) -> None:
        """One event for each time that a person gave a value; without a time, for the value."""
        said = (_staged.c.id, _staged.c.labels, _staged.c.actor, _staged.c.said_at)
        first = (
            sa.select(*said, sa.func.min(_staged.c.position).label("position"))
            .where(_staged.c.actor.is_not(None))
            .group_by(*said)
            .subquery("first")
        )
        known = sa.exists().where(
            label_events.c.library_id == library_id,
            label_events.c.sample_id == first.c.id,
            label_events.c.labels == first.c.labels,
            label_events.c.actor_kind == "person",
            label_events.c.actor == first.c.actor,
            first.c.said_at.is_(None) | (label_events.c.created_at == first.c.said_at),
        )
        columns = ["library_id", "sample_id", "labels", "actor_kind", "actor", "source_id", "line", "created_at"]
        created_at = sa.func.coalesce(first.c.said_at, now())
        rows = (
            sa.select(
                sa.literal(library_id),
                first.c.id,
                first.c.labels,
                sa.literal("person"),
                first.c.actor,
                _files.c.source_id,
                _staged.c.line,
                created_at,
            )
            .select_from(first)
            .join(_staged, _staged.c.position == first.c.position)
            .join(_files, _files.c.file == _staged.c.file)
            .where(~known)
            .order_by(first.c.id, created_at, first.c.position)  # the newest word comes last
        )
        self._connection.execute(sa.insert(label_events).from_select(columns, rows))
