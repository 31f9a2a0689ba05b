"""Samples are queued for review once each, all or none, and near duplicates one after another."""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from workshop import Workshop

from app.library.review.queueing import Reason, queue_by_hand
from app.library.revisions import rename
from app.library.taxonomies import change_taxonomy
from app.store.reviews import Queued
from app.store.tables import review_items
from model.errors import BadInput, UnknownLabel, UnknownLibrary, UnknownSample
from model.text import sample_id
from tests.app.library.reviewing import LATER, NOON, ROWS, queue, take, taken, values, wanted


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    return workshop


def test_a_sample_waits_once_and_is_raised_where_it_is_worth_more(reviews: Workshop) -> None:
    assert queue(reviews, wanted("房间很大", 0.4), wanted("早餐凉了", 0.6), wanted("早餐凉了", 0.5)) == Queued(2, 0, 0)
    again = queue(
        reviews, wanted("房间很大", 0.9, "差评", reason=Reason.HARD), wanted("早餐凉了", 0.1), wanted("前台热情", 0.2)
    )
    assert again == Queued(1, 1, 1)
    assert values(reviews) == {
        sample_id("房间很大"): ("hard", 0.9),
        sample_id("早餐凉了"): ("label_error", 0.6),
        sample_id("前台热情"): ("label_error", 0.2),
    }
    first = take(reviews)
    assert (first.text, first.proposed, first.item.proposed_by) == ("房间很大", ("差评",), "linear@1a2b")


def test_what_somebody_has_stays_as_it_is_until_the_lease_is_over(reviews: Workshop) -> None:
    queue(reviews, wanted("房间很大", 0.4))
    take(reviews)
    assert queue(reviews, wanted("房间很大", 0.9)) == Queued(0, 0, 1)
    assert values(reviews)[sample_id("房间很大")][1] == 0.4


def test_an_item_whose_lease_is_over_is_raised(reviews: Workshop) -> None:
    queue(reviews, wanted("房间很大", 0.4))
    take(reviews, now=NOON)  # long ago
    assert queue(reviews, wanted("房间很大", 0.9)) == Queued(0, 1, 0)
    assert taken(reviews, "标注员乙", LATER) == "房间很大"


def test_of_near_duplicates_one_comes_first(reviews: Workshop) -> None:
    near = ["酒店的早餐很丰盛，下次还来住", "酒店的早餐很丰盛，下次还来住！", "酒店的早餐很丰盛，下次还来住。。"]
    reviews.load(reviews.write("b.csv", "text,label\n" + "".join(f"{text},好评\n" for text in near)))
    queue(reviews, *(wanted(text, 0.9) for text in near), wanted("隔音太差", 0.5))
    found = {sample: round(value, 3) for sample, (_, value) in values(reviews).items()}
    assert [found[sample_id(text)] for text in (*near, "隔音太差")] == [0.9, 0.45, 0.3, 0.5]


def test_nothing_is_queued_where_one_sample_is_unknown_or_a_number_is_none(reviews: Workshop) -> None:
    good = wanted("房间很大", 0.4)
    for bad, error, message in (
        (replace(good, sample_id="0" * 32), UnknownSample, f"library 'default' has no sample {'0' * 32}"),
        (wanted("早餐凉了", math.nan), BadInput, "its value is nan; give a number from 0 to 1"),
        (wanted("早餐凉了", 1.5), BadInput, "its value is 1.5"),
        (replace(good, confidence=math.nan), BadInput, "its confidence is nan"),
        (wanted("早餐凉了", 0.5, "没有的"), UnknownLabel, "the proposed label '没有的' is not in the taxonomy"),
    ):
        with pytest.raises(error, match=message):
            queue(reviews, good, bad)
    assert reviews.count(review_items) == 0


def test_those_who_queue_the_same_samples_at_once_make_one_item_of_each(reviews: Workshop) -> None:
    texts = ("房间很大", "早餐凉了", "隔音太差", "前台热情")

    def add(turn: int) -> Queued:
        order = texts if turn % 2 else texts[::-1]
        return queue(reviews, *(wanted(text, 0.1 + turn / 10) for text in order))

    with ThreadPoolExecutor(4) as pool:
        queued = list(pool.map(add, range(4)))
    assert sum(each.added for each in queued) == reviews.count(review_items) == 4
    assert {value for _, value in values(reviews).values()} == {0.4}


def test_proposals_of_another_version_of_the_taxonomy_are_refused(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", rename("差评", "不满意"), by="标注员甲")
    with pytest.raises(BadInput, match="has become version 2, and the proposals are of version 1; do it again"):
        queue(reviews, wanted("房间很大", 0.4, "差评"), version=1)
    assert reviews.count(review_items) == 0
    assert queue(reviews, wanted("房间很大", 0.4, "不满意"), version=2).added == 1


def test_samples_are_queued_by_hand_by_text_or_by_the_beginning_of_their_ids(reviews: Workshop) -> None:
    by_text = queue_by_hand(reviews.engine, library="default", samples=["房间很大"], is_text=True, by="标注员甲")
    by_id = queue_by_hand(
        reviews.engine, library="default", samples=[sample_id("早餐凉了")[:8]], value=0.5, by="标注员甲"
    )
    assert (by_text.added, by_id.added) == (1, 1)
    assert values(reviews) == {sample_id("房间很大"): ("by_hand", 1.0), sample_id("早餐凉了"): ("by_hand", 0.5)}
    with pytest.raises(UnknownSample, match="no sample with the text '没有的'"):
        queue_by_hand(reviews.engine, library="default", samples=["没有的"], is_text=True, by="标注员甲")
    with pytest.raises(UnknownLibrary):
        queue_by_hand(reviews.engine, library="none", samples=["没有的"], by="标注员甲")
