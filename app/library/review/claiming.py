"""Claim review items: each is with one person at a time, for as long as the lease lasts."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from app.library.labelling import person_name
from app.library.review.viewing import Review, iso, view_reviews
from app.store.database import connect, writing
from app.store.libraries import Library, get_library
from app.store.review_items import (
    SETTLED,
    SKIP,
    UNDO,
    Decision,
    close,
    hold,
    let_go,
    newest_decisions,
    next_item,
)
from app.store.reviews import OPEN, ReviewItem, read_item
from model.errors import BadInput, ItemTaken, UnknownReview

LEASE = timedelta(minutes=15)
MAX_LEASE = timedelta(days=1)


def claim_next(
    engine: sa.Engine,
    *,
    library: str,
    by: str,
    reason: str | None = None,
    lease: timedelta = LEASE,
    now: datetime | None = None,
) -> Review | None:
    """Give the person the open item that is worth most, for so long; None where none is left for them.

    Left out is what others have, and what the person has decided or skipped; an item that they hold already is among
    the others, and gets a new lease when it comes. What a person has labelled elsewhere since it was asked for is
    closed as settled. now: the moment, for those who do not go by the clock.

    Raises:
        UnknownLibrary: there is no such library. BadInput: the lease or the name can't be one.
    """
    person, until = person_name(by), _until(lease, now)
    while True:  # each settled item in a transaction of its own, so that no one else waits for all of them
        with connect(engine) as connection, writing(connection):
            source = get_library(connection, library)
            found = next_item(connection, source, person=person, at=iso(now), reason=reason)
            if found is None:
                return None
            review = _claim(connection, source, found, person=person, until=until, at=iso(now))
        if not review.settled:
            return review


def claim_item(
    engine: sa.Engine, item: int, *, by: str, lease: timedelta = LEASE, now: datetime | None = None
) -> Review:
    """Give the person this item, for so long; also one that they skipped.

    Raises:
        UnknownReview: there is none of that number, it is closed, or is now, as a person has labelled its sample.
        ItemTaken: somebody else has it. BadInput: the person has decided it, or the lease or the name can't be one.
    """
    person, until, at = person_name(by), _until(lease, now), iso(now)
    with connect(engine) as connection, writing(connection):
        found = open_item(connection, item)
        check_free(found, person, at=at)
        check_undecided(newest_decisions(connection, item), item, person)
        source = get_library(connection, found.library)
        review = _claim(connection, source, found, person=person, until=until, at=at)
    if review.settled:
        raise UnknownReview(
            f"review item {item} is settled: a person has labelled sample {found.sample_id} since it was asked for; "
            f"see wenlei library history {found.sample_id} --library {found.library}"
        )
    return review


def release_item(engine: sa.Engine, item: int, *, by: str, now: datetime | None = None) -> ReviewItem:
    """Give an item back, so that others get it; the item as it is then.

    Raises:
        UnknownReview: there is none of that number, or it is closed. ItemTaken: somebody else has it.
    """
    person = person_name(by)
    with connect(engine) as connection, writing(connection):
        found = open_item(connection, item)
        check_free(found, person, at=iso(now))
        let_go(connection, item, reason=found.reason)
    return replace(found, claimed_by=None, lease_until=None)


def open_item(connection: sa.Connection, item: int) -> ReviewItem:
    """The open item of that number, locked.

    Raises:
        UnknownReview: there is none, or it is closed.
    """
    found = read_item(connection, item, lock=True)
    if found is None:
        raise UnknownReview(f"there is no review item {item}; wenlei review list shows those that are open")
    if found.state != OPEN:
        raise UnknownReview(
            f"review item {item} is {found.state} since {found.closed_at}; wenlei review undo takes back a decision of "
            "yours, wenlei review add asks for its sample again"
        )
    return found


def check_free(item: ReviewItem, person: str, *, at: str) -> None:
    """Nobody else has the item.

    Raises:
        ItemTaken: somebody has.
    """
    holder = item.holder(at)
    if holder not in (None, person):
        raise ItemTaken(
            f"review item {item.id} is with {holder} until {item.lease_until}; claim another one, or this one then"
        )


def check_undecided(decisions: Mapping[str, Decision], item: int, person: str) -> None:
    """The person has not decided the item, or has taken that back. decisions: each person's newest.

    Raises:
        BadInput: they have.
    """
    newest = decisions.get(person)
    if newest is not None and newest.action not in (SKIP, UNDO):
        raise BadInput(
            f"{person} has decided review item {item} already, and now another person has to; to take it back: "
            f"wenlei review undo {item}"
        )


def _claim(
    connection: sa.Connection, library: Library, item: ReviewItem, *, person: str, until: str, at: str
) -> Review:
    """Hold the item, which is locked, or close it if it is settled."""
    review = view_reviews(connection, library, [item])[0]
    if review.settled:
        close(connection, item.id, SETTLED, at=at)
        return review
    seen = max(item.last_event, review.newest_event)  # what the person decides on
    hold(connection, item.id, person=person, until=until, last_event=seen)
    return replace(review, item=replace(item, claimed_by=person, lease_until=until, last_event=seen), changed=False)


def _until(lease: timedelta, now: datetime | None) -> str:
    if not timedelta(seconds=1) <= lease <= MAX_LEASE:
        raise BadInput(f"the lease is {lease.total_seconds():g} seconds; give 1 second to {MAX_LEASE.days} day")
    return iso((now or datetime.now(UTC)) + lease)
