"""/v1/reviews: what people should look at; claim an item, decide it, or give it back, in the name of the key's user."""

from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import FailFast, Field

from app.api.bodies import MAX_NUMBER, PROBLEMS, Body, LabelName, Note, OfLibrary, Stretch, Words
from app.api.deps import Asker, Database
from app.api.samples import MAX_LABELS_AT_ONCE
from app.api.schemas import ErrorResponse
from app.api.work import Work
from app.library.review.claiming import LEASE, MAX_LEASE, claim_item, claim_next, release_item
from app.library.review.deciding import accept, change, none_fits, skip, undo_decision
from app.library.review.overview import list_reviews, review_stats
from app.library.review.queueing import Reason, queue_by_hand
from app.library.shapes.reviews import (
    ClaimedShape,
    DecidedShape,
    QueuedByHandShape,
    ReleasedShape,
    ReviewsShape,
    ReviewStatsShape,
    claimed_shape,
    decided_shape,
    queued_by_hand_shape,
    released_shape,
    review_stats_shape,
    reviews_shape,
)

TAKEN: dict[int | str, dict[str, Any]] = {
    409: {"model": ErrorResponse, "description": "他人已领取，或租约已到期 | taken, or not held any more"}
}
router = APIRouter(prefix="/v1/reviews", tags=["reviews"], responses=PROBLEMS | TAKEN)

MAX_SAMPLES_AT_ONCE = 1000
ItemNumber = Annotated[int, Path(alias="id", ge=1, le=MAX_NUMBER, description="复核项编号 | number of the item")]
WhyName = Annotated[Reason | None, Field(strict=False, description=f"缘由 | {', '.join(Reason)}")]


class Listing(OfLibrary, Stretch):
    """Which open items are listed."""

    reason: WhyName = None


class Wishes(Body):
    """Samples that somebody should look at, by id or its beginning. `value`: what a look is worth, 0 to 1."""

    samples: Annotated[
        list[Annotated[Words, Field(min_length=1, max_length=32)]],
        Field(min_length=1, max_length=MAX_SAMPLES_AT_ONCE),
        FailFast(),
    ]
    value: float = Field(default=1.0, ge=0, le=1, allow_inf_nan=False)


class Claim(Body):
    """An item by its number, or the next one, of any reason or of one. `lease`: seconds."""

    item: int | None = Field(default=None, ge=1, le=MAX_NUMBER)
    reason: WhyName = None
    lease: int = Field(default=int(LEASE.total_seconds()), ge=1, le=int(MAX_LEASE.total_seconds()))


class Remark(Body):
    """What is noted beside a decision."""

    note: Note = None


class Correction(Remark):
    """Other labels, by name, code or alias."""

    labels: Annotated[list[LabelName], Field(min_length=1, max_length=MAX_LABELS_AT_ONCE), FailFast()] = Field(
        examples=[["差评"]]
    )


@router.get("", summary="待复核 | What is to be reviewed")
def list_open(engine: Database, asked: Annotated[Listing, Query()]) -> ReviewsShape:
    """The open items, those that are worth most first."""
    page = list_reviews(engine, library=asked.library, reason=asked.reason, limit=asked.limit, offset=asked.offset)
    return reviews_shape(asked.library, page)


@router.get("/stats", summary="复核进度 | How the review stands")
def stats(engine: Database, of: Annotated[OfLibrary, Query()]) -> ReviewStatsShape:
    """How many items are open, held and closed, for which reasons, and who did what today."""
    return review_stats_shape(of.library, review_stats(engine, library=of.library))


@router.post("", summary="加入复核 | Ask for a review")
def add(
    engine: Database, asker: Asker, work: Work, of: Annotated[OfLibrary, Query()], body: Wishes
) -> QueuedByHandShape:
    """Queue samples by hand, all of them or none."""
    with work.words.one():
        queued = queue_by_hand(engine, library=of.library, samples=body.samples, value=body.value, by=asker.user)
    return queued_by_hand_shape(of.library, queued)


@router.post("/claim", summary="领取 | Claim an item")
def claim(
    engine: Database,
    asker: Asker,
    work: Work,
    of: Annotated[OfLibrary, Query()],
    body: Claim = Claim(),
) -> ClaimedShape:
    """Have the item, or the next one, for so long; `review` is null where nothing is left for the key's user."""
    lease = timedelta(seconds=body.lease)
    with work.words.one():
        if body.item is not None:
            return claimed_shape(claim_item(engine, body.item, by=asker.user, lease=lease))
        return claimed_shape(claim_next(engine, library=of.library, by=asker.user, reason=body.reason, lease=lease))


@router.post("/{id}/accept", summary="接受 | Accept what is proposed")
def accept_item(engine: Database, asker: Asker, work: Work, item: ItemNumber, body: Remark = Remark()) -> DecidedShape:
    """Decide what is proposed, or the label there is where nothing is proposed."""
    with work.words.one():
        return decided_shape(accept(engine, item, by=asker.user, note=body.note))


@router.post("/{id}/change", summary="改标签 | Decide other labels")
def change_item(engine: Database, asker: Asker, work: Work, item: ItemNumber, body: Correction) -> DecidedShape:
    """Decide other labels."""
    with work.words.one():
        return decided_shape(change(engine, item, body.labels, by=asker.user, note=body.note))


@router.post("/{id}/none", summary="都不是 | None of the classes")
def none_of_item(engine: Database, asker: Asker, work: Work, item: ItemNumber, body: Remark = Remark()) -> DecidedShape:
    """Decide that the text belongs to none of the classes; the sample has no label then."""
    with work.words.one():
        return decided_shape(none_fits(engine, item, by=asker.user, note=body.note))


@router.post("/{id}/skip", summary="跳过 | Leave it to others")
def skip_item(engine: Database, asker: Asker, work: Work, item: ItemNumber, body: Remark = Remark()) -> DecidedShape:
    """Leave the item to others."""
    with work.words.one():
        return decided_shape(skip(engine, item, by=asker.user, note=body.note))


@router.post("/{id}/undo", summary="撤回自己的决定 | Take back a decision of one's own")
def undo_item(engine: Database, asker: Asker, work: Work, item: ItemNumber, body: Remark = Remark()) -> DecidedShape:
    """Take back what the key's user did last with the item; it is open again."""
    with work.words.one():
        return decided_shape(undo_decision(engine, item, by=asker.user, note=body.note))


@router.post("/{id}/release", summary="放回 | Give it back")
def release(engine: Database, asker: Asker, work: Work, item: ItemNumber) -> ReleasedShape:
    """Give the item back, so that others get it."""
    with work.words.one():
        return released_shape(release_item(engine, item, by=asker.user))
