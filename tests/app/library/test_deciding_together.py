"""Where a class asks for two persons, a label changes when two of them decide the same."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from workshop import Workshop

from app.library.history import history
from app.library.labelling import undo_event
from app.library.review.claiming import claim_item, release_item
from app.library.review.deciding import accept, change, skip, undo_decision
from app.library.review.overview import list_reviews, review_stats
from app.library.revisions import describe, remove, rename
from app.library.taxonomies import change_taxonomy
from app.store.tables import review_decisions
from model.errors import BadInput, ItemTaken, UnknownReview
from model.types import Task
from tests.app.library.reviewing import (
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
    """Two persons have to agree on what is bad."""
    change_taxonomy(reviews.engine, "default", describe("差评", reviewers=2), by="标注员甲")
    return reviews


def test_two_persons_who_agree_make_the_label_and_until_then_nothing_changes(paired: Workshop) -> None:
    item = take(paired).item.id
    assert take(paired).persons == 2
    first = decide(paired, item, "标注员甲")
    assert (first.waits, first.event, first.item.state, first.item.reason) == (True, None, "open", "label_error")
    assert (labels_of(paired, "早餐凉了"), said(paired, "早餐凉了")) == (("好评",), [])
    assert taken(paired, "标注员甲") == "房间很大"
    shown = take(paired, "标注员乙")
    assert (shown.item.id, shown.labels, shown.proposed, shown.item.reason) == (
        item,
        ("好评",),
        ("差评",),
        "label_error",
    )
    second = accept(paired.engine, item, by="标注员乙")
    assert (second.waits, second.item.state) == (False, "done")
    assert said(paired, "早餐凉了") == [("标注员甲", ("差评",)), ("标注员乙", ("差评",))]
    assert labels_of(paired, "早餐凉了") == ("差评",)


def test_nobody_is_both_persons(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    with pytest.raises(BadInput, match=r"标注员甲 has decided review item \d+ already, and now another person has to"):
        claim_item(paired.engine, item, by="标注员甲")
    with pytest.raises(BadInput, match="already"):
        accept(paired.engine, item, by="标注员甲")
    assert said(paired, "早餐凉了") == []


def test_where_two_differ_the_item_stays_until_any_two_agree(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲", "差评")
    second = decide(paired, item, "标注员乙", "好评")
    assert (second.waits, second.item.state, second.item.reason) == (True, "open", "conflict")
    assert said(paired, "早餐凉了") == []
    third = decide(paired, item, "标注员丙", "好评")
    assert (third.item.state, labels_of(paired, "早餐凉了")) == ("done", ("好评",))
    assert said(paired, "早餐凉了") == [("标注员乙", ("好评",)), ("标注员丙", ("好评",))]


@pytest.mark.parametrize("decided", ["差评", "好评"])
def test_it_takes_two_where_the_decided_the_proposed_or_the_current_label_asks_for_it(
    paired: Workshop, decided: str
) -> None:
    queue(paired, wanted("隔音太差", 1.0))  # 差评 now
    current = take(paired).item.id
    proposed = take(paired, "标注员丁").item.id  # 差评 is proposed for 早餐凉了
    release_item(paired.engine, proposed, by="标注员丁")
    assert decide(paired, current, "标注员甲", decided).waits
    assert decide(paired, proposed, "标注员甲", decided).waits
    neither = take(paired).item.id
    assert decide(paired, neither, "标注员甲", decided).waits == (decided == "差评")


def test_a_word_that_waits_is_taken_back_and_said_otherwise(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲", "差评")
    decide(paired, item, "标注员乙", "好评")
    undo_decision(paired.engine, item, by="标注员甲")
    assert decide(paired, item, "标注员甲", "好评").item.state == "done"
    assert said(paired, "早餐凉了") == [("标注员乙", ("好评",)), ("标注员甲", ("好评",))]


def test_one_of_two_takes_back_and_a_third_may_agree_with_the_other(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    decide(paired, item, "标注员乙")
    assert undo_decision(paired.engine, item, by="标注员甲").item.state == "open"
    third = decide(paired, item, "标注员丙")
    assert (third.waits, third.item.state) == (False, "done")
    assert [who for who, labels in said(paired, "早餐凉了") if labels] == ["标注员甲", "标注员乙", "标注员丙"]


def test_one_person_is_enough_again_where_the_class_asks_for_no_more(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    change_taxonomy(paired.engine, "default", describe("差评", reviewers=1), by="标注员甲")
    assert decide(paired, item, "标注员乙").item.state == "done"
    assert said(paired, "早餐凉了") == [("标注员甲", ("差评",)), ("标注员乙", ("差评",))]


def test_words_that_wait_follow_the_taxonomy(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    change_taxonomy(paired.engine, "default", rename("差评", "不满意"), by="标注员甲")
    assert decide(paired, item, "标注员乙").item.state == "done"
    assert said(paired, "早餐凉了") == [("标注员甲", ("不满意",)), ("标注员乙", ("不满意",))]


def test_a_word_that_waits_is_void_when_its_class_is_gone(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    change_taxonomy(paired.engine, "default", remove("差评"), by="标注员甲")
    second = decide(paired, item, "标注员乙", "好评")
    assert (second.waits, second.item.state, second.item.reason) == (False, "done", "label_error")
    assert said(paired, "早餐凉了") == [("标注员乙", ("好评",))]


def test_a_word_whose_event_was_undone_by_itself_agrees_with_nobody(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲", "差评")
    decide(paired, item, "标注员乙", "差评")
    undo_decision(paired.engine, item, by="标注员乙")
    events = history(paired.engine, library="default", sample="早餐凉了", is_text=True).sample.events
    undo_event(paired.engine, next(event.id for event in events if event.actor == "标注员甲"), by="标注员甲")
    assert decide(paired, item, "标注员乙", "差评").waits
    assert labels_of(paired, "早餐凉了") == ("好评",)


def test_a_branch_that_asks_for_two_asks_for_all_below_it(workshop: Workshop) -> None:
    rows = "text,label\n渗水了,水电/漏水\n灯不亮,水电/断电\n门锁坏了,门窗/门\n"
    workshop.load(workshop.write("a.csv", rows), task=Task.HIERARCHICAL, level_sep="/")
    change_taxonomy(workshop.engine, "default", describe("水电", reviewers=2), by="标注员甲")
    queue(workshop, wanted("渗水了", 0.9), wanted("门锁坏了", 0.5))
    water, door = take(workshop).item.id, take(workshop, "标注员乙").item.id
    release_item(workshop.engine, door, by="标注员乙")
    assert (decide(workshop, water, "标注员甲").waits, decide(workshop, door, "标注员甲").waits) == (True, False)


def test_of_two_who_decide_at_once_one_is_told_that_it_is_done(paired: Workshop) -> None:
    item = take(paired).item.id

    def once(_: int) -> str:
        try:
            return change(paired.engine, item, ["好评"], by="标注员甲").item.state
        except (UnknownReview, BadInput, ItemTaken) as error:
            return type(error).__name__

    with ThreadPoolExecutor(4) as pool:
        outcomes = sorted(pool.map(once, range(4)))
    assert outcomes == ["BadInput", "BadInput", "BadInput", "open"]
    assert paired.count(review_decisions) == 1


def test_the_overview_counts_states_reasons_and_what_each_did_today(paired: Workshop) -> None:
    item = take(paired).item.id
    decide(paired, item, "标注员甲")
    skip(paired.engine, take(paired).item.id, by="标注员甲")
    decide(paired, item, "标注员乙")
    take(paired, "标注员乙")
    stats = review_stats(paired.engine, library="default")
    assert (stats.open, stats.held, stats.states) == (1, 1, {"done": 1, "open": 1})
    assert (stats.reasons, stats.closed) == ({"label_error": 1}, {"label_error": 1})
    assert stats.today == {"标注员甲": {"accept": 1, "skip": 1}, "标注员乙": {"accept": 1}}
    queue(paired, wanted("前台热情", 0.1), wanted("隔音太差", 0.05))
    page = list_reviews(paired.engine, library="default", limit=2, offset=1)
    assert (page.total, [review.text for review in page.reviews]) == (3, ["前台热情", "隔音太差"])
    assert list_reviews(paired.engine, library="default", reason="hard").total == 0
