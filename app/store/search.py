"""Search the texts of a library for a piece of them, in milliseconds at a million samples.

First a bounded stretch of samples is looked through in the order that is asked for: what is common fills a page there.
What is rarer than that is had from the search index (see `app.store.bigrams`), all of it.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from app.store.bigrams import folded, needs_look, postgresql_query, sqlite_query
from app.store.listing import PLACE, Filter, Handle, Place, Sort, SortKey, rows_of, stretches
from app.store.tables import catalogue, samples

REACH = 1_000  # matches that are counted, and that pages go through by number

LOOKED_AT_ONCE = 250  # candidates from SQLite's index, whose texts are read


@dataclass(frozen=True, slots=True)
class Found:
    """Rows that match, in order, and how many there are in all: at least so many, unless `total_is_exact`."""

    rows: list[Handle]
    total: int
    total_is_exact: bool


def search_from(connection: sa.Connection, which: Filter, sort: Sort, query: str, *, offset: int, limit: int) -> Found:
    """At most `limit` matches after the first `offset`; both together no more than `REACH`."""
    wanted = offset + limit
    hits, finished = _look_through(connection, which, sort, query, after=None, wanted=wanted)
    if not finished and len(hits) <= wanted:
        hits = _from_index(connection, which, sort, query, after=None, limit=REACH + 1)
        finished = len(hits) <= REACH
    return Found(hits[offset:wanted], len(hits), finished)


def search_after(
    connection: sa.Connection, which: Filter, sort: Sort, query: str, *, after: Place, limit: int
) -> list[Handle]:
    """At most `limit` matches that follow a place."""
    hits, finished = _look_through(connection, which, sort, query, after=after, wanted=limit)
    if not finished and len(hits) < limit:
        hits = _from_index(connection, which, sort, query, after=after, limit=limit)
    return hits[:limit]


def _look_through(
    connection: sa.Connection, which: Filter, sort: Sort, query: str, *, after: Place | None, wanted: int
) -> tuple[list[Handle], bool]:
    """The matches among the next rows, and whether these were all the rows there are."""
    hits: list[Handle] = []
    remaining = max(_STRETCH[connection.dialect.name, sort.key], 2 * wanted)
    rows_read, conditions = rows_of(connection, which, sort)
    for stretch in stretches(sort, after, rows_read):
        near = (
            sa.select(sort.handle(rows_read).label("handle"), *(rows_read.c[name] for name in Place._fields))
            .where(*conditions, *stretch)
            .order_by(*sort.clauses(rows_read))
            .limit(remaining)
            .subquery("near")
        )
        match = _sample_holds(connection, which, near, query)
        rows = connection.execute(sa.select(near.c.handle, match).order_by(*sort.clauses(near))).all()
        hits += [handle for handle, matches in rows if matches]
        remaining -= len(rows)
        if not remaining:
            return hits, False
    return hits, True


# How many rows are looked through, some ten milliseconds' worth. SQLite keeps samples about in the order of their ids.
_STRETCH = {
    ("sqlite", SortKey.ARRIVAL): 1_000,
    ("sqlite", SortKey.LABELS): 1_000,
    ("sqlite", SortKey.ID): 2_000,
    ("postgresql", SortKey.ARRIVAL): 2_000,
    ("postgresql", SortKey.LABELS): 2_000,
    ("postgresql", SortKey.ID): 2_000,
}


def _from_index(
    connection: sa.Connection, which: Filter, sort: Sort, query: str, *, after: Place | None, limit: int
) -> list[Handle]:
    """The first matches in order, at most `limit`."""
    following = sa.or_(*(sa.and_(sa.true(), *stretch) for stretch in stretches(sort, after)))
    conditions = [*which.clauses(connection.dialect), following]
    if connection.dialect.name == "postgresql":
        return _from_gin(connection, which, sort, query, conditions, limit=limit)
    if not needs_look(query):
        return list(_from_fts(connection, sort, query, conditions, after=after, limit=limit))
    candidates = _from_fts(connection, sort, query, conditions, after=after)
    hits: list[Handle] = []
    while len(hits) < limit and (some := list(islice(candidates, LOOKED_AT_ONCE))):
        hits += _looked_at(connection, which, sort, query, some)
    candidates.close()
    return hits[:limit]


def _from_fts(
    connection: sa.Connection,
    sort: Sort,
    query: str,
    conditions: Sequence[sa.ColumnElement[bool]],
    *,
    after: Place | None,
    limit: int | None = None,
) -> Generator[Handle]:
    """SQLite's candidates. By arrival they come as they are found, so the first don't wait for the others."""
    order, more = sort.clauses(), list(conditions)
    if sort.key is SortKey.ARRIVAL:
        order = [_FTS.c.rowid.desc() if sort.descending else _FTS.c.rowid.asc()]
        if after is not None:
            more.append(_FTS.c.rowid < after.number if sort.descending else _FTS.c.rowid > after.number)
    # with the plus, the row's number finds the row of the catalogue, and never the other way round
    joined = _FTS.join(catalogue, catalogue.c.number == sa.literal_column("+catalogue_bigrams.rowid"))
    matches = sa.text("catalogue_bigrams MATCH :terms").bindparams(terms=sqlite_query(query))
    statement = sa.select(sort.handle()).select_from(joined).where(matches, *more).order_by(*order).limit(limit)
    with connection.execute(statement, execution_options={"yield_per": LOOKED_AT_ONCE}) as rows:
        yield from rows.scalars()


def _looked_at(
    connection: sa.Connection, which: Filter, sort: Sort, query: str, candidates: list[Handle]
) -> list[Handle]:
    """Those of the candidates whose text holds the query, in the same order."""
    among: list[sa.ColumnElement[bool]] = [sort.handle().in_(candidates)]
    if sort.key is SortKey.ID:  # numbers are all of the library; told so again, SQLite would read the whole library
        among.append(catalogue.c.library_id == which.library_id)
    statement = sa.select(sort.handle()).where(*among, _sample_holds(connection, which, catalogue, query))
    right = set(connection.scalars(statement))
    return [handle for handle in candidates if handle in right]


def _from_gin(
    connection: sa.Connection,
    which: Filter,
    sort: Sort,
    query: str,
    conditions: Sequence[sa.ColumnElement[bool]],
    *,
    limit: int,
) -> list[Handle]:
    """PostgreSQL's matches; the texts are read on the way."""
    # a bitmap that has not enough memory forgets rows, and then the terms of whole pages are worked out again
    connection.exec_driver_sql("SET LOCAL work_mem = '64MB'")
    connection.exec_driver_sql("SET LOCAL jit = off")
    terms = sa.text(f"{_GIN_EXPRESSION} @@ CAST(:terms AS tsquery)").bindparams(terms=postgresql_query(query))
    # OFFSET 0 keeps each step by itself; else the planner may go by the condition on the library, or read all rows
    found = sa.select(samples).where(terms).offset(0).subquery("found")
    row = (
        sa.select(sort.handle().label("handle"), *PLACE)
        .where(catalogue.c.sample_id == found.c.id, *conditions)
        .offset(0)
        .lateral("row")
    )
    statement = sa.select(row.c.handle).select_from(found.join(row, sa.true()))
    statement = statement.where(found.c.library_id == which.library_id, _holds(found, query, connection.dialect))
    return list(connection.scalars(statement.order_by(*sort.clauses(row)).limit(limit)))


_FTS = sa.table("catalogue_bigrams", sa.column("rowid"))
_GIN_EXPRESSION = "wenlei_bigrams(CASE WHEN pair IS NULL THEN text ELSE text || E'\\n' || pair END)"  # as in the index


def _sample_holds(connection: sa.Connection, which: Filter, row: sa.FromClause, query: str) -> sa.ScalarSelect[Any]:
    """Whether the sample of a row holds the query: a subquery, lest a database come upon the idea to read all texts."""
    of_row = (samples.c.library_id == which.library_id, samples.c.id == row.c.sample_id)
    return sa.select(_holds(samples, query, connection.dialect)).where(*of_row).scalar_subquery()


def _holds(of: sa.FromClause, query: str, dialect: sa.Dialect) -> sa.ColumnElement[bool]:
    """Whether the text or the pair of a row holds the query; ASCII letters without case."""
    piece = folded(query)

    def position(column: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
        if dialect.name == "sqlite":
            return sa.func.instr(sa.func.lower(column), piece, type_=sa.Integer)
        return sa.func.strpos(sa.func.lower(sa.collate(column, "C")), piece, type_=sa.Integer)

    return sa.or_(position(of.c.text) > 0, sa.func.coalesce(position(of.c.pair), 0) > 0)
