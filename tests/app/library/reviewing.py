"""A queue to try reviews out: a hotel's reviews, and short ways to queue, claim and decide."""

from datetime import UTC, datetime, timedelta

from app.library.history import history
from app.library.review.claiming import claim_item, claim_next
from app.library.review.deciding import Decided, accept, change
from app.library.review.queueing import Reason, queue_reviews
from app.library.review.viewing import Review
from app.library.verifying import verify
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


def two_waiting(workshop: Workshop) -> Workshop:
    """A library of which two samples wait: for 早餐凉了 差评 is proposed, and for 房间很大 nothing."""
    workshop.load(workshop.write("a.csv", ROWS))
    queue(workshop, wanted("早餐凉了", 0.9, "差评"), wanted("房间很大", 0.2))
    return workshop


def decide(workshop: Workshop, item: int, by: str, *labels: str) -> Decided:
    """Claim and decide: labels, or what there is."""
    claim_item(workshop.engine, item, by=by)
    done = change(workshop.engine, item, labels, by=by) if labels else accept(workshop.engine, item, by=by)
    assert list(verify(workshop.engine)) == []
    return done
