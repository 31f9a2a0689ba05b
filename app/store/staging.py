"""Staging: imported rows wait in a temporary table, so that a million need no more memory than a batch."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import RowNumber, SampleId


class StagedRow(NamedTuple):
    """One accepted row of a file, or what one of its annotators said.

    `split` is a position in `model.types.Split`, `labels` a sorted JSON list. `actor`: the person who gave the labels,
    where the file tells, or of another kind what proposes them; `said_at`: when, ISO 8601 in UTC. `confidence`: 0 to 1.
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
    actor_kind: str = "person"
    confidence: float | None = None


_COLUMNS = ", ".join(StagedRow._fields)
staged_rows = sa.Table(
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
    sa.Column("actor_kind", sa.Text, nullable=False),
    sa.Column("confidence", sa.Float),
    prefixes=["TEMPORARY"],
)
# the rows that bring a text which the library had not yet, each time the first; `split`: the best of all its rows
new_samples = sa.Table(
    "new_samples",
    staged_rows.metadata,
    sa.Column("position", RowNumber, primary_key=True, autoincrement=False),
    sa.Column("id", SampleId, nullable=False),
    sa.Column("split", sa.SmallInteger),
    prefixes=["TEMPORARY"],
)
# the file's number in this import → its row in `sources`
staged_files = sa.Table(
    "staged_files",
    staged_rows.metadata,
    sa.Column("file", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("source_id", sa.Integer, nullable=False),
    prefixes=["TEMPORARY"],
)
# the label lists of earlier events that mean something else today: what they said in which version → what they mean
staged_meanings = sa.Table(
    "staged_meanings",
    staged_rows.metadata,
    sa.Column("was", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("now", sa.Text, nullable=False),
    prefixes=["TEMPORARY"],
)


class Staging:
    """The temporary table of one import, on one connection; call `add` inside a transaction.

    actors: whether any of the rows was said by somebody, or something, that has a name.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        # A connection that goes back to the pool would take the temporary tables with it.
        connection.detach()
        staged_rows.metadata.create_all(connection, checkfirst=False)
        self.actors = False

    def add(self, rows: Sequence[StagedRow]) -> None:
        """Append a batch, by the fastest way that the database has."""
        if not rows:
            return
        self.actors = self.actors or any(map(attrgetter("actor"), rows))
        if self.connection.dialect.name == "sqlite":
            marks = ", ".join("?" * len(StagedRow._fields))
            self.connection.exec_driver_sql(f"INSERT INTO staged_rows ({_COLUMNS}) VALUES ({marks})", list(rows))  # noqa: S608 - our own names
            return
        cursor: Any = self.connection.connection.cursor()  # psycopg's own, which can copy
        with cursor, cursor.copy(f"COPY staged_rows ({_COLUMNS}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
