"""Snapshots of a library: the same content is the same snapshot, whatever the way it came in."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import openpyxl
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from workshop import Workshop

import model.snapshot
from app.library.labelling import label_sample
from app.library.snapshots import Conflicts, gaps
from app.library.sweeping import apply_sweep
from app.settings import Settings
from app.store.database import open_database
from app.store.sweeps import SweptLabels
from model.files import read_json
from model.text import sample_id

Rows = Sequence[tuple[str, str]]
ROWS: Rows = [(f"第{row}天，{word}，{'很' * (row % 3)}满意", label) for row in range(40) for word, label in
    (("房间大", "好评"), ("早餐凉，\n咖啡也凉", "差评"), ("位置\t一般", "中评"), ('说是"海景"', "差评"))]  # fmt: skip


def as_csv(rows: Rows, encoding: str) -> bytes:
    cells = [["text", "label"], *rows]
    return "".join(",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in cells).encode(
        encoding
    )


def as_json(rows: Rows) -> bytes:
    return "".join(
        json.dumps({"label": label, "text": text}, ensure_ascii=False) + "\n" for text, label in rows
    ).encode()


def as_workbook(rows: Rows, path: Path) -> Path:
    book = openpyxl.Workbook()
    for row in [("text", "label"), *rows]:
        book.active.append(row)
    book.save(path)
    return path


def test_formats_encodings_orders_and_databases_give_the_same_snapshot(
    tmp_path: Path, new_database: Callable[[str], str]
) -> None:
    backwards = ROWS[::-1]
    hashes = set()
    for kind in ("sqlite", "postgresql"):
        home = tmp_path / kind
        with open_database(Settings(home=home, database_url=new_database(kind))) as engine:
            workshop = Workshop(engine, home)
            files = [
                [workshop.write("rows.csv", as_csv(ROWS, "utf-8"))],
                [workshop.write("gbk.csv", as_csv(backwards, "gb18030"))],
                [workshop.write("utf16.csv", as_csv(ROWS, "utf-16"))],
                [workshop.write("rows.json", as_json(backwards))],
                [as_workbook(ROWS, home / "rows.xlsx")],
                [workshop.write("1.csv", as_csv(ROWS[50:], "utf-8-sig")), workshop.write("2.json", as_json(ROWS[:90]))],
            ]
            for number, paths in enumerate(files):
                workshop.load(*paths, library=f"l{number}")
                hashes.add(workshop.freeze(f"l{number}").snapshot.hash)
            hashes.add(workshop.freeze("l0").snapshot.hash)
    assert len(hashes) == 1


@limits(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from(["好吃", "好吃！", "ＯＫ", "ok", "难吃", "贵"]),
            st.sampled_from(["好评", "差评", "中评"]),
            st.sampled_from(["train", "dev", "test", ""]),
        ),
        min_size=1,
        max_size=12,
    ),
    order=st.randoms(use_true_random=False),
)
def test_the_order_of_rows_and_imports_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], order: object
) -> None:
    home = tmp_path_factory.mktemp("home")
    with open_database(Settings(home=home)) as engine:
        workshop = Workshop(engine, home)
        shuffled = list(rows)
        order.shuffle(shuffled)  # type: ignore[attr-defined]
        half = len(rows) // 2
        for library, parts in (("one", [rows]), ("two", [shuffled[:half], shuffled[half:]])):
            for number, part in enumerate(filter(None, parts)):
                content = "text,label,part\n" + "".join(",".join(row) + "\n" for row in part)
                workshop.load(workshop.write(f"{library}{number}.csv", content), library=library, split="part")
        one, two = workshop.freeze("one"), workshop.freeze("two")
    assert one.snapshot.hash == two.snapshot.hash
    assert one.conflicts == two.conflicts


def test_no_group_of_near_copies_is_parted_and_old_samples_stay_where_they_are(workshop: Workshop) -> None:
    rows = "".join(f"第{row}件很好{mark},好评\n" for row in range(100) for mark in ("", "！", "～～"))
    workshop.load(workshop.write("a.csv", "text,label\n" + rows))
    before = workshop.samples(test=0.3, dev=0.3)
    assert {sample.split for sample in before.values()} == {"test", "dev", "train"}
    for row in range(100):
        assert len({before[f"第{row}件很好{mark}"].split for mark in ("", "！", "～～")}) == 1
    workshop.load(workshop.write("b.csv", "text,label\n" + rows.replace("件", "个")))
    after = workshop.samples(test=0.3, dev=0.3)
    assert len(after) == 600
    assert all(after[text] == sample for text, sample in before.items())


def test_near_duplicates_share_a_split_and_imports_decide_for_all_of_them(workshop: Workshop) -> None:
    """Edited copies of 60 texts that have nothing in common."""
    openings = ("早餐的种类比照片上少得多", "空调整夜都在响根本睡不着", "前台小哥帮忙搬了三个箱子")
    texts = [
        f"{opening}，{chr(0x4E00 + 211 * row) * 3}路店{chr(0x5E00 + 97 * row) * 4}"
        for row in range(20)
        for opening in openings
    ]
    rows = "".join(f"{text}{tail},好评\n" for text in texts for tail in ("", "呢", "呀呀"))
    workshop.load(workshop.write("a.csv", "text,label\n" + rows))
    splits = {text: sample.split for text, sample in workshop.samples(test=0.3, dev=0.3).items()}
    assert {splits[text] for text in texts} == {"test", "dev", "train"}
    for text in texts:
        assert len({splits[text + tail] for tail in ("", "呢", "呀呀")}) == 1
    exactly = {text: sample.split for text, sample in workshop.samples(test=0.3, dev=0.3, near=1.0).items()}
    assert any(len({exactly[text + tail] for tail in ("", "呢", "呀呀")}) > 1 for text in texts)
    moved = next(text for text in texts if splits[text] == "train")
    workshop.load(workshop.write("b.csv", f"text,label,split\n{moved}呀呀,好评,dev\n"), split="split")
    assert {workshop.samples(test=0.3, dev=0.3)[moved + tail].split for tail in ("", "呢", "呀呀")} == {"dev"}


def test_conflicts_are_counted_and_kept_or_dropped(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n还行,好评\n还行,中评\n很好,好评\n"))
    kept, dropped = workshop.freeze(), workshop.freeze(conflicts=Conflicts.DROP)
    assert {sample.text: sample.labels for sample in kept.snapshot.samples()} == {"还行": ("中评",), "很好": ("好评",)}
    assert [sample.text for sample in dropped.snapshot.samples()] == ["很好"]
    assert kept.conflicts == dropped.conflicts == 1


def test_two_freezes_of_one_content_at_once_are_both_told_where_it_is(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    both_ready, publish = Barrier(2, timeout=10), model.snapshot.publish

    def publish_together(staging: Path, destination: Path) -> None:
        both_ready.wait()
        publish(staging, destination)

    monkeypatch.setattr(model.snapshot, "publish", publish_together)
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(lambda _: workshop.freeze().snapshot, range(2))
    assert one.hash == two.hash
    assert [path.name for path in one.path.parent.iterdir()] == [one.hash]


def test_a_snapshot_names_the_one_before_it_and_never_itself(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n很好,好评\n"))
    first = workshop.freeze().snapshot
    workshop.load(workshop.write("b.csv", "text,label\n很坏,差评\n"))
    second = workshop.freeze().snapshot
    assert (first.parent, second.parent) == (None, first.hash)
    assert workshop.freeze().snapshot == second


def test_gaps_are_told(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label,part\n很好,好评,train\n很坏,差评,test\n"), split="part")
    assert gaps(workshop.freeze()) == [
        "dev 没有样本 | split dev is empty",
        "train 缺 1 个类别 | train has no sample of 1 classes: 差评",
    ]


def test_a_snapshot_tells_whose_its_labels_are_and_warns_of_a_test_that_machines_labelled(workshop: Workshop) -> None:
    workshop.load(
        workshop.write("a.csv", "text,label,split\n房间大,好评,train\n早餐凉,差评,train\n床很软,好评,test\n"),
        split="split",
    )
    label_sample(workshop.engine, library="default", sample="房间大", is_text=True, labels=["好评"], by="标注员甲")
    before = workshop.freeze(test=0, dev=0)
    assert before.sources["train"] == {"person": 1, "import": 1, "model": 0}
    assert not any("come from a machine" in gap for gap in gaps(before))
    apply_sweep(
        workshop.engine,
        library="default",
        kind="relabel",
        actor="linear@1a2b",
        rows=[SweptLabels(sample_id("床很软"), ("差评",), 0.9)],
        judged={sample_id("床很软"): ("好评",)},
        asked={},
        outcome={},
        by="标注员甲",
        version=1,
    )
    after = workshop.freeze(test=0, dev=0)
    assert after.sources["test"] == {"person": 0, "import": 0, "model": 1}
    told = "1 of 1 test labels come from a machine, and figures flatter its like"
    assert f"test 的 1 条标签中有 1 条出自机器，同类模型的分数会偏高 | {told}" in gaps(after)
    assert read_json(after.snapshot.path / "manifest.json")["provenance"]["sources"] == after.sources
