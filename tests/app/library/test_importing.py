"""Imports: what comes in, what is rejected, and that a refused import leaves no trace."""

import gzip
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library.browsing import browse
from app.library.definition import ImportOptions
from app.library.formats import Format
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.tables import Reading, Table
from app.library.verifying import verify
from app.settings import Settings
from app.store import merging
from app.store.database import open_database
from app.store.tables import label_events, libraries, samples, sources
from model.errors import BadInput, DatabaseUnavailable, UnknownLibrary, WenleiError
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


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (
            "a.csv",
            'text,label\n很好,好评\n不错,好评\n<img alt="?">坏,差评\n'.encode().replace(b"?", b"\xff"),
            "character 11: bytes that are not utf-8",
        ),
        (
            "a.json",
            '{"text": "很好", "label": "好评"}\n{"text": "<a title=\'\\ud800\'>坏", "label": "差评"}\n'.encode(),
            "character 11: half of a surrogate pair",
        ),
    ],
)
def test_a_row_with_half_a_character_in_a_tag_is_rejected(
    workshop: Workshop, name: str, content: bytes, reason: str
) -> None:
    imported = workshop.load(workshop.write(name, content))
    assert imported.rejected == 1
    assert imported.rejects_file is not None
    assert reason in imported.rejects_file.read_text(encoding="utf-8")


def test_rejected_rows_may_be_nested_deeply_and_come_from_files_with_long_names(workshop: Workshop) -> None:
    deep = '{"text": ' + "[" * 600 + "]" * 600 + ', "label": "x"}\n{"text": "很好", "label": "好评"}\n'
    imported = workshop.load(workshop.write("名" * 80 + ".json", deep))
    assert imported.rejects_file is not None
    assert json.loads(imported.rejects_file.read_text(encoding="utf-8"))["row"]["text"] == [["…"]]


def test_utf8_that_was_asked_for_may_begin_with_a_mark(workshop: Workshop) -> None:
    assert workshop.load(workshop.write("a.csv", "\ufeff" + REVIEWS), encoding="utf-8").added == 2


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
        (REVIEWS, {"label_sep": "-", "level_sep": "-"}, "both '-'"),
        (REVIEWS, {"names": ("好评", "组织-"), "level_sep": "-"}, "empty level in 组织-"),
        (REVIEWS, {"names": tuple(map(str, range(10_001)))}, "is --label-names the right file"),
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
    good = workshop.write("good.csv", REVIEWS)
    packed = gzip.compress("".join(f"第{row}条{row**5},好评\n" for row in range(50_000)).encode())
    half = workshop.write("half.csv.gz", packed[: len(packed) // 2])
    with pytest.raises(BadInput, match="archive is broken"):
        workshop.load(good, half, text="0", label="1", header=False)
    assert workshop.count(samples) == workshop.count(libraries) == 0


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


def test_a_database_that_goes_away_in_mid_import_is_told_in_one_line(
    tmp_path: Path, new_database: Callable[[str], str]
) -> None:
    with open_database(Settings(home=tmp_path, database_url=new_database("postgresql"))) as engine:
        workshop = Workshop(engine, tmp_path)
        paths = [workshop.write("a.csv", REVIEWS), workshop.write("b.csv", "text,label\n安静,好评\n")]

        def hang_up(table: Table) -> None:
            if table.name == "b.csv":
                with engine.begin() as other:
                    importing_now = "state = 'idle in transaction' AND pid <> pg_backend_pid()"
                    other.exec_driver_sql(
                        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {importing_now}"
                    )

        with pytest.raises(DatabaseUnavailable, match="check WENLEI_DATABASE_URL"):
            import_files(
                engine,
                paths,
                options=ImportOptions(library="default"),
                columns=Columns(text="text", label="label"),
                reading=Reading(),
                rejects_folder=tmp_path / "rejects",
                on_table=hang_up,
            )
        assert workshop.load(*paths).added == 3


def test_a_large_first_import_is_indexed_in_one_go_and_later_ones_as_they_come(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "WORTH_IT", 0)
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n"))
    workshop.load(workshop.write("b.csv", "text,label\n窗很小,差评\n"))
    for query, text in (("房", "房间大"), ("餐凉", "早餐凉"), ("窗很小", "窗很小")):
        (found,) = browse(workshop.engine, library="default", query=query, sort="-arrival").samples
        assert found.text == text
    indexes = {
        index["name"] for table in ("samples", "catalogue") for index in sa.inspect(workshop.engine).get_indexes(table)
    }
    assert {"catalogue_of_sample", "catalogue_by_arrival", "catalogue_by_labels", "catalogue_conflicts"} <= indexes
    assert ("samples_bigrams" in indexes) == (workshop.engine.dialect.name == "postgresql")


def test_a_large_first_import_does_not_wait_for_who_reads_meanwhile(
    new_database: Callable[[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "WORTH_IT", 0)
    with open_database(Settings(home=tmp_path, database_url=new_database("postgresql"))) as engine:
        workshop = Workshop(engine, tmp_path)
        path = workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n")
        with engine.connect() as reader, ThreadPoolExecutor(1) as threads:
            reader.execute(sa.select(samples.c.id))
            importing = threads.submit(workshop.load, path)
            try:
                assert importing.result(timeout=30).added == 2
            finally:
                reader.rollback()  # whoever still waits for it goes on
        assert browse(engine, library="default", query="餐凉").samples[0].text == "早餐凉"
        assert "samples_bigrams" in {index["name"] for index in sa.inspect(engine).get_indexes("samples")}


def test_classes_declared_in_another_order_decide_conflicts_anew(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,中评\n房间大,好评\n早餐凉,中评\n"))
    assert workshop.samples()["房间大"].labels == ("中评",)
    workshop.load(workshop.write("b.csv", "text,label\n窗很小,中评\n"), names=("好评", "中评"))
    assert workshop.samples()["房间大"].labels == ("好评",)
    assert list(verify(workshop.engine, library="default")) == []
