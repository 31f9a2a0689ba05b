"""The review queue, as commands print it and HTTP answers it."""

from typing import Any

from typing_extensions import TypedDict

from app.library.review.deciding import Decided
from app.library.review.overview import ReviewPage, ReviewStats
from app.library.review.viewing import Review
from app.store.reviews import Queued, ReviewItem


class ReviewShape(TypedDict):
    """An open review item and its sample. `labels`: those it has now; `proposed`: in the terms of today's taxonomy.

    reason: why it should be looked at; value: what a look is worth, 0 to 1. persons: how many have to decide the same,
    as far as its labels tell. claimed_by, lease_until: who has it, ISO 8601 in UTC.
    """

    item: int
    library: str
    sample: str
    text: str
    pair: str | None
    labels: list[str] | None
    conflict: bool
    proposed: list[str] | None
    proposed_by: str | None
    confidence: float | None
    reason: str
    value: float
    details: dict[str, Any]
    persons: int
    asked_by: str
    asked_at: str
    claimed_by: str | None
    lease_until: str | None


class ReviewsShape(TypedDict):
    """Some of the open items, those that are worth most first. total: how many there are."""

    library: str
    total: int
    reviews: list[ReviewShape]


class ClaimedShape(TypedDict):
    """The item that somebody has now; None where nothing is left for them."""

    review: ReviewShape | None


class DecidedShape(TypedDict):
    """What a person did with an item. decided: the labels, empty where no class fits; None for a skip or an undo.

    event: the label event that was written, if one was. state: of the item. waits: another person has to decide the
    same before a label changes. labels: of the sample now.
    """

    item: int
    library: str
    sample: str
    action: str
    decided: list[str] | None
    state: str
    reason: str
    waits: bool
    event: int | None
    labels: list[str] | None
    conflict: bool


class ReleasedShape(TypedDict):
    """An item that was given back."""

    item: int
    library: str
    sample: str
    state: str


class QueuedShape(TypedDict):
    """added: new items. raised: open ones that are worth more now. known: open ones that stay as they are."""

    added: int
    raised: int
    known: int


class QueuedByHandShape(QueuedShape):
    """What a person asked for, and of which library."""

    library: str


class ReviewStatsShape(TypedDict):
    """How the review stands. held: open items that somebody has. done, settled: closed ones, decided here or elsewhere.

    reasons: of open items, → how many; closed: of the others. today: person → accept, change, none, skip, undo → how
    often since midnight in UTC.
    """

    library: str
    open: int
    held: int
    done: int
    settled: int
    reasons: dict[str, int]
    closed: dict[str, int]
    today: dict[str, dict[str, int]]


def review_shape(review: Review) -> ReviewShape:
    """An open item."""
    item = review.item
    return {
        "item": item.id,
        "library": item.library,
        "sample": item.sample_id,
        "text": review.text,
        "pair": review.pair,
        "labels": list(review.labels) or None,
        "conflict": bool(review.current and review.current.conflict),
        "proposed": None if review.proposed is None else list(review.proposed),
        "proposed_by": item.proposed_by,
        "confidence": item.confidence,
        "reason": item.reason,
        "value": item.value,
        "details": dict(item.details),
        "persons": review.persons,
        "asked_by": item.created_by,
        "asked_at": item.created_at,
        "claimed_by": item.claimed_by,
        "lease_until": item.lease_until,
    }


def reviews_shape(library: str, page: ReviewPage) -> ReviewsShape:
    """A page of open items."""
    return {"library": library, "total": page.total, "reviews": [review_shape(review) for review in page.reviews]}


def claimed_shape(review: Review | None) -> ClaimedShape:
    """What somebody was given."""
    return {"review": None if review is None else review_shape(review)}


def decided_shape(done: Decided) -> DecidedShape:
    """What became of an item by a person's decision."""
    current = done.current
    return {
        "item": done.item.id,
        "library": done.item.library,
        "sample": done.item.sample_id,
        "action": done.action,
        "decided": None if done.decided is None else list(done.decided),
        "state": done.item.state,
        "reason": done.item.reason,
        "waits": done.waits,
        "event": done.event,
        "labels": list(current.labels) if current else None,
        "conflict": bool(current and current.conflict),
    }


def released_shape(item: ReviewItem) -> ReleasedShape:
    """An item that was given back."""
    return {"item": item.id, "library": item.library, "sample": item.sample_id, "state": item.state}


def queued_shape(queued: Queued) -> QueuedShape:
    """What was queued."""
    return {"added": queued.added, "raised": queued.raised, "known": queued.known}


def queued_by_hand_shape(library: str, queued: Queued) -> QueuedByHandShape:
    """What was queued because a person asked for it."""
    return {"library": library, **queued_shape(queued)}


def review_stats_shape(library: str, stats: ReviewStats) -> ReviewStatsShape:
    """How the review stands."""
    return {
        "library": library,
        "open": stats.open,
        "held": stats.held,
        "done": stats.states.get("done", 0),
        "settled": stats.states.get("settled", 0),
        "reasons": stats.reasons,
        "closed": stats.closed,
        "today": stats.today,
    }
