"""Parquet: row groups one after another, lists as labels, broken files told."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from workshop import Workshop

from app.library.parquet import ROWS_AT_ONCE
from model.errors import BadInput
from model.types import Task


def write(path: Path, columns: dict[str, object], **options: int) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def test_rows_of_all_row_groups_come_in_with_their_numbers(workshop: Workshop) -> None:
    rows = ROWS_AT_ONCE + 10
    texts = [f"第{row}条" for row in range(rows - 1)] + [None]
    path = write(workshop.home / "a.parquet", {"text": texts, "label": pa.array(["好评"] * rows).dictionary_encode()},
                 row_group_size=100)  # fmt: skip
    imported = workshop.load(path)
    assert (imported.read, imported.added, imported.rejected) == (rows, rows - 1, 1)
    assert imported.rejects_file is not None
    assert f'"line": {rows},' in imported.rejects_file.read_text(encoding="utf-8")


def test_a_list_column_holds_several_labels_and_bytes_hold_no_text(workshop: Workshop) -> None:
    columns = {"text": ["财政与球赛", "天气"], "label": [["财经", "体育"], ["天气"]], "raw": [b"\x00", b"\x01"]}
    path = write(workshop.home / "a.parquet", columns)
    workshop.load(path, task=Task.MULTI)
    assert workshop.samples()["财政与球赛"].labels == ("体育", "财经")
    with pytest.raises(BadInput, match="holds bytes, not text"):
        workshop.load(path, text="raw", library="bytes", task=Task.MULTI)


def test_a_packed_file_is_known_by_its_content(workshop: Workshop) -> None:
    plain = write(workshop.home / "a.parquet", {"text": ["很好"], "label": ["好评"]})
    packed = workshop.write("b.gz", gzip.compress(plain.read_bytes()))
    assert workshop.load(packed).added == 1


@pytest.mark.parametrize("cut", [0.5, 0.99])
def test_a_broken_file_is_refused(workshop: Workshop, cut: float) -> None:
    path = write(workshop.home / "a.parquet", {"text": ["很好"] * 1000, "label": ["好评"] * 1000})
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(BadInput, match=r"a\.parquet is not readable Parquet"):
        workshop.load(path)


def test_a_file_with_a_changed_page_is_refused(workshop: Workshop) -> None:
    path = write(workshop.home / "a.parquet", {"text": [f"第{n}条" for n in range(1000)], "label": ["好评"] * 1000})
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"a\.parquet is not readable Parquet"):
        workshop.load(path)


def test_a_file_without_rows_or_without_the_column_is_told(workshop: Workshop) -> None:
    with pytest.raises(BadInput, match=r"a\.parquet is empty"):
        workshop.load(write(workshop.home / "a.parquet", {"text": pa.array([], pa.string())}))
    with pytest.raises(BadInput, match="no column 'text'; its columns: 文本"):
        workshop.load(write(workshop.home / "b.parquet", {"文本": ["好"]}))


def test_cells_that_share_a_huge_text_are_refused_before_each_has_a_copy(workshop: Workshop) -> None:
    huge = pa.array(["长" * (1 << 19)])
    cells = huge.take(pa.array([0] * 600))
    lists = pa.ListArray.from_arrays(pa.array([0, 600], pa.int32()), cells)
    for number, table in enumerate(
        ({"text": cells}, {"text": ["短"], "label": lists}, {"text": ["短"], "tags": lists})
    ):
        path = workshop.home / f"{number}.parquet"
        pq.write_table(pa.table(table), path, compression="zstd")
        assert path.stat().st_size < 10_000
        with pytest.raises(BadInput, match=rf"{number}\.parquet: rows 1 to .* hold more than 512 MiB"):
            workshop.load(path, label=None)


def test_every_type_of_column_can_stand_beside_the_texts(workshop: Workshop) -> None:
    columns = {
        "text": pa.array(["很好", "不好"], pa.large_string()),
        "label": ["好评", "差评"],
        "map": pa.array([[("甲", "乙")], []], pa.map_(pa.string(), pa.string())),
        "struct": [{"k": "v"}, None],
        "pair": pa.array([["a", "b"], ["c", "d"]], pa.list_(pa.string(), 2)),
        "nothing": pa.nulls(2),
        "price": pa.array([1, 2], pa.decimal128(38, 2)),
    }
    path = write(workshop.home / "a.parquet", columns)
    assert workshop.load(path).added == 2
    assert {text: sample.labels for text, sample in workshop.samples().items()} == {
        "很好": ("好评",),
        "不好": ("差评",),
    }
