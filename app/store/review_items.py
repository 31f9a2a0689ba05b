"""One item of the review queue: who has it, and who decided what about it.

Who has decided or skipped an item is in its column `passed`, too. It follows from the decisions, and is there so that
whoever has skipped ten thousand items still gets the next one in milliseconds.
"""

from typing import NamedTuple

import sqlalchemy as sa

from app.store.libraries import Library
from app.store.reviews import IS_OPEN, ITEM_COLUMNS, OPEN, ReviewItem, item_of
from app.store.tables import review_decisions, review_items

DONE, SETTLED = "done", "settled"
ACCEPT, CHANGE, NONE, SKIP = "accept", "change", "none", "skip"
AGREED, UNDO = "agreed", "undo"


class Decision(NamedTuple):
    """What a person did with an item. action: accept, change, none or skip; `agreed`, when a second person agreed; or
    undo.

    labels: those decided, a sorted JSON list in the terms of `taxonomy_version`, empty where no class fits; None for a
    skip or an undo. event_id: the label event, if any.
    """

    id: int
    person: str
    action: str
    labels: str | None
    taxonomy_version: int
    event_id: int | None
    note: str | None


def next_item(
    connection: sa.Connection, library: Library, *, person: str, at: str, reason: str | None = None
) -> ReviewItem | None:
    """The open item that is worth most of those that nobody else has and the person has not decided or skipped.

    It stays locked until the transaction ends, and whoever asks meanwhile gets the one after it.
    """
    lease, passed = review_items.c.lease_until, review_items.c.passed
    query = (  # the library's name is no join, which would sort all there is
        sa.select(*ITEM_COLUMNS, sa.literal(library.definition.name).label("library"))
        .where(review_items.c.library_id == library.id, IS_OPEN)
        .where(lease.is_(None) | (lease <= at) | (review_items.c.claimed_by == person))
        .where(passed.is_(None) | (_without(person) == passed))
        .order_by(review_items.c.value.desc(), review_items.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=review_items)
    )
    if reason is not None:
        query = query.where(review_items.c.reason == reason)
    row = connection.execute(query).one_or_none()
    return item_of(row) if row else None


def hold(connection: sa.Connection, item: int, *, person: str, until: str, last_event: int) -> None:
    """Let the person have the item until that time. last_event: the newest that they know of."""
    _update(connection, item, claimed_by=person, lease_until=until, last_event=last_event)


def let_go(connection: sa.Connection, item: int, *, reason: str) -> None:
    """Nobody has the item any more; it waits for others, for that reason."""
    _update(connection, item, claimed_by=None, lease_until=None, reason=reason)


def close(connection: sa.Connection, item: int, state: str, *, at: str) -> None:
    """The item is done, or settled elsewhere."""
    _update(connection, item, state=state, closed_at=at, claimed_by=None, lease_until=None)


def reopen(connection: sa.Connection, item: int, *, last_event: int) -> None:
    """Bring the item back into the queue, which is locked, unless its sample waits there already."""
    of_item = review_items.alias()
    waits = (
        sa.select(review_items.c.id)
        .join(
            of_item,
            (of_item.c.library_id == review_items.c.library_id) & (of_item.c.sample_id == review_items.c.sample_id),
        )
        .where(of_item.c.id == item, IS_OPEN)
    )
    if connection.scalar(waits) is None:
        _update(connection, item, state=OPEN, closed_at=None, last_event=last_event)


def record_decision(
    connection: sa.Connection,
    item: int,
    *,
    person: str,
    action: str,
    labels: str | None,
    version: int,
    event: int | None,
    at: str,
    note: str | None,
) -> None:
    """Append what a person did with the item, which is locked; unless it is an undo, the item is behind them."""
    values = {
        "item_id": item,
        "person": person,
        "action": action,
        "labels": labels,
        "taxonomy_version": version,
        "event_id": event,
        "at": at,
        "note": note,
    }
    connection.execute(sa.insert(review_decisions).values(values))
    others = sa.func.coalesce(_without(person), "")
    passed = sa.func.nullif(others, "") if action == UNDO else others + f"\n{person}\n"
    _update(connection, item, passed=passed)


def newest_decisions(connection: sa.Connection, item: int) -> dict[str, Decision]:
    """The newest word of each person about the item, by person."""
    columns = [review_decisions.c[name] for name in Decision._fields]
    query = sa.select(*columns).where(review_decisions.c.item_id == item).order_by(review_decisions.c.id)
    return {row.person: Decision(*row) for row in connection.execute(query)}


def _without(person: str) -> sa.Function[str]:
    """The column `passed` as it is without the person, whose name has no line ends."""
    return sa.func.replace(review_items.c.passed, f"\n{person}\n", "")


def _update(connection: sa.Connection, item: int, **values: object) -> None:
    connection.execute(sa.update(review_items).where(review_items.c.id == item).values(**values))
