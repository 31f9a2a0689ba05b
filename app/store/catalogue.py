"""The catalogue: each sample's current labels and its place in the search index, as lists and searches read them."""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.bigrams import index_terms
from app.store.libraries import Library
from app.store.staging import new_samples
from app.store.tables import catalogue, label_events, libraries, samples

ROWS_AT_ONCE = 10_000
LABELLERS = ("import", "person")  # what others say are proposals, and make no label


class CatalogueRow(NamedTuple):
    """What a sample's events come to. `labels`: a sorted JSON list, None without any."""

    sample_id: str
    labels: str | None
    conflict: bool
    event: int | None


def add_imported(connection: sa.Connection, library: Library, *, after: int) -> int:
    """Take in the samples that were just merged; where there is one event, its labels are the current ones.

    after: the newest event before the merge. The number beyond which the new rows are comes back.
    """
    said = (
        sa.select(
            label_events.c.sample_id,
            sa.func.count().label("events"),
            sa.func.min(label_events.c.id).label("event"),
            sa.func.min(label_events.c.labels).label("labels"),
        )
        .where(label_events.c.id > after, _of_library(library), label_events.c.actor_kind.in_(LABELLERS))
        .group_by(label_events.c.sample_id)
        .subquery("said")
    )
    alone = said.c.events == 1
    rows = (
        sa.select(
            sa.literal(library.id),
            new_samples.c.id,
            sa.case((alone, said.c.labels)),
            sa.false(),
            sa.case((alone, said.c.event)),
        )
        .select_from(new_samples)
        .outerjoin(said, said.c.sample_id == new_samples.c.id)
        .order_by(new_samples.c.position)
    )
    last = _last_number(connection)
    with _indexes_at_the_end(connection, last):
        connection.execute(sa.insert(catalogue).from_select(_COLUMNS, rows))
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE catalogue")  # else lists are sorted, rather than read in order
    else:  # numbers follow the rows' positions, and SQLite gives them without gaps
        _index(
            connection,
            f"SELECT {last} + row_number() OVER (ORDER BY position), {_TERMS}"  # noqa: S608 - a number of ours
            " FROM new_samples JOIN staged_rows USING (position) ORDER BY position",
        )
    return last


def to_settle(connection: sa.Connection, library: Library, *, after: int, beyond: int) -> list[str]:
    """The samples whose labels it takes thought to tell after a merge, sorted: new ones with several events, and those
    from before with an event that is new.

    after: the newest event before the merge. beyond: the number of the last row before it.
    """
    new = (label_events.c.id > after, _of_library(library), label_events.c.actor_kind.in_(LABELLERS))
    several = sa.exists().where(
        label_events.c.library_id == library.id,
        label_events.c.sample_id == catalogue.c.sample_id,
        label_events.c.id > after,
        label_events.c.actor_kind.in_(LABELLERS),
    )
    untold = sa.select(catalogue.c.sample_id).where(
        catalogue.c.number > beyond, catalogue.c.library_id == library.id, catalogue.c.event.is_(None), several
    )
    found = set(connection.scalars(untold))
    if beyond:
        same = (catalogue.c.library_id == library.id) & (catalogue.c.sample_id == label_events.c.sample_id)
        said_again = sa.select(label_events.c.sample_id).join(catalogue, same).where(*new, catalogue.c.number <= beyond)
        found.update(connection.scalars(said_again.distinct()))
    return sorted(found)


def update_rows(connection: sa.Connection, library_id: int, rows: Sequence[CatalogueRow]) -> None:
    """Write what the events of samples in the catalogue come to."""
    if not rows:
        return
    statement = (
        sa.update(catalogue)
        .where(catalogue.c.library_id == library_id, catalogue.c.sample_id == sa.bindparam("of_sample"))
        .values(labels=sa.bindparam("to_labels"), conflict=sa.bindparam("to_conflict"), event=sa.bindparam("to_event"))
    )
    connection.execute(
        statement,
        [
            {"of_sample": row.sample_id, "to_labels": row.labels, "to_conflict": row.conflict, "to_event": row.event}
            for row in rows
        ],
    )


def add_missing(connection: sa.Connection, library_id: int) -> None:
    """Take in the samples that a catalogue lacks, without labels for the time being."""
    known = sa.exists().where(catalogue.c.library_id == library_id, catalogue.c.sample_id == samples.c.id)
    rows = sa.select(samples.c.library_id, samples.c.id, sa.null(), sa.false(), sa.null())
    last = _last_number(connection)
    lacking = rows.where(samples.c.library_id == library_id, ~known).order_by(samples.c.id)
    connection.execute(sa.insert(catalogue).from_select(_COLUMNS, lacking))
    _index_catalogue(connection, after=last)


def label_list_counts(connection: sa.Connection, library_id: int) -> dict[tuple[str, ...], int]:
    """Each list of current labels in the library → how many samples have it; the empty one for those without."""
    query = sa.select(catalogue.c.labels, sa.func.count()).where(catalogue.c.library_id == library_id)
    rows = connection.execute(query.group_by(catalogue.c.labels))
    return {tuple(json.loads(labels)) if labels else (): count for labels, count in rows}


def conflicting_samples(connection: sa.Connection, library_id: int) -> list[str]:
    """The ids of the samples whose labels are in conflict."""
    query = sa.select(catalogue.c.sample_id).where(catalogue.c.library_id == library_id, catalogue.c.conflict)
    return list(connection.scalars(query))


def clear_index(connection: sa.Connection, library_id: int) -> None:
    """Drop rows whose sample is gone, and make SQLite's search index anew; PostgreSQL has `REINDEX`."""
    known = sa.exists().where(samples.c.library_id == catalogue.c.library_id, samples.c.id == catalogue.c.sample_id)
    connection.execute(sa.delete(catalogue).where(catalogue.c.library_id == library_id, ~known))
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("INSERT INTO catalogue_bigrams (catalogue_bigrams) VALUES ('delete-all')")
    _index_catalogue(connection, after=0)


def mark_fresh(connection: sa.Connection, library_id: int) -> None:
    """Note that the catalogue agrees with the events again."""
    connection.execute(sa.update(libraries).where(libraries.c.id == library_id).values(catalogue_stale=False))


def catalogue_rows(connection: sa.Connection, library_id: int) -> Generator[CatalogueRow]:
    """All rows of the library, sorted by the samples' ids, in flat memory."""
    columns = [catalogue.c[name] for name in CatalogueRow._fields]
    query = sa.select(*columns).where(catalogue.c.library_id == library_id).order_by(catalogue.c.sample_id)
    with connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)) as rows:
        for row in rows:
            yield CatalogueRow(*row)


_COLUMNS = ("library_id", "sample_id", "labels", "conflict", "event")


@contextmanager
def _indexes_at_the_end(connection: sa.Connection, last: int) -> Iterator[None]:
    """On SQLite, where rows come in that are more than those before, make the indexes of all of them in one go: a third
    of the time. PostgreSQL would keep readers out meanwhile.
    """
    new = connection.execute(sa.select(sa.func.count()).select_from(new_samples)).scalar_one()
    indexes = catalogue.indexes if connection.dialect.name == "sqlite" and new > last else set()
    for index in indexes:
        index.drop(connection)
    yield
    for index in indexes:
        index.create(connection)


def _of_library(library: Library) -> sa.ColumnElement[bool]:
    """With the plus, the events beyond a number are read, and not all that the library has."""
    return sa.literal_column("+label_events.library_id", sa.Integer) == library.id


def _last_number(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.max(catalogue.c.number))) or 0


def _index_catalogue(connection: sa.Connection, *, after: int) -> None:
    """Take the rows with numbers beyond `after` into SQLite's search index; PostgreSQL looks after its own."""
    if connection.dialect.name == "sqlite":
        _index(
            connection,
            f"SELECT number, {_TERMS} FROM catalogue JOIN samples"  # noqa: S608 - a number of ours
            " ON samples.library_id = catalogue.library_id AND samples.id = catalogue.sample_id"
            f" WHERE number > {after} ORDER BY number",
        )


_TERMS = "wenlei_terms(CASE WHEN pair IS NULL THEN text ELSE text || char(10) || pair END)"


def _index(connection: sa.Connection, numbers_and_terms: str) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.create_function("wenlei_terms", 1, index_terms, deterministic=True)
    connection.exec_driver_sql(f"INSERT INTO catalogue_bigrams (rowid, terms) {numbers_and_terms}")
