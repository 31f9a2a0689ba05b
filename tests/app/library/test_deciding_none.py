"""A reviewer may decide that no class fits: the sample has no label then, at once or when a second person agrees."""

import pytest
from workshop import Workshop

from app.library.labelling import label_sample
from app.library.review.claiming import claim_item, claim_next
from app.library.review.deciding import Decided, accept, change, none_fits, skip, undo_decision
from app.library.review.overview import review_stats
from app.library.revisions import describe, remove
from app.library.scoring import pool_samples
from app.library.taxonomies import change_taxonomy
from app.library.verifying import verify
from app.store.tables import label_events, review_decisions
from model.errors import BadInput, ItemTaken, UnknownReview
from tests.app.library.reviewing import (
    LATER,
    NOON,
    decide,
    labels_of,
    queue,
    said,
    take,
    taken,
    two_waiting,
    wanted,
)


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    return two_waiting(workshop)


@pytest.fixture
def paired(reviews: Workshop) -> Workshop:
    """Two persons have to agree on what is bad; it is proposed for 早餐凉了."""
    change_taxonomy(reviews.engine, "default", describe("差评", reviewers=2), by="标注员甲")
    return reviews


def none(workshop: Workshop, item: int, by: str) -> Decided:
    """Claim and say that no class fits."""
    claim_item(workshop.engine, item, by=by)
    done = none_fits(workshop.engine, item, by=by)
    assert list(verify(workshop.engine)) == []
    return done


def test_that_no_class_fits_is_a_persons_word_and_closes_the_item(reviews: Workshop) -> None:
    done = none_fits(reviews.engine, take(reviews).item.id, by="标注员甲", note="广告")
    assert (done.action, done.decided, done.waits, done.item.state) == ("none", (), False, "done")
    assert (done.current, said(reviews, "早餐凉了")) == (None, [("标注员甲", ())])
    assert done.event is not None
    assert "早餐凉了" not in reviews.samples()
    assert list(pool_samples(reviews.engine, "default")) == []
    assert list(verify(reviews.engine)) == []
    assert review_stats(reviews.engine, library="default").today == {"标注员甲": {"none": 1}}


def test_it_is_taken_back_and_the_item_is_open_again(reviews: Workshop) -> None:
    item = take(reviews).item.id
    none(reviews, item, "标注员甲")
    undone = undo_decision(reviews.engine, item, by="标注员甲")
    assert (undone.item.state, labels_of(reviews, "早餐凉了"), taken(reviews, "标注员甲")) == (
        "open",
        ("好评",),
        "早餐凉了",
    )
    assert none(reviews, item, "标注员甲").item.state == "done"
    assert labels_of(reviews, "早餐凉了") == ()


def test_it_takes_a_claim_that_still_holds(reviews: Workshop) -> None:
    item, events = take(reviews, now=NOON).item.id, reviews.count(label_events)
    with pytest.raises(ItemTaken, match="the lease of 标注员甲 ended"):
        none_fits(reviews.engine, item, by="标注员甲", now=LATER)
    with pytest.raises(ItemTaken, match="is with 标注员甲 until"):
        none_fits(reviews.engine, item, by="标注员乙", now=NOON)
    with pytest.raises(UnknownReview):
        none_fits(reviews.engine, 99, by="标注员甲")
    assert (reviews.count(label_events), reviews.count(review_decisions)) == (events, 0)


def test_whoever_changes_to_nothing_by_mistake_is_refused(reviews: Workshop) -> None:
    item = take(reviews).item.id
    with pytest.raises(BadInput, match="the label is empty"):
        change(reviews.engine, item, [], by="标注员甲")
    assert reviews.count(review_decisions) == 0


def test_a_text_of_no_class_that_is_asked_for_again_can_be_given_one(reviews: Workshop) -> None:
    none(reviews, take(reviews).item.id, "标注员甲")
    queue(reviews, wanted("早餐凉了", 1.0))
    item = take(reviews, "标注员乙").item.id
    with pytest.raises(BadInput, match=f"has no label; .*change {item} LABEL, or where no class fits: .*none {item}"):
        accept(reviews.engine, item, by="标注员乙")
    done = change(reviews.engine, item, ["差评"], by="标注员乙")
    assert done.current is not None
    assert (done.current.labels, done.current.conflict) == (("差评",), True)


def test_what_a_person_says_belongs_to_no_class_needs_no_review_any_more(reviews: Workshop) -> None:
    label_sample(reviews.engine, library="default", sample="早餐凉了", is_text=True, none=True, by="标注员乙")
    assert taken(reviews, "标注员甲") == "房间很大"
    assert review_stats(reviews.engine, library="default").states == {"open": 1, "settled": 1}


def test_two_who_say_that_no_class_fits_agree_and_until_then_nothing_changes(paired: Workshop) -> None:
    item = take(paired).item.id
    first = none(paired, item, "标注员甲")
    assert (first.waits, first.event, first.item.state, first.item.reason) == (True, None, "open", "label_error")
    assert (labels_of(paired, "早餐凉了"), said(paired, "早餐凉了")) == (("好评",), [])
    with pytest.raises(BadInput, match="标注员甲 has decided review item"):
        claim_item(paired.engine, item, by="标注员甲")
    second = none(paired, item, "标注员乙")
    assert (second.waits, second.item.state, second.current) == (False, "done", None)
    assert said(paired, "早餐凉了") == [("标注员甲", ()), ("标注员乙", ())]


def test_one_who_says_that_no_class_fits_and_one_who_names_one_differ(paired: Workshop) -> None:
    item = take(paired).item.id
    none(paired, item, "标注员甲")
    second = decide(paired, item, "标注员乙", "好评")
    assert (second.waits, second.item.state, second.item.reason) == (True, "open", "conflict")
    third = none(paired, item, "标注员丙")
    assert (third.item.state, labels_of(paired, "早餐凉了")) == ("done", ())
    assert said(paired, "早餐凉了") == [("标注员甲", ()), ("标注员丙", ())]


def test_a_word_whose_class_is_gone_does_not_agree_that_no_class_fits(paired: Workshop) -> None:
    change_taxonomy(paired.engine, "default", describe("好评", reviewers=2), by="标注员甲")
    item = take(paired).item.id
    decide(paired, item, "标注员甲", "差评")
    change_taxonomy(paired.engine, "default", remove("差评"), by="标注员甲")
    second = none(paired, item, "标注员乙")
    assert (second.waits, second.item.reason, said(paired, "早餐凉了")) == (True, "label_error", [])
    assert none(paired, item, "标注员丙").item.state == "done"
    assert said(paired, "早餐凉了") == [("标注员乙", ()), ("标注员丙", ())]


def test_where_one_of_two_takes_back_the_others_word_stays_until_it_is_decided(paired: Workshop) -> None:
    item = take(paired).item.id
    none(paired, item, "标注员甲")
    none(paired, item, "标注员乙")
    assert undo_decision(paired.engine, item, by="标注员乙").item.state == "open"
    assert labels_of(paired, "早餐凉了") == ()
    third = none(paired, item, "标注员丙")
    assert (third.waits, third.item.state) == (False, "done")
    assert [who for who, _ in said(paired, "早餐凉了")] == ["标注员甲", "标注员乙", "标注员乙", "标注员丙"]


def test_a_word_that_no_class_fits_survives_the_end_of_the_class_that_asked_for_two(paired: Workshop) -> None:
    item = take(paired).item.id
    none(paired, item, "标注员甲")
    change_taxonomy(paired.engine, "default", remove("差评"), by="标注员甲")
    assert none(paired, item, "标注员乙").item.state == "done"
    assert said(paired, "早餐凉了") == [("标注员甲", ()), ("标注员乙", ())]


def test_who_skips_says_nothing_of_it(paired: Workshop) -> None:
    item = take(paired).item.id
    skip(paired.engine, item, by="标注员甲")
    assert none(paired, item, "标注员乙").waits
    assert claim_next(paired.engine, library="default", by="标注员丙") is not None
