"""A queue to try reviews out: a hotel's reviews, and short ways to queue, claim and decide."""

from datetime import UTC, datetime, timedelta

from app.library.history import history
from app.library.review.claiming import claim_next
from app.library.review.queueing import Reason, queue_reviews
from app.library.review.viewing import Review
from app.store.reviews import Queued, Wanted
from app.store.tables import review_items
from model.text import sample_id
from tests.app.library.workshop import Workshop

ROWS = "text,label\n房间很大,好评\n早餐凉了,好评\n隔音太差,差评\n前台热情,好评\n"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=16)  # when a lease from noon is over


def wanted(text: str, value: float, *proposed: str, reason: str = Reason.LABEL_ERROR) -> Wanted:
    return Wanted(sample_id(text), reason, value, proposed or None, "linear@1a2b" if proposed else None)


def queue(workshop: Workshop, *items: Wanted, version: int | None = None) -> Queued:
    return queue_reviews(workshop.engine, library="default", wanted=items, by="标注员甲", version=version)


def take(workshop: Workshop, by: str = "标注员甲", now: datetime | None = None) -> Review:
    found = claim_next(workshop.engine, library="default", by=by, now=now)
    assert found is not None
    return found


def taken(workshop: Workshop, by: str, now: datetime | None = None) -> str | None:
    """The text that the person is given."""
    found = claim_next(workshop.engine, library="default", by=by, now=now)
    return found.text if found else None


def labels_of(workshop: Workshop, text: str) -> tuple[str, ...]:
    current = history(workshop.engine, library="default", sample=text, is_text=True).current
    return current.labels if current else ()


def said(workshop: Workshop, text: str) -> list[tuple[str, tuple[str, ...]]]:
    """What persons said about a sample, oldest first; an undo has no labels."""
    found = history(workshop.engine, library="default", sample=text, is_text=True).sample.events
    return [(event.actor, event.labels) for event in found if event.actor_kind == "person"]


def values(workshop: Workshop) -> dict[str, tuple[str, float]]:
    """Each open item's reason and value, by sample id."""
    with workshop.engine.connect() as connection:
        rows = connection.execute(review_items.select().where(review_items.c.state == "open")).all()
    return {row.sample_id: (row.reason, row.value) for row in rows}
