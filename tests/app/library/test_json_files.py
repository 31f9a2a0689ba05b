"""JSON documents: a list of objects anywhere in them, streamed; whatever else they hold is told."""

import json
import tracemalloc
from pathlib import Path

import pytest
from workshop import Workshop

from app.library.formats import Format
from app.library.json_files import MAX_OBJECT_BYTES
from app.library.sources import Source
from app.library.tables import Reading, open_tables
from model.errors import BadInput
from model.types import Task

REVIEWS = [{"text": "房间很干净", "label": "好评"}, {"text": "早餐太少了", "label": "差评"}]


@pytest.mark.parametrize(
    "document",
    [REVIEWS, {"data": REVIEWS}, {"meta": {"tags": ["甲"], "版本": 1}, "结果": {"rows": REVIEWS}}],
)
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_the_list_of_objects_is_found(tmp_path: Path, document: object, indent: int | None, encoding: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(json.dumps(document, ensure_ascii=False, indent=indent).encode(encoding))
    with open_tables(Source(path), Reading()) as (table,):
        assert (table.format, table.columns) == (Format.JSON, ("text", "label"))
        assert [row.cells for row in table.rows] == REVIEWS


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is empty"),
        ('[{"text": "好", "label": "x"},\n{"text": "坏"', r"not JSON after object \d"),
        ('[{"text": "好", "label": NaN}]', "not JSON after object 0"),
        ('{"a": [\n1]}', "no list of objects"),
        ('{"甲": [{"text": "好"}],\n"乙": [{"text": "坏"}]}', r"2 lists of objects \(甲, 乙\)"),
        ("[\n1, 2]", "no JSON object in its first lines"),
        (json.dumps({str(n): [{}] for n in range(99)}), r"10 or more lists of objects \(0, 1, 2"),
    ],
)
def test_a_document_without_one_list_of_objects_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with (
        pytest.raises(BadInput, match=rf"a\.json.*{message}"),
        open_tables(Source(tmp_path / "a.json"), Reading(format=Format.JSON)) as (table,),
    ):
        list(table.rows)


def test_numbers_lists_and_stray_values_of_a_document_are_read_as_in_json_lines(workshop: Workshop) -> None:
    items = [
        {"text": "一百二十三", "label": ["财经", "体育"], "id": 2**70},
        {"text": 123, "label": 1.0},
        "不是对象",
        {"text": "级别", "label": [0.5]},
    ]
    path = workshop.write("a.json", json.dumps(items, ensure_ascii=False))
    imported = workshop.load(path, task=Task.MULTI)
    assert (imported.read, imported.added, imported.rejected) == (4, 3, 1)
    assert {text: sample.labels for text, sample in workshop.samples().items()} == {
        "一百二十三": ("体育", "财经"),
        "123": ("1",),
        "级别": ("0.5",),
    }


def test_a_document_that_breaks_off_takes_the_whole_import_back(workshop: Workshop) -> None:
    rows = ",\n".join(json.dumps({"text": f"第{row}条", "label": "好"}, ensure_ascii=False) for row in range(30_000))
    with pytest.raises(BadInput, match="not JSON after object 30000"):
        workshop.load(workshop.write("a.json", f"[{rows}"))
    assert not (workshop.home / "rejects").exists()


def test_what_stands_around_the_list_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    document = {"版本": {"作者": "标注员甲"}, "标识": ["甲" * 20] * 100_000, "data": REVIEWS}
    path.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
    assert path.stat().st_size > MAX_OBJECT_BYTES
    with open_tables(Source(path), Reading()) as (table,):
        assert [row.cells for row in table.rows] == REVIEWS


def test_a_large_document_is_read_in_flat_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    row = json.dumps({"text": "好" * 5000, "label": "x"}, ensure_ascii=False)
    path.write_text(f"[{','.join([row] * 3000)}]", encoding="utf-8")
    tracemalloc.start()
    try:
        with open_tables(Source(path), Reading()) as (table,):
            assert sum(1 for _ in table.rows) == 3000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 3
