"""What persons say is kept, whoever says it and when; what can't be said is refused and leaves nothing behind."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from threading import Barrier
from time import sleep
from typing import Any

import pytest
from workshop import Workshop

from app.library import labelling
from app.library.history import History, history
from app.library.labelling import MAX_NAME_CHARS, Spoken, label_sample, undo_event
from app.store.tables import label_events
from model.errors import BadInput, BadText, UnknownEvent, UnknownLabel, UnknownLibrary, UnknownSample

ROWS = "text,label\n房间大,好评\n早餐凉,中评\n隔音差,差评\n"


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    return workshop


def say(workshop: Workshop, text: str, *labels: str, by: str = "标注员甲", **given: Any) -> Spoken:
    given = {"library": "default", "sample": text, "is_text": True} | given
    return label_sample(workshop.engine, labels=labels, by=by, **given)


def undo(workshop: Workshop, event: int, by: str = "标注员甲") -> Spoken:
    return undo_event(workshop.engine, event, by=by)


def known(workshop: Workshop, text: str) -> History:
    return history(workshop.engine, library="default", sample=text, is_text=True)


def label_of(workshop: Workshop, text: str) -> tuple[str, ...] | None:
    current = known(workshop, text).current
    return current.labels if current else None


def test_a_persons_word_is_recorded_and_wins_over_imports_before_and_after(reviews: Workshop) -> None:
    spoken = say(reviews, "早餐凉", "差评", confidence=0.8, note=" 看过\n原文 ")
    reviews.load(reviews.write("b.csv", "text,label\n早餐凉,好评\n"))
    found = known(reviews, "早餐凉")
    said = next(recorded for recorded in found.sample.recorded if recorded.event.id == spoken.event)
    assert (said.event.labels, said.event.actor_kind, said.event.actor) == (("差评",), "person", "标注员甲")
    assert (said.confidence, said.note, said.source, said.line) == (0.8, "看过 原文", None, None)
    assert len(found.sample.recorded) == 3
    assert reviews.samples()["早餐凉"].labels == ("差评",)


def test_a_sample_is_found_by_its_id_the_beginning_of_it_and_its_text_as_people_write_it(reviews: Workshop) -> None:
    sample = say(reviews, " 房间\u200b大 ", "好评").sample
    assert len(sample) == 32
    for name in (sample, sample.upper(), sample[:12]):
        assert say(reviews, name, "好评", is_text=False).sample == sample


def test_an_id_that_is_unknown_or_not_unique_is_refused(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n" + "".join(f"第{row}天,好评\n" for row in range(20))))
    starts = sorted(sample.id for sample in workshop.samples().values())
    shared = next(one[0] for one, other in pairwise(starts) if one[0] == other[0])
    with pytest.raises(UnknownSample, match=f"all begin with '{shared}'; give more digits"):
        say(workshop, shared, "好评", is_text=False)
    for name in ("0" * 31, "f" * 33, "", "第1天", "x%"):
        with pytest.raises(UnknownSample, match="add --text"):
            say(workshop, name, "好评", is_text=False)
    with pytest.raises(UnknownSample, match="no sample with the text '第99天'"):
        say(workshop, "第99天", "好评")
    with pytest.raises(BadText, match="--text: the text is empty"):
        say(workshop, " ", "好评")
    with pytest.raises(UnknownLibrary):
        say(workshop, "第1天", "好评", library="other")


@pytest.mark.parametrize(
    ("labels", "given", "error", "message"),
    [
        (("好平",), {}, UnknownLabel, r"label '好平' is not in the taxonomy \(中评, 好评, 差评\); .*taxonomy add"),
        (("好评", "差评"), {}, BadInput, "2 labels .*the task single allows one"),
        (("", " "), {}, BadInput, "the label is empty"),
        (("好评",), {"by": "\u200b "}, BadInput, "--by is empty"),
        (("好评",), {"by": "王" * (MAX_NAME_CHARS + 1)}, BadInput, "--by has 65 characters"),
        (("好评",), {"by": "\udcff"}, BadInput, "--by holds bytes"),
        (("好评",), {"note": "长" * 1001}, BadInput, "--note has 1001 characters"),
        (("好评",), {"confidence": 1.5}, BadInput, "--confidence 1.5: give a number from 0 to 1"),
        (("好评",), {"confidence": float("nan")}, BadInput, "--confidence nan"),
    ],
)
def test_what_can_not_be_said_is_refused_and_leaves_nothing(
    reviews: Workshop, labels: tuple[str, ...], given: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = reviews.count(label_events)
    with pytest.raises(error, match=message):
        say(reviews, "房间大", *labels, **given)
    assert reviews.count(label_events) == before


def test_hierarchical_labels_are_whole_paths_and_several_where_the_library_has_several(workshop: Workshop) -> None:
    rows = "text,label\n公司裁员三成,组织-裁员|财经-股价\n球队夺冠,竞赛-夺冠\n"
    workshop.load(workshop.write("a.csv", rows), level_sep="-", label_sep="|")
    with pytest.raises(UnknownLabel, match=r"label '夺冠' .*give the whole path: 竞赛-夺冠"):
        say(workshop, "球队夺冠", "夺冠")
    say(workshop, "球队夺冠", "财经-股价", " 竞赛-夺冠", "财经-股价")
    assert label_of(workshop, "球队夺冠") == ("竞赛-夺冠", "财经-股价")
    assert workshop.samples()["球队夺冠"].labels == ("竞赛-夺冠", "财经-股价")


def test_what_a_person_and_an_import_say_alike_is_no_conflict(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n便宜又近,价格;位置\n贵,价格\n"), label_sep=";")
    say(workshop, "便宜又近", "位置", "价格", by="标注员甲")
    assert say(workshop, "便宜又近", "价格", "位置", by="标注员乙").current == (("价格", "位置"), False, 4)


def test_a_text_without_a_label_can_be_given_one_and_no_label_can_be_where_none_is_declared(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text\n房间大\n"), label=None)
    with pytest.raises(UnknownLabel, match="has no labels yet: add them with wenlei taxonomy add"):
        say(workshop, "房间大", "好评")
    workshop.load(workshop.write("a.csv", "text\n房间大\n"), label=None, names=("好评", "差评"))
    say(workshop, "房间大", "好评")
    assert workshop.samples()["房间大"].labels == ("好评",)


def test_undo_takes_back_and_undo_of_an_undo_brings_back(reviews: Workshop) -> None:
    word = say(reviews, "早餐凉", "差评").event
    first = undo(reviews, word)
    assert (label_of(reviews, "早餐凉"), first.current and first.current.event) == (("中评",), 2)
    second = undo(reviews, first.event, by="标注员乙")
    assert label_of(reviews, "早餐凉") == ("差评",)
    undo(reviews, second.event)
    assert label_of(reviews, "早餐凉") == ("中评",)
    found = known(reviews, "早餐凉")
    assert [recorded.event.undoes for recorded in found.sample.recorded] == [
        None,
        None,
        word,
        first.event,
        second.event,
    ]


def test_an_event_is_undone_once_and_only_if_it_is_there(reviews: Workshop) -> None:
    word = say(reviews, "早餐凉", "差评").event
    done = undo(reviews, word).event
    before = reviews.count(label_events)
    with pytest.raises(BadInput, match=f"event {word} is undone already, by event {done}; undo event {done}"):
        undo(reviews, word)
    with pytest.raises(UnknownEvent, match="no event 999"):
        undo(reviews, 999)
    with pytest.raises(BadInput, match="--by is empty"):
        undo(reviews, done, by="")
    assert reviews.count(label_events) == before


def test_an_undone_import_stays_undone_when_its_file_is_imported_again(reviews: Workshop) -> None:
    undo(reviews, 1)
    reviews.load(reviews.home / "a.csv")
    assert len(reviews.samples()) == 2
    assert sum(label_of(reviews, text) is None for text in ("房间大", "早餐凉", "隔音差")) == 1


def test_one_name_is_one_person_however_it_is_spaced(reviews: Workshop) -> None:
    say(reviews, "房间大", "差评", by=" 王 芳")
    spoken = say(reviews, "房间大", "好评", by="王\u3000芳\u200b")
    assert spoken.current is not None
    assert not spoken.current.conflict


def at_once(actions: list[Callable[[], Spoken]]) -> list[Spoken | Exception]:
    """What the actions, each in a thread and on a connection of its own, come to."""
    start = Barrier(len(actions), timeout=10)

    def run(action: Callable[[], Spoken]) -> Spoken | Exception:
        start.wait()
        try:
            return action()
        except BadInput as error:
            return error

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


def test_persons_who_label_one_sample_at_once_are_both_heard(reviews: Workshop) -> None:
    persons = {"标注员甲": "好评", "标注员乙": "差评", "标注员丙": "中评", "林涛": "差评"}
    spoken = at_once([lambda by=by, word=word: say(reviews, "房间大", word, by=by) for by, word in persons.items()])
    assert all(isinstance(said, Spoken) for said in spoken)
    found = known(reviews, "房间大")
    assert {recorded.event.actor: recorded.event.labels[0] for recorded in found.sample.recorded[1:]} == persons
    assert found.current is not None
    assert found.current.conflict
    assert found.current.event == found.sample.recorded[-1].event.id


def test_of_two_who_undo_one_event_at_once_one_is_told_that_it_is_done(reviews: Workshop) -> None:
    word = say(reviews, "房间大", "差评").event
    outcomes = at_once([lambda by=by: undo(reviews, word, by=by) for by in ("标注员甲", "标注员乙")])
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["BadInput", "Spoken"]
    assert reviews.count(label_events) == 5
    assert label_of(reviews, "房间大") == ("好评",)


def test_who_labels_waits_for_who_labels_the_same_sample(reviews: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    inside, record = Barrier(2, timeout=10), labelling.record_word

    def slowly(*arguments: Any, person: str, **given: Any) -> int:
        if person == "标注员甲":
            inside.wait()  # has the sample
            sleep(0.2)  # time for the other to pass by, if nothing holds it
        event = record(*arguments, person=person, **given)
        order.append(person)
        return event

    monkeypatch.setattr(labelling, "record_word", slowly)

    def second() -> Spoken:
        inside.wait()
        return say(reviews, "房间大", "中评", by="标注员乙")

    with ThreadPoolExecutor(2) as pool:
        outcomes = [pool.submit(say, reviews, "房间大", "差评"), pool.submit(second)]
        events = [outcome.result().event for outcome in outcomes]
    assert order == ["标注员甲", "标注员乙"]
    assert events == sorted(events)
