"""One item of the review queue: who has it, and who decided what about it."""

from typing import NamedTuple

import sqlalchemy as sa

from app.store.reviews import IS_OPEN, OPEN
from app.store.tables import review_decisions, review_items

DONE, SETTLED = "done", "settled"
ACCEPT, CHANGE, SKIP = "accept", "change", "skip"
AGREED, UNDO = "agreed", "undo"


class Decision(NamedTuple):
    """What a person did with an item. action: accept, change or skip; `agreed`, when a second person agreed; or undo.

    labels: those decided, a sorted JSON list in the terms of `taxonomy_version`. event_id: the label event, if any.
    """

    id: int
    person: str
    action: str
    labels: str | None
    taxonomy_version: int
    event_id: int | None
    note: str | None


def next_item(
    connection: sa.Connection, library_id: int, *, person: str, at: str, reason: str | None = None
) -> int | None:
    """The open item that is worth most of those that nobody else has and the person has not decided or skipped.

    It stays locked until the transaction ends, and whoever asks meanwhile gets the one after it.
    """
    newest = (
        sa.select(review_decisions.c.action)
        .where(review_decisions.c.item_id == review_items.c.id, review_decisions.c.person == person)
        .order_by(review_decisions.c.id.desc())
        .limit(1)
        .correlate(review_items)
        .scalar_subquery()
    )
    lease = review_items.c.lease_until
    query = (
        sa.select(review_items.c.id)
        .where(review_items.c.library_id == library_id, IS_OPEN)
        .where(lease.is_(None) | (lease <= at) | (review_items.c.claimed_by == person))
        .where(sa.func.coalesce(newest, UNDO) == UNDO)
        .order_by(review_items.c.value.desc(), review_items.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=review_items)
    )
    if reason is not None:
        query = query.where(review_items.c.reason == reason)
    return connection.scalar(query)


def hold(connection: sa.Connection, item: int, *, person: str, until: str) -> None:
    """Let the person have the item until that time."""
    _update(connection, item, claimed_by=person, lease_until=until)


def let_go(connection: sa.Connection, item: int, *, reason: str | None = None) -> None:
    """Nobody has the item any more; it is there for another reason then, if one is given."""
    _update(connection, item, claimed_by=None, lease_until=None, **({} if reason is None else {"reason": reason}))


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
    """Append what a person did with the item, which is locked."""
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


def newest_decisions(connection: sa.Connection, item: int) -> dict[str, Decision]:
    """The newest word of each person about the item, by person."""
    columns = [review_decisions.c[name] for name in Decision._fields]
    query = sa.select(*columns).where(review_decisions.c.item_id == item).order_by(review_decisions.c.id)
    return {row.person: Decision(*row) for row in connection.execute(query)}


def _update(connection: sa.Connection, item: int, **values: object) -> None:
    connection.execute(sa.update(review_items).where(review_items.c.id == item).values(**values))
