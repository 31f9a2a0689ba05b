"""A review item is with one person at a time, for as long as the lease lasts."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from workshop import Workshop

from app.library.labelling import label_sample, undo_event
from app.library.review.claiming import claim_item, claim_next, release_item
from app.library.review.deciding import skip
from app.library.review.overview import review_stats
from app.library.review.queueing import Reason
from app.library.revisions import merge, remove
from app.library.taxonomies import change_taxonomy
from model.errors import BadInput, ItemTaken, UnknownLibrary, UnknownReview
from tests.app.library.reviewing import LATER, NOON, ROWS, queue, take, taken, wanted


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    queue(workshop, wanted("房间很大", 0.2), wanted("早餐凉了", 0.9, "差评"), wanted("隔音太差", 0.5))
    return workshop


def test_each_person_gets_what_is_worth_most_of_what_nobody_else_has(reviews: Workshop) -> None:
    assert taken(reviews, "标注员甲") == "早餐凉了"
    assert taken(reviews, "标注员乙") == "隔音太差"
    assert taken(reviews, "标注员甲") == "早餐凉了"  # still theirs
    assert taken(reviews, "标注员丙") == "房间很大"
    assert taken(reviews, "标注员丁") is None


def test_items_of_one_reason_are_given_out_alone(reviews: Workshop) -> None:
    queue(reviews, wanted("前台热情", 0.1, reason=Reason.HARD))
    found = claim_next(reviews.engine, library="default", by="标注员甲", reason=Reason.HARD)
    assert found is not None
    assert found.text == "前台热情"
    assert claim_next(reviews.engine, library="default", by="标注员乙", reason=Reason.HARD) is None


def test_of_equal_worth_the_first_comes_first(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", ROWS))
    queue(workshop, *(wanted(text, 0.5) for text in ("隔音太差", "房间很大", "早餐凉了")))
    assert [taken(workshop, by) for by in ("标注员甲", "标注员乙", "标注员丙")] == ["隔音太差", "房间很大", "早餐凉了"]


def test_what_comes_with_an_item_is_what_a_person_needs_to_decide(reviews: Workshop) -> None:
    found = take(reviews, now=NOON)
    assert (found.labels, found.proposed, found.item.reason, found.persons) == (("好评",), ("差评",), "label_error", 1)
    assert (found.item.claimed_by, found.item.lease_until) == ("标注员甲", "2026-03-01T12:15:00+00:00")


def test_a_lease_that_is_over_leaves_the_item_to_others(reviews: Workshop) -> None:
    assert taken(reviews, "标注员甲", NOON) == "早餐凉了"
    assert taken(reviews, "标注员乙", NOON + timedelta(minutes=14)) == "隔音太差"
    assert taken(reviews, "标注员丙", LATER) == "早餐凉了"
    assert taken(reviews, "标注员甲", LATER) == "房间很大"


def test_an_item_that_another_has_is_refused_with_the_name_and_the_time(reviews: Workshop) -> None:
    item = take(reviews, "标注员甲", NOON).item.id
    for refused in (claim_item, release_item):
        with pytest.raises(ItemTaken, match=f"review item {item} is with 标注员甲 until 2026-03-01T12:15:00"):
            refused(reviews.engine, item, by="标注员乙", now=NOON)
    assert claim_item(reviews.engine, item, by="标注员乙", now=LATER).item.claimed_by == "标注员乙"


def test_a_released_item_goes_to_the_next_who_asks(reviews: Workshop) -> None:
    item = take(reviews).item.id
    assert release_item(reviews.engine, item, by="标注员甲").claimed_by is None
    assert taken(reviews, "标注员乙") == "早餐凉了"


def test_what_a_person_skipped_comes_to_others_and_back_only_when_asked_for(reviews: Workshop) -> None:
    item = take(reviews).item.id
    skip(reviews.engine, item, by="标注员甲")
    assert taken(reviews, "标注员甲") == "隔音太差"
    assert taken(reviews, "标注员乙") == "早餐凉了"
    release_item(reviews.engine, item, by="标注员乙")
    assert claim_item(reviews.engine, item, by="标注员甲").text == "早餐凉了"


def test_what_a_person_has_labelled_since_is_settled_and_the_next_one_comes(reviews: Workshop) -> None:
    item = take(reviews).item.id
    release_item(reviews.engine, item, by="标注员甲")
    for text in ("早餐凉了", "隔音太差"):
        label_sample(reviews.engine, library="default", sample=text, is_text=True, labels=["差评"], by="标注员乙")
    assert taken(reviews, "标注员甲") == "房间很大"
    assert review_stats(reviews.engine, library="default").states == {"open": 1, "settled": 2}
    with pytest.raises(UnknownReview, match=f"review item {item} is settled since"):
        claim_item(reviews.engine, item, by="标注员甲")


def test_an_item_that_is_asked_for_when_it_is_settled_is_closed_and_refused(reviews: Workshop) -> None:
    item = take(reviews).item.id
    label_sample(reviews.engine, library="default", sample="早餐凉了", is_text=True, labels=["差评"], by="标注员乙")
    with pytest.raises(UnknownReview, match=r"a person has labelled sample [0-9a-f]+ since it was asked for"):
        claim_item(reviews.engine, item, by="标注员甲")
    assert review_stats(reviews.engine, library="default").states == {"open": 2, "settled": 1}


def test_a_word_that_was_withdrawn_settles_nothing_nor_does_one_from_before(reviews: Workshop) -> None:
    spoken = label_sample(
        reviews.engine, library="default", sample="早餐凉了", is_text=True, labels=["差评"], by="标注员乙"
    )
    undo_event(reviews.engine, spoken.event, by="标注员乙")
    assert taken(reviews, "标注员甲") == "早餐凉了"
    label_sample(reviews.engine, library="default", sample="前台热情", is_text=True, labels=["差评"], by="标注员乙")
    queue(reviews, wanted("前台热情", 1.0))
    assert taken(reviews, "标注员丙") == "前台热情"


def test_an_item_asked_for_again_is_not_settled_by_what_was_said_in_between(reviews: Workshop) -> None:
    label_sample(reviews.engine, library="default", sample="早餐凉了", is_text=True, labels=["差评"], by="标注员乙")
    queue(reviews, wanted("早餐凉了", 0.1))
    assert taken(reviews, "标注员甲") == "早餐凉了"


def test_proposals_are_told_in_terms_of_todays_taxonomy_and_left_out_where_nothing_is_left(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", merge(["差评"], into="不满意"), by="标注员甲")
    assert take(reviews).proposed == ("不满意",)
    change_taxonomy(reviews.engine, "default", remove("不满意"), by="标注员甲")
    assert take(reviews).proposed is None


def test_reviewers_at_once_never_get_the_same_item(workshop: Workshop) -> None:
    texts = [f"第{number}间房的窗户朝{'东南西北'[number % 4]}{chr(0x4E00 + 37 * number)}" for number in range(48)]
    workshop.load(workshop.write("a.csv", "text,label\n" + "".join(f"{text},好评\n" for text in texts)))
    queue(workshop, *(wanted(text, 0.5) for text in texts))

    def claim(person: int) -> list[int]:
        """Six items of one person, who skips all but the last."""
        found = []
        for turn in range(6):
            review = take(workshop, f"标注员{person}")
            found.append(review.item.id)
            if turn < 5:
                skip(workshop.engine, review.item.id, by=f"标注员{person}")
        return found

    with ThreadPoolExecutor(8) as pool:
        given = list(pool.map(claim, range(8)))
    assert all(len(set(items)) == 6 for items in given)
    assert len({items[-1] for items in given}) == 8  # which all hold at once


def test_what_can_not_be_claimed_is_refused(reviews: Workshop) -> None:
    with pytest.raises(UnknownReview, match="there is no review item 99; wenlei review list shows"):
        claim_item(reviews.engine, 99, by="标注员甲")
    with pytest.raises(UnknownReview, match="there is no review item 99"):
        release_item(reviews.engine, 99, by="标注员甲")
    with pytest.raises(UnknownLibrary):
        claim_next(reviews.engine, library="none", by="标注员甲")
    for lease in (timedelta(0), timedelta(days=2)):
        with pytest.raises(BadInput, match="give 1 second to 1 day"):
            claim_next(reviews.engine, library="default", by="标注员甲", lease=lease)
