"""Browsing: what is listed and found is what a look at every sample would give, page by page and step by step."""

import json
import re
from collections.abc import Callable
from itertools import count, product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from workshop import Workshop

from app.library import importing
from app.library.browsing import REACH, SORTS, browse, search_text
from app.library.cataloguing import catalogue_import
from app.library.labelling import label_sample, undo_event
from app.store import listing, search
from app.store.listing import ListedSample
from model.errors import BadInput, UnknownLabel, UnknownLibrary, UnknownSample
from model.text import Normaliser
from model.types import Task

ALPHABET = "房间的很大AabB1%_'\"\\，。 😀é\ue025"
TEXTS = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=12).map(Normaliser()).filter(bool)
LABELS = st.sampled_from(["", "好评", "差评", "好评|差评", "中评"])
ROWS = st.lists(st.tuples(TEXTS, st.sampled_from(["", "", "一对"]) | TEXTS, LABELS), min_size=1, max_size=40)
QUERIES = st.lists(st.text(st.sampled_from(ALPHABET + "Z慢"), min_size=1, max_size=4), min_size=1, max_size=4)


def walked(per_page: int, **asked: Any) -> list[ListedSample]:
    """The samples one after the other, by `next`."""
    page = browse(**asked, per_page=per_page)
    found = list(page.samples)
    while page.next is not None:
        page = browse(**asked, per_page=per_page, after=page.next)
        found += page.samples
    return found


def paged(per_page: int, **asked: Any) -> list[ListedSample]:
    """The samples page by page, until one is empty."""
    found: list[ListedSample] = []
    for number in count(1):
        page = browse(**asked, per_page=per_page, page=number)
        found += page.samples
        if not page.samples:
            break
    return found


def holds(sample: ListedSample, query: str) -> bool:
    lower = str.maketrans({letter: letter.lower() for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
    texts = filter(None, (sample.text, sample.pair))
    return any(query.translate(lower) in text.translate(lower) for text in texts)


def in_order(samples: list[ListedSample], sort: str) -> list[ListedSample]:
    keys: dict[str, Callable[[ListedSample], Any]] = {
        "arrival": lambda sample: sample.number,
        "id": lambda sample: sample.id,
        "labels": lambda sample: (not sample.labels, labels_json(sample), sample.number),
    }
    return sorted(samples, key=keys[sort.removeprefix("-")], reverse=sort.startswith("-"))


def labels_json(sample: ListedSample) -> str:
    return json.dumps(sample.labels, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    """Six samples of one label each, one of them in conflict, and two without."""
    rows = [
        "房间很大,好评",
        "早餐一般,中评",
        "早餐一般,差评",
        "Wifi 慢,差评",
        "100%满意_好,好评",
        "隔音差,差评",
        "前台'好',好评",
    ]
    workshop.load(workshop.write("a.csv", "text,label\n" + "\n".join(rows) + "\n"))
    workshop.load(workshop.write("b.csv", "text\n位置偏\n早餐凉\n"), label=None)
    return workshop


def texts(workshop: Workshop, **asked: Any) -> list[str]:
    return [sample.text for sample in browse(workshop.engine, **{"library": "default"} | asked).samples]


def test_samples_are_listed_with_their_labels_and_where_they_came_from(reviews: Workshop) -> None:
    page = browse(reviews.engine, library="default", per_page=3)
    assert (page.total, page.total_is_exact, page.query) == (8, True, None)
    assert page.next == page.samples[-1].id
    shown = [sample._replace(number=0, id="") for sample in page.samples]
    assert shown == [
        ListedSample(0, "", "房间很大", None, ("好评",), False, "a.csv", 2),
        ListedSample(0, "", "早餐一般", None, ("中评",), True, "a.csv", 3),
        ListedSample(0, "", "Wifi 慢", None, ("差评",), False, "a.csv", 5),
    ]
    last = browse(reviews.engine, library="default", per_page=3, page=3)
    assert [(sample.text, sample.labels, sample.source) for sample in last.samples] == [
        ("位置偏", (), "b.csv"),
        ("早餐凉", (), "b.csv"),
    ]
    assert last.next is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("大", ["房间很大"]),
        ("早餐", ["早餐一般", "早餐凉"]),
        ("很大", ["房间很大"]),
        ("餐一般", ["早餐一般"]),
        ("wIFI", ["Wifi 慢"]),
        ("ＷＩＦＩ", ["Wifi 慢"]),
        ("％满", []),
        ("0%", ["100%满意_好"]),
        ("%", ["100%满意_好"]),
        ("_", ["100%满意_好"]),
        ("'", ["前台'好'"]),
        ("' OR 1", []),
        ("\\", []),
        ('"', []),
        ("😀", []),
        ("早凉", []),
        ("早餐一般 ", ["早餐一般"]),
        ("<b>", []),
    ],
)
def test_a_piece_of_a_text_finds_it_as_the_library_writes_it(reviews: Workshop, query: str, found: list[str]) -> None:
    for sort in ("arrival", "id", "labels"):
        assert sorted(texts(reviews, query=query, sort=sort)) == sorted(found)


def test_white_space_searches_for_nothing(reviews: Workshop) -> None:
    page = browse(reviews.engine, library="default", query=" \t")
    assert (page.query, page.total) == (None, 8)


def test_filters_go_with_each_other_and_with_a_search(reviews: Workshop) -> None:
    assert texts(reviews, label="差评") == ["Wifi 慢", "隔音差"]
    assert texts(reviews, unlabelled=True, sort="-arrival") == ["早餐凉", "位置偏"]
    assert texts(reviews, conflict=True) == ["早餐一般"]
    assert texts(reviews, conflict=True, label="差评") == []
    assert texts(reviews, query="早餐", label="中评", conflict=True) == ["早餐一般"]
    assert texts(reviews, query="早餐", unlabelled=True) == ["早餐凉"]


def test_what_persons_say_is_in_the_next_list(reviews: Workshop) -> None:
    said = label_sample(
        reviews.engine, library="default", sample="位置偏", is_text=True, labels=["差评"], by="标注员甲"
    )
    assert texts(reviews, label="差评", query="偏") == ["位置偏"]
    assert texts(reviews, unlabelled=True) == ["早餐凉"]
    undo_event(reviews.engine, said.event, by="标注员甲")
    assert texts(reviews, unlabelled=True) == ["位置偏", "早餐凉"]


def test_a_branch_of_levels_means_all_below_it(workshop: Workshop) -> None:
    rows = "公司裁员,组织-裁员\n公司解散,组织-解散\n组织者,组织\n涨价,产品-涨价\n"
    workshop.load(workshop.write("a.csv", "text,label\n" + rows), task=Task.HIERARCHICAL, level_sep="-")
    assert texts(workshop, label="组织") == ["公司裁员", "公司解散", "组织者"]
    assert texts(workshop, label="组织-裁员") == ["公司裁员"]
    with pytest.raises(UnknownLabel, match="label '裁员' is not in the taxonomy of library 'default'"):
        texts(workshop, label="裁员")


@pytest.mark.parametrize("stretch", [1, None], ids=["by the index", "by a look through"])
def test_every_list_is_what_a_look_at_every_sample_gives(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, stretch: int | None
) -> None:
    """Each example is a library of its own, and none sees what is in another."""
    if stretch is not None:
        monkeypatch.setattr(search, "_STRETCH", dict.fromkeys(search._STRETCH, stretch))
        monkeypatch.setattr(search, "LOOKED_AT_ONCE", 2)
        monkeypatch.setattr(listing, "FEW", 0)
    numbers = count()

    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(rows=ROWS, queries=QUERIES, pick=st.randoms(use_true_random=False))
    def check(rows: list[tuple[str, str, str]], queries: list[str], pick: Random) -> None:
        library = f"library-{next(numbers)}"
        fill(workshop, library, rows)
        asked = {"engine": workshop.engine, "library": library}
        all_samples = list(browse(**asked, per_page=500).samples)
        assert [sample.number for sample in all_samples] == sorted(sample.number for sample in all_samples)
        assert {(sample.text, sample.pair) for sample in all_samples} == {
            (text, pair or None) for text, pair, _ in rows
        }
        cut = [piece_of(pick, text) for text, _, _ in rows[:4]]
        for query in ["", *queries, *cut]:
            sort, per_page = pick.choice(SORTS), pick.choice([1, 3, 7])
            label = pick.choice([None, None, "好评", "中评"])
            which = {
                "label": label if any(label in sample.labels for sample in all_samples) else None,
                "conflict": pick.random() < 0.2,
            }
            which["unlabelled"] = which["label"] is None and pick.random() < 0.2
            piece = search_text(query, Normaliser())
            expected = in_order(
                [sample for sample in all_samples if holds(sample, piece) and passes(sample, **which)], sort
            )
            options = asked | which | {"query": query, "sort": sort}
            assert paged(per_page, **options) == expected
            assert walked(per_page, **options) == expected
            first = browse(**options, per_page=per_page)
            assert first.total is not None
            assert first.total == len(expected) if first.total_is_exact else 0 < first.total <= len(expected)

    check()


def fill(workshop: Workshop, library: str, rows: list[tuple[str, str, str]]) -> None:
    """Rows with a pair and those without are imports of their own, and so are those with labels and those without."""
    for with_pair, with_label in product((False, True), (True, False)):
        chosen = [row for row in rows if (bool(row[1]), bool(row[2])) == (with_pair, with_label)]
        if chosen:
            lines = (json.dumps(dict(zip(("text", "pair", "label"), row, strict=True))) for row in chosen)
            path = workshop.write("rows.jsonl", "\n".join(lines) + "\n")
            given = {"label": "label" if with_label else None, "label_sep": "|" if with_label else None}
            workshop.load(path, library=library, pair="pair" if with_pair else None, task=Task.MULTI, **given)


def piece_of(pick: Random, text: str) -> str:
    start = pick.randrange(len(text))
    return text[start : start + pick.choice([1, 2, 3, 5])].swapcase()


def passes(sample: ListedSample, *, label: str | None, unlabelled: bool, conflict: bool) -> bool:
    carried = label is None or label in sample.labels
    return carried and not (unlabelled and sample.labels) and not (conflict and not sample.conflict)


def test_a_search_counts_and_pages_to_its_thousandth_sample_and_walks_on(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_STRETCH", dict.fromkeys(search._STRETCH, 1))
    rows = [f"第{row}条，走廊" for row in range(100)] + [f"第{row}条，房间" for row in range(REACH + 200)]
    workshop.load(workshop.write("a.csv", "text\n" + "\n".join(rows) + "\n"), label=None)
    asked = {"engine": workshop.engine, "library": "default", "query": "房间"}
    first = browse(**asked)
    assert (first.total, first.total_is_exact) == (REACH + 1, False)
    assert [sample.text for sample in browse(**asked, page=50).samples] == rows[1080:1100]
    with pytest.raises(BadInput, match="a search has pages up to its sample 1,000; walk on with after"):
        browse(**asked, page=51)
    assert [sample.text for sample in walked(500, **asked)] == rows[100:]
    some = browse(**asked | {"query": "9条，房间"})
    assert (some.total, some.total_is_exact) == (sum("9条，房间" in row for row in rows), True)


def test_an_import_that_fails_leaves_nothing_to_be_found(reviews: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    path = reviews.write("c.csv", "text,label\n走廊太暗,差评\n")

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            importing, "catalogue_import", lambda *given, **named: (catalogue_import(*given, **named), killed())
        )
        with pytest.raises(KeyboardInterrupt):
            reviews.load(path)
    assert texts(reviews, query="走廊") == []
    assert browse(reviews.engine, library="default").total == 8
    reviews.load(path)
    assert texts(reviews, query="走廊") == ["走廊太暗"]
    assert texts(reviews, query="暗") == ["走廊太暗"]


@pytest.mark.parametrize(
    ("asked", "error", "message"),
    [
        ({"library": "other"}, UnknownLibrary, "there is no library 'other'"),
        ({"label": "好平"}, UnknownLabel, "label '好平' is not in the taxonomy of library 'default'"),
        ({"after": "0" * 32}, UnknownSample, "library 'default' has no sample of that id"),
        ({"sort": "date"}, BadInput, "sort 'date': give one of arrival, -arrival"),
        ({"sort": "--id"}, BadInput, "sort '--id'"),
        ({"page": 0}, BadInput, "page 0: pages are numbered from 1"),
        ({"per_page": 501}, BadInput, "per_page 501: give a number from 1 to 500"),
        ({"per_page": 0}, BadInput, "per_page 0"),
        ({"page": 2, "after": "0"}, BadInput, "page 2 and after '0' exclude each other"),
        ({"label": "好评", "unlabelled": True}, BadInput, "label '好评' and unlabelled exclude each other"),
        ({"query": "长" * 1001}, BadInput, "the query has 1,001 characters"),
        ({"query": "\ud800"}, BadInput, "half of a surrogate pair"),
    ],
)
def test_what_cannot_be_asked(reviews: Workshop, asked: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        browse(reviews.engine, **{"library": "default"} | asked)


def test_a_page_beyond_the_last_is_empty(reviews: Workshop) -> None:
    for query in ("", "早餐"):
        page = browse(reviews.engine, library="default", query=query, page=9)
        assert (page.samples, page.next, page.total_is_exact) == ((), None, True)
