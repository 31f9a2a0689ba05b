"""Near duplicates of a library, on real databases: who belongs together, what conflicts, page by page."""

from typing import Any

import pytest
from workshop import Workshop

from app.library.duplicates import Duplicates, Member, find_duplicates, samples_to_read
from app.library.labelling import label_sample
from app.store import texts as store_texts
from model.errors import UnknownLibrary
from model.near import NearSettings

CLEAN = "房间打扫得很干净床也很舒服"
QUEUE = "前台办理入住排了半个小时的队"
ROWS = (
    f"{CLEAN},好评\n{CLEAN}啊,好评\n{CLEAN}呢,差评\n{CLEAN}！,好评\n"
    f"{QUEUE},差评\n{QUEUE}啊,差评\n"
    "好吃,好评\n不好吃,差评\n早餐的品种实在是太少了一点,差评\n"
)


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", "text,label\n" + ROWS))
    return workshop


def duplicates(workshop: Workshop, library: str = "default", threshold: float = 0.8, **given: Any) -> Duplicates:
    options = {"limit": 20, "members": 20} | given
    return find_duplicates(workshop.engine, library=library, settings=NearSettings(threshold=threshold), **options)


def texts(members: tuple[Member, ...]) -> set[str]:
    return {member.sample.text for member in members}


def test_the_largest_group_comes_first_with_pairs_labels_and_conflicts(hotel: Workshop) -> None:
    found = duplicates(hotel)
    assert (found.samples, found.groups, found.grouped, found.conflicting) == (9, 2, 6, 1)
    clean, queue = found.page
    assert (clean.size, clean.conflict, texts(clean.members)) == (
        4,
        True,
        {CLEAN, CLEAN + "啊", CLEAN + "呢", CLEAN + "！"},
    )
    assert (queue.size, queue.conflict, texts(queue.members)) == (2, False, {QUEUE, QUEUE + "啊"})
    assert [(pair.similarity, pair.conflict) for pair in queue.pairs] == [(13 / 14, False)]
    label_of = {member.sample.id: member.labels for member in clean.members}
    for pair in clean.pairs:
        assert pair.conflict == (label_of[pair.left] != label_of[pair.right])
    assert [pair.conflict for pair in clean.pairs] == sorted((pair.conflict for pair in clean.pairs), reverse=True)
    assert sum(pair.similarity == 1.0 for pair in clean.pairs) == 1


def test_only_conflicting_groups(hotel: Workshop) -> None:
    found = duplicates(hotel, only_conflicting=True)
    assert [group.size for group in found.page] == [4]
    label_sample(hotel.engine, library="default", sample=CLEAN + "呢", is_text=True, labels=["好评"], by="标注员甲")
    settled = duplicates(hotel, only_conflicting=True)
    assert (settled.page, settled.conflicting, settled.groups) == ((), 0, 2)


def test_a_sample_without_a_label_belongs_to_its_group_and_conflicts_with_nobody(hotel: Workshop) -> None:
    hotel.load(hotel.write("b.csv", f"text\n{QUEUE}吧\n客房服务的电话一直都没有人接\n"), label=None)
    found = duplicates(hotel)
    queue = found.page[1]
    assert (found.samples, found.conflicting, queue.size, queue.conflict) == (11, 1, 3, False)
    assert {member.sample.text: member.labels for member in queue.members} == {
        QUEUE: ("差评",),
        QUEUE + "啊": ("差评",),
        QUEUE + "吧": None,
    }
    assert not any(pair.conflict for pair in queue.pairs)


def test_pages_make_up_all_groups(workshop: Workshop) -> None:
    rows = "".join(
        f"{number}号楼的电梯在早高峰总是要等很久{tail},差评\n"
        for number in ("一二三", "四五六七", "八九十百千")
        for tail in ("", "呢", "吧")
    )
    workshop.load(workshop.write("a.csv", "text,label\n" + rows))
    pages = [duplicates(workshop, threshold=0.9, limit=1, offset=offset) for offset in range(4)]
    assert [[group.size for group in page.page] for page in pages] == [[3], [3], [3], []]
    assert {page.groups for page in pages} == {3}
    assert len({member.sample.id for page in pages for group in page.page for member in group.members}) == 9


def test_of_a_large_group_those_in_conflict_are_shown_first(workshop: Workshop) -> None:
    rows = "".join(f"您的快递单号{number}已经送到小区门口的快递柜请尽快来取,物流\n" for number in range(40))
    workshop.load(
        workshop.write("a.csv", "text,label\n" + rows + "您的快递单号99已经送到小区门口的快递柜请尽快来取,广告\n")
    )
    [group] = duplicates(workshop, members=3).page
    assert (group.size, group.conflict, len(group.members)) == (41, True, 3)
    assert {member.labels for member in group.members[:2]} == {("物流",), ("广告",)}
    assert group.pairs[0].conflict
    assert {pair.left for pair in group.pairs} | {pair.right for pair in group.pairs} <= {
        member.sample.id for member in group.members
    }


def test_pairs_of_texts_are_shown_with_both(workshop: Workshop) -> None:
    asked, told = "请问这款手机支持无线快速充电功能吗", "支持的亲最高可以到五十瓦的无线快充哦"
    rows = f"q,a,label\n{asked},{told},相关\n{asked}呀,{told},无关\n{asked},不清楚,无关\n"
    workshop.load(workshop.write("a.csv", rows), text="q", pair="a")
    [group] = duplicates(workshop).page
    assert {(member.sample.text, member.sample.pair) for member in group.members} == {
        (asked, told),
        (asked + "呀", told),
    }
    assert group.conflict


def test_texts_are_looked_up_some_at_a_time(hotel: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = duplicates(hotel)
    monkeypatch.setattr(store_texts, "ROWS_AT_ONCE", 4)  # of six
    assert duplicates(hotel) == expected


def test_what_is_read_is_told_and_other_libraries_are_left_alone(hotel: Workshop) -> None:
    hotel.load(hotel.write("b.csv", f"text,label\n{CLEAN},好评\n{QUEUE},差评\n"), library="other")
    hotel.load(hotel.write("c.csv", "text\n客房服务的电话一直都没有人接\n"), library="other", label=None)
    heard: list[int] = []
    assert duplicates(hotel, library="other", on_samples=heard.append) == Duplicates(3, 0, 0, 0, ())
    assert sum(heard) == samples_to_read(hotel.engine, "other") == 6
    with pytest.raises(UnknownLibrary):
        duplicates(hotel, library="none")
    with pytest.raises(UnknownLibrary):
        samples_to_read(hotel.engine, "none")
