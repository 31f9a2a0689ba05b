"""A decision is on record with its person and becomes a label event at once."""

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from workshop import Workshop

from app.library.labelling import label_sample, undo_event
from app.library.review.claiming import claim_item, release_item
from app.library.review.deciding import accept, change, skip, undo_decision
from app.library.revisions import describe, remove, rename
from app.library.sweeping import apply_sweep
from app.library.taxonomies import change_taxonomy
from app.library.verifying import verify
from app.store.sweeps import SweptLabels
from app.store.tables import label_events, review_decisions
from model.errors import BadInput, ItemTaken, UnknownLabel, UnknownReview
from model.types import Task
from tests.app.library.reviewing import LATER, NOON, labels_of, queue, said, take, taken, two_waiting, wanted


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    return two_waiting(workshop)


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


def test_what_was_proposed_and_is_gone_is_not_accepted_as_the_label_there_is(reviews: Workshop) -> None:
    item = take(reviews).item.id  # 差评 is proposed, it is 好评 now
    change_taxonomy(reviews.engine, "default", remove("差评"), by="标注员甲")
    with pytest.raises(BadInput, match=f"what was proposed is gone from the taxonomy; .* change {item} LABEL"):
        accept(reviews.engine, item, by="标注员甲")
    assert said(reviews, "早餐凉了") == []
    assert change(reviews.engine, item, ["好评"], by="标注员甲").decided == ("好评",)


def test_several_labels_are_decided_together(workshop: Workshop) -> None:
    rows = "text,label\n房间大早餐凉,房间;早餐\n"
    workshop.load(workshop.write("a.csv", rows), task=Task.MULTI, label_sep=";")
    queue(workshop, wanted("房间大早餐凉", 0.9, "早餐"))
    done = change(workshop.engine, take(workshop).item.id, ["早餐", "房间", "早餐"], by="标注员甲")
    assert (done.decided, labels_of(workshop, "房间大早餐凉")) == (("房间", "早餐"), ("房间", "早餐"))


def test_decisions_can_not_be_changed_or_deleted(reviews: Workshop) -> None:
    accept(reviews.engine, take(reviews).item.id, by="标注员甲")
    for statement in (sa.update(review_decisions).values(person="别人"), sa.delete(review_decisions)):
        with pytest.raises(DBAPIError, match="append-only"), reviews.engine.begin() as connection:
            connection.execute(statement)


def test_an_item_whose_proposed_and_current_classes_are_gone_takes_a_new_label(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", remove("差评"), by="标注员甲")
    change_taxonomy(reviews.engine, "default", rename("好评", "满意"), by="标注员甲")
    item = take(reviews)
    assert (item.labels, item.proposed) == (("满意",), None)
    label_sample(reviews.engine, library="default", sample="前台热情", is_text=True, labels=["满意"], by="标注员乙")
    assert change(reviews.engine, item.item.id, ["满意"], by="标注员甲").item.state == "done"
