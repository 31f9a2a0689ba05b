"""List the samples of a library by its catalogue: filtered, sorted, from a place on.

A query reads one stretch of one index, so that it takes as long at a million samples as at a thousand; only an offset
has to be counted off.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from app.store.tables import catalogue, samples, sources

Handle = int | str  # of a row: its number; where rows are sorted by id, the id, which is in the index that is read then

FEW = 20_000  # rows, that are sorted in some ten milliseconds


class SortKey(StrEnum):
    """What samples are sorted by. `labels`: by their JSON list, those without come last, and then by arrival."""

    ARRIVAL = "arrival"
    ID = "id"
    LABELS = "labels"


@dataclass(frozen=True, slots=True)
class Sort:
    """An order of all samples of a library; no two share a place in it."""

    key: SortKey = SortKey.ARRIVAL
    descending: bool = False

    def handle(self, of: sa.FromClause = catalogue) -> sa.ColumnElement[Any]:
        """The column that rows are named by."""
        return of.c.sample_id if self.key is SortKey.ID else of.c.number

    def clauses(self, of: sa.FromClause = catalogue, *, reverse: bool = False) -> list[sa.ColumnElement[Any]]:
        """What to sort rows of the catalogue by, in the way that its indexes are sorted; `reverse`: from the end."""
        column = self.handle(of)
        if self.descending is reverse:
            return [*([of.c.labels.asc().nulls_last()] if self.key is SortKey.LABELS else []), column.asc()]
        return [*([of.c.labels.desc().nulls_first()] if self.key is SortKey.LABELS else []), column.desc()]


class Place(NamedTuple):
    """Where a sample stands in every order."""

    number: int
    sample_id: str
    labels: str | None


PLACE = [catalogue.c[name] for name in Place._fields]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which samples of a library.

    label_lists: those with one of these lists of labels, as JSON; None: with any or none. unlabelled: those without
    labels. conflict: those on which persons or imports disagree.
    """

    library_id: int
    label_lists: tuple[str, ...] | None = None
    unlabelled: bool = False
    conflict: bool = False

    def clauses(self, dialect: sa.Dialect) -> list[sa.ColumnElement[bool]]:
        """The conditions on rows of the catalogue."""
        found = [catalogue.c.library_id == self.library_id]
        labels: sa.ColumnElement[str] = catalogue.c.labels
        if self.conflict and dialect.name == "sqlite":  # which would go by the labels, and they are carried by far more
            labels = sa.literal_column("+catalogue.labels", sa.Text)
        if self.label_lists is not None:
            found.append(_among(labels, self.label_lists, dialect))
        if self.unlabelled:
            found.append(labels.is_(None))
        if self.conflict:
            found.append(
                sa.literal_column("catalogue.conflict")
            )  # as the index has it; `conflict = 1` would not use that
        return found


class ListedSample(NamedTuple):
    """A sample as lists show it. source, line: the file, or the sheet of one, and the line that it was first in."""

    number: int
    id: str
    text: str
    pair: str | None
    labels: tuple[str, ...]
    conflict: bool
    source: str
    line: int


def label_lists(connection: sa.Connection, library_id: int) -> list[str]:
    """The different lists of current labels in the library, as JSON; a step of an index for each."""
    of_library = catalogue.c.library_id == library_id

    def next_one(*after: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
        query = sa.select(catalogue.c.labels).where(of_library, catalogue.c.labels.is_not(None), *after)
        return query.order_by(catalogue.c.labels).limit(1).scalar_subquery()

    steps = sa.select(next_one().label("labels")).cte("steps", recursive=True)
    steps = steps.union_all(sa.select(next_one(catalogue.c.labels > steps.c.labels)).where(steps.c.labels.is_not(None)))
    return list(connection.scalars(sa.select(steps.c.labels).where(steps.c.labels.is_not(None))))


def find_place(connection: sa.Connection, library_id: int, sample_id: str) -> Place | None:
    """Where the sample stands, if the library has it."""
    query = sa.select(*PLACE)
    row = connection.execute(query.where(catalogue.c.library_id == library_id, catalogue.c.sample_id == sample_id))
    return next((Place(*found) for found in row), None)


def count_rows(connection: sa.Connection, which: Filter) -> int:
    """How many samples there are."""
    query = sa.select(sa.func.count()).select_from(catalogue).where(*which.clauses(connection.dialect))
    return connection.execute(query).scalar_one()


def rows_from(
    connection: sa.Connection, which: Filter, sort: Sort, *, offset: int, limit: int, total: int
) -> list[Handle]:
    """At most `limit` rows after the first `offset`, of the `total` there are; counted from the nearer end."""
    limit = min(limit, total - offset)
    if limit <= 0:
        return []
    reverse = offset > total // 2
    skipped = total - offset - limit if reverse else offset
    rows, conditions = rows_of(connection, which, sort)
    query = sa.select(sort.handle(rows)).where(*conditions)
    query = query.order_by(*sort.clauses(rows, reverse=reverse)).limit(limit).offset(skipped)
    found = list(connection.scalars(query))
    return found[::-1] if reverse else found


def rows_after(
    connection: sa.Connection, which: Filter, sort: Sort, *, after: Place | None, limit: int
) -> list[Handle]:
    """At most `limit` rows that follow a place."""
    found: list[Handle] = []
    rows, conditions = rows_of(connection, which, sort)
    for stretch in stretches(sort, after, rows):
        query = sa.select(sort.handle(rows)).where(*conditions, *stretch)
        found += connection.scalars(query.order_by(*sort.clauses(rows)).limit(limit - len(found)))
        if len(found) == limit:
            break
    return found


def rows_of(connection: sa.Connection, which: Filter, sort: Sort) -> tuple[sa.FromClause, list[sa.ColumnElement[bool]]]:
    """Where to read the rows of a filter from, and the conditions on them.

    Several lists of labels are several stretches of an index. Where these hold few rows they are read first, for
    SQLite would rather go through all rows in their order.
    """
    conditions = which.clauses(connection.dialect)
    if connection.dialect.name == "sqlite" and len(which.label_lists or ()) > 1 and sort.key is not SortKey.LABELS:
        some = sa.select(*PLACE).where(*conditions).limit(FEW + 1)
        if connection.execute(sa.select(sa.func.count()).select_from(some.subquery())).scalar_one() <= FEW:
            return some.subquery("few"), []
    return catalogue, conditions


def stretches(sort: Sort, after: Place | None, of: sa.FromClause = catalogue) -> Iterator[list[sa.ColumnElement[bool]]]:
    """What follows a place, as conditions that are a stretch of an index each, in order."""
    if after is None:
        yield []
    elif sort.key is SortKey.ARRIVAL:
        yield [_beyond(of.c.number, after.number, sort)]
    elif sort.key is SortKey.ID:
        yield [_beyond(of.c.sample_id, after.sample_id, sort)]
    else:
        alike = of.c.labels.is_(None) if after.labels is None else of.c.labels == after.labels
        yield [alike, _beyond(of.c.number, after.number, sort)]
        if after.labels is not None:
            yield [_beyond(of.c.labels, after.labels, sort)]
        if (after.labels is None) is sort.descending:
            yield [of.c.labels.is_not(None) if sort.descending else of.c.labels.is_(None)]


def read_listed(
    connection: sa.Connection, library_id: int, sort: Sort, handles: Sequence[Handle]
) -> list[ListedSample]:
    """What is shown of these rows, in their order."""
    query = (
        sa.select(
            sort.handle().label("handle"),
            catalogue.c.number,
            samples.c.id,
            samples.c.text,
            samples.c.pair,
            catalogue.c.labels,
            catalogue.c.conflict,
            sources.c.name,
            samples.c.line,
        )
        .select_from(catalogue)
        .join(samples, (samples.c.library_id == library_id) & (samples.c.id == catalogue.c.sample_id))
        .join(sources, sources.c.id == samples.c.source_id)
        .where(catalogue.c.library_id == library_id, sort.handle().in_(handles))
    )
    found = {
        row.handle: ListedSample(
            row.number, row.id, row.text, row.pair, _labels(row.labels), row.conflict, row.name, row.line
        )
        for row in connection.execute(query)
    }
    return [found[handle] for handle in handles]


def _labels(of_row: str | None) -> tuple[str, ...]:
    return tuple(json.loads(of_row)) if of_row else ()


def _beyond(column: sa.ColumnElement[Any], value: Any, sort: Sort) -> sa.ColumnElement[bool]:
    beyond: sa.ColumnElement[bool] = column < value if sort.descending else column > value
    return beyond


def _among(labels: sa.ColumnElement[str], lists: Sequence[str], dialect: sa.Dialect) -> sa.ColumnElement[bool]:
    """One list is a stretch of an index; many go as one value, for statements take so many only."""
    among: sa.ColumnElement[bool]
    if len(lists) == 1:
        among = labels == lists[0]
    elif dialect.name == "postgresql":
        among = labels == sa.any_(sa.literal(list(lists), postgresql.ARRAY(sa.Text)))
    else:
        values = sa.func.json_each(sa.literal(list(lists), sa.JSON)).table_valued("value")
        among = labels.in_(sa.select(values.c.value))
    return among
