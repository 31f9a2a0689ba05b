"""Imports: what comes in, what is rejected, and that a refused import leaves no trace."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.formats import Format
from app.store.tables import label_events, libraries, samples, sources
from model.errors import BadInput, BadTaxonomy, UnknownLibrary, WenleiError
from model.types import Split, Task

REVIEWS = "text,label\n房间很干净,好评\n早餐太少了,差评\n房间很干净,好评\n"


def test_a_file_is_imported_once_however_often_it_comes(workshop: Workshop) -> None:
    path = workshop.write("reviews.csv", REVIEWS)
    first = workshop.load(path)
    assert (first.read, first.added, first.duplicates, first.rejected, first.rejects_file) == (3, 2, 1, 0, None)
    again = workshop.load(path)
    assert (again.read, again.added, again.duplicates) == (3, 0, 3)
    assert [workshop.count(table) for table in (samples, label_events, sources)] == [2, 2, 1]


def test_samples_and_events_say_where_they_come_from(workshop: Workshop) -> None:
    workshop.load(workshop.write("reviews.csv", 'text,label\n"ＷＩＦＩ  很快",好评\n安静,好评\n'))
    with workshop.engine.connect() as connection:
        rows = connection.execute(sa.select(samples).order_by(samples.c.line)).all()
        events = connection.execute(sa.select(label_events).order_by(label_events.c.line)).all()
        source = connection.execute(sa.select(sources)).one()
    assert [(row.text, row.raw_text, row.line) for row in rows] == [
        ("WIFI 很快", "ＷＩＦＩ  很快", 2),
        ("安静", None, 3),
    ]
    assert {row.source_id for row in (*rows, *events)} == {source.id}
    assert (source.name, len(source.sha256)) == ("reviews.csv", 64)
    assert [(event.labels, event.actor_kind, event.line) for event in events] == [
        ('["好评"]', "import", 2),
        ('["好评"]', "import", 3),
    ]


def test_rejected_rows_are_kept_with_place_and_reason(workshop: Workshop) -> None:
    lines = [
        b"text,label",
        "好,好评".encode(),
        b"  ,x",
        "长".encode() * 100_000 + b",x",
        b"\xff\xfe\xfa,x",
        b"a,b,c",
        b"c,",
    ]
    imported = workshop.load(workshop.write("混 合.csv", b"\n".join(lines)))
    assert (imported.read, imported.added, imported.rejected) == (6, 1, 5)
    assert imported.rejects_file is not None
    assert imported.rejects_file.name.startswith("default-混_合.csv-")
    entries = [json.loads(line) for line in imported.rejects_file.read_text(encoding="utf-8").splitlines()]
    assert [(entry["file"], entry["line"]) for entry in entries] == [("混 合.csv", line) for line in (3, 4, 5, 6, 7)]
    reasons = ("empty", "100,000 characters", "bytes that are not utf-8", "3 columns instead of 2", "label is empty")
    for entry, reason in zip(entries, reasons, strict=True):
        assert reason in entry["reason"]
    assert len(entries[1]["row"][0]) < 300
    assert [path.name for path in imported.rejects_file.parent.iterdir()] == [imported.rejects_file.name]


def test_labels_of_rejected_rows_do_not_enter_the_taxonomy(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n好,好评\n ,鬼\n"))
    assert workshop.freeze().snapshot.taxonomy.labels == ("好评",)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("text,label\n ,x\n", {}, "nothing can be imported.*a.csv, line 2: column text: the text is empty"),
        ("text,label\n", {}, "there are no rows"),
        ("", {}, "a.csv is empty"),
        ("文本,标签\n好,好评\n", {}, "no column 'text'; its columns: 文本, 标签"),
        ("text,text,label\n好,好,x\n", {}, "2 times the column 'text'"),
        ("好,好评\n", {"text": "0", "label": "7", "header": False}, "no column '7'.*from 0 to 1"),
        ("好,好评\n", {"text": "0", "label": "1"}, "add --no-header"),
        (REVIEWS, {"encoding": "utf-16"}, "not utf-16"),
        (REVIEWS.encode("gbk"), {"encoding": "utf-8"}, "line 2, byte 12"),
        (REVIEWS, {"names": ("中评",)}, "nothing can be imported.*'好评' is not in the taxonomy"),
        (REVIEWS, {"split": "部分"}, "no column '部分'"),
        (REVIEWS, {"library": "../x"}, "library name"),
        (REVIEWS, {"format": Format.JSONL}, "line 1: no JSON object in its first lines"),
        (REVIEWS, {"format": Format.XLSX}, "not a readable .xlsx"),
        (REVIEWS, {"task": Task.HIERARCHICAL}, "needs --level-sep"),
        (REVIEWS, {"task": Task.SINGLE, "label_sep": "|"}, "leave out --label-sep"),
        (REVIEWS, {"task": Task.MULTI, "level_sep": "-"}, "leave out --level-sep"),
        (REVIEWS, {"label_sep": ""}, "empty"),
    ],
)
def test_a_refused_import_leaves_no_trace(
    workshop: Workshop, content: str | bytes, options: dict[str, Any], message: str
) -> None:
    path = workshop.write("a.csv", content)
    with pytest.raises(WenleiError, match=f"(?s){message}"):
        workshop.load(path, **options)
    assert [workshop.count(table) for table in (libraries, samples, label_events, sources)] == [0] * 4
    assert list((workshop.home / "rejects").glob("*")) == []
    with pytest.raises(UnknownLibrary, match="none yet"):
        workshop.freeze()


def test_a_file_that_breaks_half_way_takes_the_whole_import_back(workshop: Workshop) -> None:
    import gzip

    good = workshop.write("good.csv", REVIEWS)
    packed = gzip.compress("".join(f"第{row}条{row**5},好评\n" for row in range(50_000)).encode())
    half = workshop.write("half.csv.gz", packed[: len(packed) // 2])
    with pytest.raises(BadInput, match="archive is broken"):
        workshop.load(good, half, text="0", label="1", header=False)
    assert workshop.count(samples) == workshop.count(libraries) == 0


def test_a_library_keeps_its_task_and_separators(workshop: Workshop) -> None:
    single = workshop.write("single.csv", REVIEWS)
    multi = workshop.write("multi.csv", "text,label\n涨价了,财经|民生\n")
    paths = workshop.write("paths.csv", "text,label\n裁员了,组织-裁员\n")
    workshop.load(single, library="single")
    workshop.load(multi, library="multi", label_sep="|")
    workshop.load(paths, library="paths", level_sep="-")
    for library, options, message in (
        ("single", {"task": Task.MULTI}, "holds task single, not multi"),
        ("single", {"label_sep": "|"}, "one label a text"),
        ("paths", {"level_sep": "/"}, "levels parted by '-'"),
        ("paths", {"label_sep": "|"}, "one label a text"),
        ("multi", {"level_sep": "-"}, "no levels"),
    ):
        with pytest.raises(BadTaxonomy, match=message):
            workshop.load(single, library=library, **options)
    more = workshop.write("more.csv", "text,label\n油价降了,民生|汽车\n")
    workshop.load(more, library="multi")
    assert workshop.freeze("multi").snapshot.taxonomy.labels == ("民生", "汽车", "财经")
    taxonomy = workshop.freeze("paths").snapshot.taxonomy
    assert (taxonomy.task, taxonomy.level_sep, taxonomy.multiple) == (Task.HIERARCHICAL, "-", False)


def test_declared_classes_keep_their_order_and_can_be_called_by_number(workshop: Workshop) -> None:
    numbers = workshop.write("a.csv", "text,label\n好,1\n坏,0\n怪,2\n还行,好评\n")
    imported = workshop.load(numbers, names=("差评", "好评"))
    assert (imported.added, imported.rejected) == (3, 1)
    names = workshop.write("b.csv", "text,label\n不错,好评\n一般,中评\n")
    assert workshop.load(names).rejected == 1
    assert workshop.freeze().snapshot.taxonomy.labels == ("差评", "好评")
    assert {text: sample.labels for text, sample in workshop.samples().items()} == {
        "好": ("好评",),
        "坏": ("差评",),
        "还行": ("好评",),
        "不错": ("好评",),
    }
    with pytest.raises(BadTaxonomy, match="differs from its declared list"):
        workshop.load(names, names=("好评", "差评"))


def test_a_grown_taxonomy_can_be_declared_later_if_nothing_is_left_out(workshop: Workshop) -> None:
    path = workshop.write("a.csv", REVIEWS)
    workshop.load(path)
    with pytest.raises(BadTaxonomy, match="lacks its labels 差评"):
        workshop.load(path, names=("好评",))
    workshop.load(path, names=("差评", "中评", "好评"))
    assert workshop.freeze().snapshot.taxonomy.labels == ("差评", "中评", "好评")


def test_a_column_of_texts_is_not_taken_for_labels(workshop: Workshop) -> None:
    rows = "".join(f"第{row}条,说法{row}\n" for row in range(10_001))
    with pytest.raises(BadTaxonomy, match="is --label the right column"):
        workshop.load(workshop.write("a.csv", "text,label\n" + rows))


def test_texts_without_labels_are_kept_and_not_frozen(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.txt", "今天天气不错\n明天下雨\n\n"), label=None)
    assert workshop.count(samples) == 2
    with pytest.raises(WenleiError, match="library 'default': there are no labelled samples"):
        workshop.freeze()
    workshop.load(workshop.write("b.csv", "text,label\n今天天气不错,天气\n"))
    assert [*workshop.samples()] == ["今天天气不错"]


def test_pairs_are_samples_of_their_own(workshop: Workshop) -> None:
    rows = "q,d,label\n怎么退货,退货流程,相关\n怎么退货,开票流程,无关\n怎么退货,,无关\n"
    imported = workshop.load(workshop.write("a.csv", rows), text="q", pair="d")
    assert (imported.added, imported.rejected) == (2, 1)
    assert {sample.pair for sample in workshop.freeze().snapshot.samples()} == {"退货流程", "开票流程"}


def test_a_text_in_several_splits_stays_in_the_most_protective(workshop: Workshop) -> None:
    train = workshop.write("train.csv", "text,label\n好吃！,好评\n难吃,差评\n好看,好评\n")
    test = workshop.write("test.csv", "text,label\n好吃。,好评\n难吃,差评\n")
    column = workshop.write("column.csv", "text,label,part\n难吃,差评,train\n好看,好评,validation\n好听,好评,\n")
    workshop.load(test, split="test")
    workshop.load(train, split="train")
    workshop.load(column, split="part")
    splits = {text: sample.split for text, sample in workshop.samples(test=0, dev=0).items()}
    assert splits == {
        "好吃！": Split.TEST,
        "好吃。": Split.TEST,
        "难吃": Split.TEST,
        "好看": Split.DEV,
        "好听": Split.TRAIN,
    }


def test_two_imports_at_once_lose_nothing(workshop: Workshop) -> None:
    paths = [
        workshop.write(
            f"{part}.csv", "text,label\n" + "".join(f"共同{row},好评\n独有{part}{row},类{part}\n" for row in range(200))
        )
        for part in range(4)
    ]
    with ThreadPoolExecutor(4) as pool:
        imported = list(pool.map(workshop.load, paths))
    assert sum(result.added for result in imported) == workshop.count(samples) == 200 + 4 * 200
    assert workshop.freeze().snapshot.taxonomy.labels == ("好评", "类0", "类1", "类2", "类3")


def test_the_source_of_an_archive_member_is_named(workshop: Workshop, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("a.csv", REVIEWS)
        archive.writestr("b.jsonl", '{"text": "前台热情", "label": "好评"}\n')
    assert workshop.load(tmp_path / "all.zip").added == 3
    with workshop.engine.connect() as connection:
        assert {*connection.scalars(sa.select(sources.c.name))} == {"all.zip/a.csv", "all.zip/b.jsonl"}
