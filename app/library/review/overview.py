"""How the review of a library stands: what is open, what was done, and who did how much today."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from app.library.review.viewing import Review, iso, view_reviews
from app.store.database import connect, reading
from app.store.libraries import get_library
from app.store.review_items import AGREED
from app.store.reviews import OPEN, count_decisions, count_held, count_items, list_items


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Some of the open items, those that are worth most first. total: how many there are."""

    total: int
    reviews: list[Review]


@dataclass(frozen=True, slots=True)
class ReviewStats:
    """How the review stands. held: open items that somebody has. states: → items. reasons: of open items, → how many.

    closed: of those that are not open. today: person → action → how often, since midnight in UTC.
    """

    held: int
    states: dict[str, int]
    reasons: dict[str, int]
    closed: dict[str, int]
    today: dict[str, dict[str, int]]

    @property
    def open(self) -> int:
        """How many items are open."""
        return self.states.get(OPEN, 0)


def list_reviews(
    engine: sa.Engine, *, library: str, reason: str | None = None, limit: int = 20, offset: int = 0
) -> ReviewPage:
    """Some of the open items of the library, after the first `offset`; of one reason, or of any.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        total, items = list_items(connection, source.id, reason=reason, limit=limit, offset=offset)
        return ReviewPage(total, view_reviews(connection, source, items))


def review_stats(engine: sa.Engine, *, library: str, now: datetime | None = None) -> ReviewStats:
    """How the review of the library stands.

    Raises:
        UnknownLibrary: there is no such library.
    """
    at = iso(now)
    midnight = at[: len("2026-01-01")]
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        counts = count_items(connection, source.id)
        held = count_held(connection, source.id, at=at)
        done = count_decisions(connection, source.id, since=midnight)
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    closed: Counter[str] = Counter()
    for state, reason, count in counts:
        states[state] += count
        (reasons if state == OPEN else closed)[reason] += count
    today: dict[str, dict[str, int]] = {}
    for person, action, count in done:
        if action != AGREED:  # that was decided before
            today.setdefault(person, {})[action] = count
    return ReviewStats(held, dict(states), dict(reasons), dict(closed), today)
