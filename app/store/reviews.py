"""The review queue: which samples people should look at, and what each look is worth."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import label_events, libraries, review_decisions, review_items
from app.store.taxonomies import to_json
from model.files import canonical_json
from model.provenance import now

ITEMS_AT_ONCE = 5_000
OPEN = "open"
# Written out, not a variable: only then do both databases see that the indexes of open items will do.
IS_OPEN = review_items.c.state == sa.literal_column("'open'")
_IS_CLOSED = review_items.c.state != sa.literal_column("'open'")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sample that people should look at, and why.

    value: what a look is worth, 0 to 1: the chance that it changes the label. proposed: the labels that a machine would
    give, `proposed_by` it, this sure (0 to 1). details: what to show beside it.
    """

    sample_id: str
    reason: str
    value: float
    proposed: tuple[str, ...] | None = None
    proposed_by: str | None = None
    confidence: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Queued(NamedTuple):
    """added: new items. raised: open ones that are worth more now. known: open ones that stay as they are."""

    added: int
    raised: int
    known: int


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An item of the queue of a library: open, or done, or settled elsewhere.

    proposed: a JSON list of labels in the terms of `taxonomy_version`. claimed_by: who has it, until `lease_until`,
    ISO 8601 in UTC. last_event: the newest label event when it was asked for, or claimed since.
    """

    id: int
    library: str
    sample_id: str
    reason: str
    value: float
    proposed: str | None
    proposed_by: str | None
    confidence: float | None
    taxonomy_version: int
    details: Mapping[str, Any]
    created_by: str
    created_at: str
    state: str
    claimed_by: str | None
    lease_until: str | None
    closed_at: str | None
    last_event: int

    def holder(self, at: str) -> str | None:
        """Who has it at that time, ISO 8601 in UTC."""
        return self.claimed_by if self.lease_until is not None and self.lease_until > at else None


class PersonsDay(NamedTuple):
    """How often a person did what in reviews since some time."""

    person: str
    action: str
    times: int


class QueueCount(NamedTuple):
    """How many items are in a state for a reason."""

    state: str
    reason: str
    items: int


def lock_queue(connection: sa.Connection, library_id: int) -> None:
    """Keep all others from opening items of the library until the transaction ends: each sample has one at most."""
    if connection.dialect.name == "postgresql":  # on SQLite, whoever writes has the whole database
        number = sa.func.hashtext(f"wenlei reviews {library_id}")
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(number)))


def add_items(connection: sa.Connection, library_id: int, wanted: Sequence[Wanted], *, by: str, version: int) -> Queued:
    """Queue samples, each once; one that waits already takes the new reason where that makes it worth more.

    The queue is locked. Items that somebody has stay as they are. wanted: of each sample one. version: of the taxonomy
    that labels are proposed in.
    """
    added = raised = known = 0
    at = now()
    last = newest_event(connection)
    shared = {"library_id": library_id, "created_by": by, "created_at": at, "state": OPEN}
    shared |= {"taxonomy_version": version, "last_event": last}
    for start in range(0, len(wanted), ITEMS_AT_ONCE):
        some = {item.sample_id: item for item in wanted[start : start + ITEMS_AT_ONCE]}
        waiting = _waiting(connection, library_id, list(some))
        free = {sample_id: row for sample_id, row in waiting.items() if not _is_held(row, at)}
        new = [shared | _values(item) for sample_id, item in some.items() if sample_id not in waiting]
        if new:
            connection.execute(sa.insert(review_items), new)
        better = [
            {"of_item": row.id} | {f"new_{name}": value for name, value in _values(some[sample_id]).items()}
            for sample_id, row in free.items()
            if some[sample_id].value > row.value
        ]
        if better:
            _raise(connection, better, at=at, version=version)
        if free:  # asked for again: what persons said before does not settle it
            again = sa.update(review_items).where(review_items.c.id.in_([row.id for row in free.values()]))
            connection.execute(again.values(last_event=last))
        added, raised, known = added + len(new), raised + len(better), known + len(waiting) - len(better)
        if start == 0 and len(wanted) > ITEMS_AT_ONCE and connection.dialect.name == "postgresql":
            # else it takes the open items of a library for few, and goes through all of them for every sample
            connection.exec_driver_sql("ANALYZE review_items")
    return Queued(added, raised, known)


def newest_event(connection: sa.Connection) -> int:
    """The number of the newest label event of all libraries; 0 before the first."""
    return connection.scalar(sa.select(sa.func.max(label_events.c.id))) or 0


def read_item(connection: sa.Connection, item: int, *, lock: bool = False) -> ReviewItem | None:
    """The item of that number, if there is one. lock: nobody else claims or decides it until the transaction ends."""
    query = _items().where(review_items.c.id == item)
    if lock:
        query = query.with_for_update(of=review_items)
    row = connection.execute(query).one_or_none()
    return item_of(row) if row else None


def list_items(
    connection: sa.Connection, library_id: int, *, reason: str | None, limit: int, offset: int
) -> tuple[int, list[ReviewItem]]:
    """How many open items there are, for one reason or for any, and those of a page, in the order of their value."""
    which = [review_items.c.library_id == library_id, IS_OPEN]
    if reason is not None:
        which.append(review_items.c.reason == reason)
    total = connection.execute(sa.select(sa.func.count()).select_from(review_items).where(*which)).scalar_one()
    page = _items().where(*which).order_by(review_items.c.value.desc(), review_items.c.id).limit(limit).offset(offset)
    return total, [item_of(row) for row in connection.execute(page)]


def count_items(connection: sa.Connection, library_id: int) -> list[QueueCount]:
    """How many items of the library are in which state, for which reason."""
    columns = review_items.c.state, review_items.c.reason
    counts = []
    for which, state in ((IS_OPEN, sa.literal(OPEN)), (_IS_CLOSED, columns[0])):  # each from an index of its own
        query = sa.select(state, columns[1], sa.func.count()).where(review_items.c.library_id == library_id, which)
        grouped = columns[1:] if which is IS_OPEN else columns
        counts += [QueueCount(*row) for row in connection.execute(query.group_by(*grouped).order_by(*grouped))]
    return counts


def count_held(connection: sa.Connection, library_id: int, *, at: str) -> int:
    """How many open items somebody has at that time."""
    which = (review_items.c.library_id == library_id, review_items.c.lease_until > at)  # which no closed one has
    return connection.execute(sa.select(sa.func.count()).select_from(review_items).where(*which)).scalar_one()


def count_decisions(connection: sa.Connection, library_id: int, *, since: str) -> list[PersonsDay]:
    """How often each person did what in reviews of the library since that time."""
    columns = review_decisions.c.person, review_decisions.c.action
    query = (
        sa.select(*columns, sa.func.count())
        .join(review_items, review_items.c.id == review_decisions.c.item_id)
        .where(review_decisions.c.at >= since, review_items.c.library_id == library_id)
    )
    return [PersonsDay(*row) for row in connection.execute(query.group_by(*columns).order_by(*columns))]


def item_of(row: Any) -> ReviewItem:
    """The item that a row of its columns and its library's name holds."""
    values = row._asdict()
    return ReviewItem(**values | {"details": json.loads(values["details"])})


ITEM_COLUMNS = [review_items.c[each.name] for each in fields(ReviewItem) if each.name != "library"]


def _items() -> sa.Select[Any]:
    return sa.select(*ITEM_COLUMNS, libraries.c.name.label("library")).join(
        libraries, libraries.c.id == review_items.c.library_id
    )


def _raise(connection: sa.Connection, better: Sequence[Mapping[str, Any]], *, at: str, version: int) -> None:
    """Give items another reason and value, unless somebody has taken one meanwhile."""
    columns = [name.removeprefix("new_") for name in better[0] if name.startswith("new_") and name != "new_sample_id"]
    connection.execute(
        sa.update(review_items)
        .where(review_items.c.id == sa.bindparam("of_item"), IS_OPEN)
        .where(review_items.c.lease_until.is_(None) | (review_items.c.lease_until <= at))
        .values({name: sa.bindparam(f"new_{name}") for name in columns} | {"taxonomy_version": version}),
        [{name: value for name, value in row.items() if name != "new_sample_id"} for row in better],
    )


def _waiting(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> dict[str, Any]:
    """The open items of these samples, by sample."""
    columns = [review_items.c[name] for name in ("id", "sample_id", "value", "lease_until")]
    query = sa.select(*columns).where(
        review_items.c.library_id == library_id, IS_OPEN, review_items.c.sample_id.in_(ids)
    )
    return {row.sample_id: row for row in connection.execute(query)}


def _is_held(row: Any, at: str) -> bool:
    return row.lease_until is not None and row.lease_until > at


def _values(item: Wanted) -> dict[str, Any]:
    return {
        "sample_id": item.sample_id,
        "reason": item.reason,
        "value": item.value,
        "proposed": None if item.proposed is None else canonical_json(sorted(item.proposed)).decode(),
        "proposed_by": item.proposed_by,
        "confidence": item.confidence,
        "details": to_json(item.details),
    }
