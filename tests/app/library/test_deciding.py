"""A decision is on record with its person and becomes a label event at once, or when a second person agrees."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from workshop import Workshop

from app.library.history import history
from app.library.labelling import label_sample, undo_event
from app.library.review.claiming import claim_item, release_item
from app.library.review.deciding import Decided, accept, change, skip, undo_decision
from app.library.review.overview import list_reviews, review_stats
from app.library.revisions import describe, remove, rename
from app.library.sweeping import apply_sweep
from app.library.taxonomies import change_taxonomy
from app.library.verifying import verify
from app.store.sweeps import SweptLabels
from app.store.tables import label_events, review_decisions
from model.errors import BadInput, ItemTaken, UnknownLabel, UnknownReview
from model.types import Task
from tests.app.library.reviewing import LATER, NOON, ROWS, labels_of, queue, said, take, taken, wanted


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    queue(workshop, wanted("早餐凉了", 0.9, "差评"), wanted("房间很大", 0.2))
    return workshop


@pytest.fixture
def paired(reviews: Workshop) -> Workshop:
    """Two persons have to agree on what is bad."""
    change_taxonomy(reviews.engine, "default", describe("差评", reviewers=2), by="标注员甲")
    return reviews


def decide(workshop: Workshop, item: int, by: str, *labels: str) -> Decided:
    """Claim and decide: labels, or what there is."""
    claim_item(workshop.engine, item, by=by)
    done = change(workshop.engine, item, labels, by=by) if labels else accept(workshop.engine, item, by=by)
    assert list(verify(workshop.engine)) == []
    return done


def test_what_is_proposed_is_accepted_as_the_persons_word(reviews: Workshop) -> None:
    item = take(reviews).item.id
    done = accept(reviews.engine, item, by="标注员甲", note="确实不满")
    assert (done.action, done.decided, done.waits, done.item.state) == ("accept", ("差评",), False, "done")
    assert done.current is not None
    assert (done.current.labels, done.current.event) == (("差评",), done.event)
    assert (labels_of(reviews, "早餐凉了"), said(reviews, "早餐凉了")) == (("差评",), [("标注员甲", ("差评",))])
    assert list(verify(reviews.engine)) == []


def test_without_a_proposal_the_label_there_is_is_accepted(reviews: Workshop) -> None:
    take(reviews, "标注员乙")
    done = accept(reviews.engine, take(reviews).item.id, by="标注员甲")
    assert (done.decided, said(reviews, "房间很大")) == (("好评",), [("标注员甲", ("好评",))])


def test_a_label_that_a_machine_changed_in_mid_review_is_not_accepted_unseen(reviews: Workshop) -> None:
    bad, claimed = wanted("房间很大", 0.2).sample_id, take(reviews, "标注员乙")
    item = take(reviews).item.id
    rows = [SweptLabels(sample, ("差评",), 0.9) for sample in (bad, claimed.item.sample_id)]
    apply_sweep(
        reviews.engine,
        library="default",
        kind="relabel",
        actor="linear@1a2b",
        rows=rows,
        judged=reviews.labels(row.sample_id for row in rows),
        asked={},
        outcome={},
        by="标注员甲",
        version=1,
    )
    with pytest.raises(ItemTaken, match=f"its label became 差评 since you claimed it; look again .*claim {item}"):
        accept(reviews.engine, item, by="标注员甲")
    assert said(reviews, "房间很大") == []
    assert accept(reviews.engine, claimed.item.id, by="标注员乙").decided == ("差评",)  # as it was proposed
    assert claim_item(reviews.engine, item, by="标注员甲").labels == ("差评",)
    assert accept(reviews.engine, item, by="标注员甲").decided == ("差评",)
    assert list(verify(reviews.engine)) == []


def test_labels_are_changed_by_name_code_or_alias(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", describe("好评", code="P"), by="标注员甲")
    item = take(reviews).item.id
    assert change(reviews.engine, item, ["P"], by="标注员甲").decided == ("好评",)
    assert said(reviews, "早餐凉了") == [("标注员甲", ("好评",))]


def test_a_skip_says_nothing_of_the_label_and_gives_the_item_back(reviews: Workshop) -> None:
    done = skip(reviews.engine, take(reviews).item.id, by="标注员甲", note="看不懂")
    assert (done.decided, done.event, done.item.state, done.item.claimed_by) == (None, None, "open", None)
    assert said(reviews, "早餐凉了") == []


def test_a_lease_that_ran_out_in_mid_review_leaves_everything_as_it_was(reviews: Workshop) -> None:
    item = take(reviews, now=NOON).item.id
    events = reviews.count(label_events)
    for decision in (accept, skip):
        with pytest.raises(ItemTaken, match=f"lease of 标注员甲 ended at 2026-03-01T12:15:00.*review claim {item}"):
            decision(reviews.engine, item, by="标注员甲", now=LATER)
    assert (reviews.count(label_events), reviews.count(review_decisions)) == (events, 0)
    claim_item(reviews.engine, item, by="标注员甲", now=LATER)
    assert accept(reviews.engine, item, by="标注员甲", now=LATER).item.state == "done"


def test_what_another_has_or_nobody_claimed_is_not_decided(reviews: Workshop) -> None:
    item = take(reviews, now=NOON).item.id
    with pytest.raises(ItemTaken, match=f"review item {item} is with 标注员甲 until"):
        change(reviews.engine, item, ["好评"], by="标注员乙", now=NOON)
    release_item(reviews.engine, item, by="标注员甲", now=NOON)
    with pytest.raises(ItemTaken, match="you have to hold it; claim it again"):
        change(reviews.engine, item, ["好评"], by="标注员甲", now=NOON)
    assert (said(reviews, "早餐凉了"), reviews.count(review_decisions)) == ([], 0)


def test_wrong_labels_unknown_items_and_decisions_made_are_refused(reviews: Workshop) -> None:
    item = take(reviews).item.id
    for labels, error, message in (
        (["没有的"], UnknownLabel, "'没有的' is not in the taxonomy"),
        ([], BadInput, "the label is empty"),
        (["好评", "差评"], BadInput, "the task single allows one"),
    ):
        with pytest.raises(error, match=message):
            change(reviews.engine, item, labels, by="标注员甲")
    assert reviews.count(review_decisions) == 0
    accept(reviews.engine, item, by="标注员甲")
    with pytest.raises(UnknownReview, match=f"review item {item} is done since .*; wenlei review undo takes back"):
        accept(reviews.engine, item, by="标注员甲")
    for decision in (accept, skip, undo_decision):
        with pytest.raises(UnknownReview, match="there is no review item 99"):
            decision(reviews.engine, 99, by="标注员甲")


def test_where_nothing_is_proposed_and_no_label_there_is_nothing_to_accept(reviews: Workshop) -> None:
    reviews.load(reviews.write("b.csv", "text\n没标过的\n"), label=None)
    queue(reviews, wanted("没标过的", 1.0))
    item = take(reviews).item.id
    with pytest.raises(BadInput, match=f"nothing is proposed, and the sample has no label.*review change {item} LABEL"):
        accept(reviews.engine, item, by="标注员甲")


def test_what_is_proposed_is_accepted_in_the_terms_of_today(reviews: Workshop) -> None:
    item = take(reviews).item.id
    change_taxonomy(reviews.engine, "default", rename("差评", "不满意"), by="标注员甲")
    assert accept(reviews.engine, item, by="标注员甲").decided == ("不满意",)


def test_a_decision_is_taken_back_and_the_item_is_open_again(reviews: Workshop) -> None:
    item = take(reviews).item.id
    accept(reviews.engine, item, by="标注员甲")
    undone = undo_decision(reviews.engine, item, by="标注员甲")
    assert (undone.action, undone.item.state, labels_of(reviews, "早餐凉了")) == ("undo", "open", ("好评",))
    assert taken(reviews, "标注员甲") == "早餐凉了"
    assert change(reviews.engine, item, ["好评"], by="标注员甲").item.state == "done"
    assert said(reviews, "早餐凉了") == [("标注员甲", ("差评",)), ("标注员甲", ()), ("标注员甲", ("好评",))]
    with pytest.raises(BadInput, match=f"标注员乙 has done nothing with review item {item}"):
        undo_decision(reviews.engine, item, by="标注员乙")


def test_a_skip_is_taken_back_and_the_item_comes_again(reviews: Workshop) -> None:
    item = take(reviews).item.id
    skip(reviews.engine, item, by="标注员甲")
    undo_decision(reviews.engine, item, by="标注员甲")
    assert take(reviews).item.id == item
    with pytest.raises(BadInput, match="has done nothing"):
        undo_decision(reviews.engine, item, by="标注员甲")


def test_a_decision_whose_event_is_undone_already_is_taken_back_without_another(reviews: Workshop) -> None:
    item = take(reviews).item.id
    event = accept(reviews.engine, item, by="标注员甲").event
    assert event is not None
    undo_event(reviews.engine, event, by="标注员甲")
    assert undo_decision(reviews.engine, item, by="标注员甲").event is None
    assert taken(reviews, "标注员甲") == "早餐凉了"


def test_taking_back_opens_no_second_item_of_a_sample(reviews: Workshop) -> None:
    item = take(reviews).item.id
    accept(reviews.engine, item, by="标注员甲")
    queue(reviews, wanted("早餐凉了", 1.0))
    assert undo_decision(reviews.engine, item, by="标注员甲").item.state == "done"
    assert take(reviews).item.id != item


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


def test_what_was_proposed_and_is_gone_is_not_accepted_as_the_label_there_is(reviews: Workshop) -> None:
    item = take(reviews).item.id  # 差评 is proposed, it is 好评 now
    change_taxonomy(reviews.engine, "default", remove("差评"), by="标注员甲")
    with pytest.raises(BadInput, match=f"what was proposed is gone from the taxonomy; .* change {item} LABEL"):
        accept(reviews.engine, item, by="标注员甲")
    assert said(reviews, "早餐凉了") == []
    assert change(reviews.engine, item, ["好评"], by="标注员甲").decided == ("好评",)


def test_a_branch_that_asks_for_two_asks_for_all_below_it(workshop: Workshop) -> None:
    rows = "text,label\n渗水了,水电/漏水\n灯不亮,水电/断电\n门锁坏了,门窗/门\n"
    workshop.load(workshop.write("a.csv", rows), task=Task.HIERARCHICAL, level_sep="/")
    change_taxonomy(workshop.engine, "default", describe("水电", reviewers=2), by="标注员甲")
    queue(workshop, wanted("渗水了", 0.9), wanted("门锁坏了", 0.5))
    water, door = take(workshop).item.id, take(workshop, "标注员乙").item.id
    release_item(workshop.engine, door, by="标注员乙")
    assert (decide(workshop, water, "标注员甲").waits, decide(workshop, door, "标注员甲").waits) == (True, False)


def test_several_labels_are_decided_together(workshop: Workshop) -> None:
    rows = "text,label\n房间大早餐凉,房间;早餐\n"
    workshop.load(workshop.write("a.csv", rows), task=Task.MULTI, label_sep=";")
    queue(workshop, wanted("房间大早餐凉", 0.9, "早餐"))
    done = change(workshop.engine, take(workshop).item.id, ["早餐", "房间", "早餐"], by="标注员甲")
    assert (done.decided, labels_of(workshop, "房间大早餐凉")) == (("房间", "早餐"), ("房间", "早餐"))


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


def test_decisions_can_not_be_changed_or_deleted(reviews: Workshop) -> None:
    accept(reviews.engine, take(reviews).item.id, by="标注员甲")
    for statement in (sa.update(review_decisions).values(person="别人"), sa.delete(review_decisions)):
        with pytest.raises(DBAPIError, match="append-only"), reviews.engine.begin() as connection:
            connection.execute(statement)


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


def test_an_item_whose_proposed_and_current_classes_are_gone_takes_a_new_label(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", remove("差评"), by="标注员甲")
    change_taxonomy(reviews.engine, "default", rename("好评", "满意"), by="标注员甲")
    item = take(reviews)
    assert (item.labels, item.proposed) == (("满意",), None)
    label_sample(reviews.engine, library="default", sample="前台热情", is_text=True, labels=["满意"], by="标注员乙")
    assert change(reviews.engine, item.item.id, ["满意"], by="标注员甲").item.state == "done"
