"""A person may say that a text belongs to none of the classes: it has no label then, and is not in the pool either."""

import pytest
from workshop import Workshop

from app.library.agreement import measure_agreement
from app.library.browsing import browse
from app.library.disputes import list_disputes
from app.library.history import history
from app.library.labelling import Spoken, label_sample, undo_event
from app.library.labels import current_labels
from app.library.revisions import add, merge, remove, rename
from app.library.scoring import pool_samples
from app.library.sweeping import apply_sweep
from app.library.taxonomies import Undo, change_taxonomy, preview_change
from app.library.verifying import verify
from app.store.samples import LabelEvent
from app.store.sweeps import SweptLabels
from app.store.tables import label_events
from model.errors import BadInput
from model.text import sample_id
from tests.app.library.reviewing import labels_of, said


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    """Three labelled reviews, and two texts that nobody has labelled: an advertisement, and another review."""
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n还可以,中评\n"))
    workshop.load(workshop.write("b.csv", "text\n加微信领红包\n服务态度好\n"), label=None)
    return workshop


def none(workshop: Workshop, text: str, by: str = "标注员甲") -> Spoken:
    spoken = label_sample(workshop.engine, library="default", sample=text, is_text=True, none=True, by=by)
    assert list(verify(workshop.engine)) == []
    return spoken


def say(workshop: Workshop, text: str, *labels: str, by: str = "标注员甲") -> Spoken:
    spoken = label_sample(workshop.engine, library="default", sample=text, is_text=True, labels=labels, by=by)
    assert list(verify(workshop.engine)) == []
    return spoken


def pool(workshop: Workshop) -> set[str]:
    return {sample.text for sample in pool_samples(workshop.engine, "default")}


def unlabelled(workshop: Workshop) -> set[str]:
    return {listed.text for listed in browse(workshop.engine, library="default", unlabelled=True).samples}


def test_the_newest_word_decides_and_may_be_that_none_fits() -> None:
    words = [
        LabelEvent(1, ("好评",), "import", "wenlei library import", at="2026-01-01T00:00:00+00:00"),
        LabelEvent(2, ("差评",), "person", "标注员甲", at="2026-01-02T00:00:00+00:00"),
        LabelEvent(3, (), "person", "标注员乙", at="2026-01-03T00:00:00+00:00"),
    ]
    order = {"好评": 0, "差评": 1}
    assert current_labels(words, order) is None
    after = [*words, LabelEvent(4, ("差评",), "person", "标注员甲", at="2026-01-04T00:00:00+00:00")]
    assert current_labels(after, order) == (("差评",), True, 4)


def test_a_text_of_no_class_is_out_of_snapshots_and_of_the_pool(hotel: Workshop) -> None:
    assert (none(hotel, "房间大").current, none(hotel, "加微信领红包").current) == (None, None)
    assert set(hotel.samples()) == {"早餐凉", "还可以"}
    assert pool(hotel) == {"服务态度好"}
    assert unlabelled(hotel) == {"房间大", "加微信领红包", "服务态度好"}
    found = history(hotel.engine, library="default", sample="房间大", is_text=True)
    assert (found.current, said(hotel, "房间大")) == (None, [("标注员甲", ())])
    with pytest.raises(BadInput, match="has no label: nobody gave it one, all was undone, or no class fits"):
        found.blame()


def test_it_is_undone_and_brought_back_as_any_word(hotel: Workshop) -> None:
    word = none(hotel, "房间大").event
    undone = undo_event(hotel.engine, word, by="标注员乙")
    assert undone.current is not None
    assert undone.current.labels == ("好评",)
    again = undo_event(hotel.engine, undone.event, by="标注员乙")
    assert (again.current, set(hotel.samples())) == (None, {"早餐凉", "还可以"})
    free = none(hotel, "加微信领红包").event
    undo_event(hotel.engine, free, by="标注员甲")
    assert pool(hotel) == {"加微信领红包", "服务态度好"}
    assert list(verify(hotel.engine)) == []


def test_of_persons_who_differ_the_newest_word_decides_and_a_label_is_in_conflict(hotel: Workshop) -> None:
    say(hotel, "房间大", "好评", by="标注员甲")
    none(hotel, "房间大", by="标注员乙")
    assert (labels_of(hotel, "房间大"), list_disputes(hotel.engine, library="default", limit=9).total) == ((), 0)
    spoken = say(hotel, "房间大", "好评", by="标注员甲")
    assert spoken.current is not None
    assert (spoken.current.labels, spoken.current.conflict) == (("好评",), True)
    (dispute,) = list_disputes(hotel.engine, library="default", limit=9).disputes
    assert [(word.event.actor, word.said) for word in dispute.candidates] == [("标注员乙", ()), ("标注员甲", ("好评",))]
    none(hotel, "房间大", by="标注员甲")
    assert labels_of(hotel, "房间大") == ()


def test_no_machine_sweeps_over_it(hotel: Workshop) -> None:
    none(hotel, "加微信领红包")
    rows = [SweptLabels(sample_id(text), ("好评",), 0.99) for text in ("加微信领红包", "服务态度好")]
    swept = apply_sweep(
        hotel.engine,
        library="default",
        kind="gate",
        actor="linear@1a2b",
        rows=rows,
        judged={},
        asked={},
        outcome={},
        by="标注员乙",
        version=1,
    )
    assert swept.changed == 1
    assert (labels_of(hotel, "加微信领红包"), labels_of(hotel, "服务态度好")) == ((), ("好评",))


def test_changes_of_the_taxonomy_leave_it_as_it_is(hotel: Workshop) -> None:
    none(hotel, "房间大")
    touched = preview_change(hotel.engine, "default", remove("好评"))
    assert (touched.samples, touched.unlabelled, touched.outcomes) == (1, 0, ())
    for change in (
        rename("差评", "不满意"),
        merge(["中评", "不满意"], into="其他"),
        remove("好评"),
        add("好评"),
        Undo(),
        Undo(),
    ):
        change_taxonomy(hotel.engine, "default", change, by="标注员甲")
        assert list(verify(hotel.engine)) == []
        assert labels_of(hotel, "房间大") == ()
    assert (labels_of(hotel, "早餐凉"), pool(hotel)) == (("其他",), {"加微信领红包", "服务态度好"})


def test_those_who_say_that_none_fits_agree_and_those_whose_class_is_gone_say_nothing(hotel: Workshop) -> None:
    hotel.load(hotel.write("c.csv", "text,label\n隔音差,广告\n"))
    for by in ("标注员甲", "标注员乙"):
        none(hotel, "加微信领红包", by=by)
        say(hotel, "早餐凉", "差评", by=by)
        say(hotel, "隔音差", "广告", by=by)
    none(hotel, "房间大", by="标注员甲")
    say(hotel, "房间大", "好评", by="标注员乙")
    change_taxonomy(hotel.engine, "default", remove("广告"), by="标注员甲")
    found = measure_agreement(hotel.engine, library="default")
    assert (found.samples, found.observed) == (3, pytest.approx(2 / 3))
    # six words: none 3, 差评 2, 好评 1; one pair of three differs
    assert found.alpha == pytest.approx(1 - 5 * 2 / (36 - 9 - 4 - 1))
    assert found.pairs[0].kappa == pytest.approx((2 / 3 - 3 / 9) / (1 - 3 / 9))


def test_an_empty_list_by_mistake_and_labels_beside_it_are_refused(hotel: Workshop) -> None:
    before = hotel.count(label_events)
    with pytest.raises(BadInput, match="the label is empty"):
        say(hotel, "房间大")
    with pytest.raises(BadInput, match="labels 好评 are given, and that there are none; give either"):
        label_sample(
            hotel.engine, library="default", sample="房间大", is_text=True, labels=["好评"], none=True, by="标注员甲"
        )
    assert hotel.count(label_events) == before
