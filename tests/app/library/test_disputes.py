"""Histories, blame and disputes: everything that was said is shown, and what disagrees is found."""

import pytest
from workshop import Workshop

from app.library.disputes import DisputePage, list_disputes
from app.library.history import history
from app.library.labelling import label_sample, undo_event
from app.library.snapshots import Conflicts
from model.errors import BadInput, UnknownLibrary

ROWS = "text,label\n房间大,好评\n早餐凉,中评\n早餐凉,差评\n隔音差,差评\n位置偏,中评\n位置偏,好评\n"


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    return workshop


def say(workshop: Workshop, text: str, label: str, by: str) -> int:
    return label_sample(workshop.engine, library="default", sample=text, is_text=True, labels=[label], by=by).event


def disputes(workshop: Workshop, limit: int = 20, offset: int = 0) -> DisputePage:
    return list_disputes(workshop.engine, library="default", limit=limit, offset=offset)


def disputed(workshop: Workshop) -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Per text its label for the time being, and who says what."""
    return {
        dispute.sample.text: (
            dispute.current.labels[0],
            [(said.source or said.event.actor, said.event.labels[0]) for said in dispute.candidates],
        )
        for dispute in disputes(workshop).disputes
    }


def test_imports_that_disagree_are_listed_until_a_person_decides(reviews: Workshop) -> None:
    assert disputed(reviews) == {
        "早餐凉": ("中评", [("a.csv", "中评"), ("a.csv", "差评")]),
        "位置偏": ("中评", [("a.csv", "中评"), ("a.csv", "好评")]),
    }
    say(reviews, "早餐凉", "差评", by="标注员甲")
    assert set(disputed(reviews)) == {"位置偏"}
    assert reviews.freeze().conflicts == 1


def test_persons_who_disagree_are_listed_with_their_newest_words(reviews: Workshop) -> None:
    for by, label in (("标注员甲", "中评"), ("标注员乙", "好评"), ("标注员甲", "差评")):
        word = say(reviews, "房间大", label, by=by)
    assert disputed(reviews)["房间大"] == ("差评", [("标注员乙", "好评"), ("标注员甲", "差评")])
    assert len(reviews.samples(conflicts=Conflicts.DROP)) == 1
    undo_event(reviews.engine, word, by="标注员甲")
    assert disputed(reviews)["房间大"] == ("好评", [("标注员甲", "中评"), ("标注员乙", "好评")])
    say(reviews, "房间大", "好评", by="标注员甲")
    assert "房间大" not in disputed(reviews)


def test_an_import_that_was_undone_disputes_nothing(reviews: Workshop) -> None:
    events = history(reviews.engine, library="default", sample="位置偏", is_text=True).sample.events
    undo_event(reviews.engine, events[0].id, by="标注员甲")
    assert set(disputed(reviews)) == {"早餐凉"}
    assert reviews.samples()["位置偏"].labels == ("好评",)


def test_pages_of_disputes_make_up_all_of_them(workshop: Workshop) -> None:
    rows = "".join(f"第{row}天,{label}\n" for row in range(7) for label in ("好评", "差评")) + "平常,好评\n"
    workshop.load(workshop.write("a.csv", "text,label\n" + rows))
    pages = [disputes(workshop, limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [(page.total, len(page.disputes)) for page in pages] == [(7, 3), (7, 3), (7, 1), (7, 0)]
    ids = [dispute.sample.id for page in pages for dispute in page.disputes]
    assert ids == sorted(set(ids))


def test_disputes_of_one_library_are_not_those_of_another(reviews: Workshop) -> None:
    reviews.load(reviews.write("b.csv", "text,label\n早餐凉,中评\n"), library="other")
    assert list_disputes(reviews.engine, library="other", limit=5) == DisputePage(0, ())
    with pytest.raises(UnknownLibrary):
        list_disputes(reviews.engine, library="none", limit=5)


def test_a_history_tells_everything_and_blame_the_event_that_counts(reviews: Workshop) -> None:
    word = say(reviews, "早餐凉", "差评", by="标注员甲")
    undo = undo_event(reviews.engine, word, by="标注员乙").event
    found = history(reviews.engine, library="default", sample="早餐凉", is_text=True)
    told = [(said.event.actor_kind, said.event.actor, said.source, said.line) for said in found.sample.recorded]
    importer = ("import", "wenlei library import", "a.csv")
    assert told == [
        (*importer, 3),
        (*importer, 4),
        ("person", "标注员甲", None, None),
        ("person", "标注员乙", None, None),
    ]
    assert all(said.event.at > "2026" for said in found.sample.recorded)
    assert found.undone_by == {word: undo}
    assert found.blame() == found.sample.recorded[0]


def test_a_sample_without_a_label_blames_nobody(reviews: Workshop) -> None:
    reviews.load(reviews.write("b.csv", "text\n电梯慢\n"), label=None)
    found = history(reviews.engine, library="default", sample="电梯慢", is_text=True)
    assert (found.sample.recorded, found.current) == ((), None)
    with pytest.raises(BadInput, match="has no label: nobody gave it one"):
        found.blame()
