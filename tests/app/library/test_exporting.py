"""Exports: each format as its readers expect it, and the way back into a library."""

import csv
import json
from itertools import product
from pathlib import Path
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
import yaml
from workshop import Workshop

from app.library import exporting
from app.library.exporting import Exported, ExportFormat, export_label_names, export_snapshot
from app.library.exports import sheets
from app.library.label_names import read_label_names
from model.errors import BadInput
from model.snapshot import Snapshot, write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy

# What spreadsheets, CSV, XML, fastText and importers might trip over.
TEXTS = (
    "=1+1",
    "+86 是区号",
    "-5度，太冷",
    "@小明 来看",
    "'=已有一撇",
    "''引号",
    '他说"好"，就走了',
    "a,b;c|d",
    "#N/A",
    "007",
    "3.0",
    "TRUE",
    "{不是 JSON",
    "__label__差 是什么",
    "😀 表情",
    "_x0041_ & <b>",
)
SINGLE = Taxonomy(task=Task.SINGLE, labels=("好评", "=差评", "1", "很 好", "从没用过"))
MULTI = Taxonomy(task=Task.MULTI, labels=("价格|费用", "服务", "-位置"), multiple=True)
PATHS = Taxonomy(task=Task.HIERARCHICAL, labels=("组织-裁员", "人生-离职", "人生-结婚"), level_sep="-")
PATH_SETS = Taxonomy(task=Task.HIERARCHICAL, labels=("组织/裁员", "人生/离职"), level_sep="/", multiple=True)


def freeze(folder: Path, taxonomy: Taxonomy, *, pairs: bool = False) -> Snapshot:
    """A snapshot of the texts, whose labels go round, two of them where there may be several."""
    rows = []
    normal = Normaliser()
    for number, raw in enumerate(TEXTS):
        text, pair = normal(raw), f"答{number}" if pairs else None
        used = taxonomy.labels[:4]
        labels = {used[number % len(used)], *([used[-1]] if taxonomy.multiple and number % 2 else [])}
        split = (Split.TRAIN, Split.TRAIN, Split.DEV, Split.TEST)[number % 4]
        rows.append(Sample(id=sample_id(text, pair), text=text, pair=pair, labels=tuple(sorted(labels)), split=split))
    rows.sort(key=lambda sample: sample.id)
    return write_snapshot(rows, taxonomy=taxonomy, normaliser=normal, folder=folder)


def export(snapshot: Snapshot, kind: str, folder: Path, **options: Any) -> Exported:
    return export_snapshot(snapshot, file_format=ExportFormat(kind), out=folder / f"out.{kind}", **options)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "xlsx", "parquet", "label-studio", "doccano"])
def test_what_was_exported_is_imported_as_the_same_snapshot(workshop: Workshop, kind: str) -> None:
    for number, (taxonomy, pairs) in enumerate(product((SINGLE, MULTI, PATHS, PATH_SETS), (False, True))):
        folder, library = workshop.home / str(number), f"l{number}"
        snapshot = freeze(folder / "given", taxonomy, pairs=pairs)
        exported = export(snapshot, kind, folder)
        export_label_names(taxonomy, folder / "names.jsonl")
        imported = workshop.load(
            exported.path,
            library=library,
            split="split",
            task=taxonomy.task,
            level_sep=taxonomy.level_sep,
            label_sep=(exported.label_sep or "|") if taxonomy.multiple else None,
            names=read_label_names(folder / "names.jsonl"),
            **({"pair": "pair"} if pairs else {}),
        )
        assert (imported.added, imported.rejected) == (len(TEXTS), 0)
        again = workshop.freeze(library).snapshot
        assert list(again.samples()) == list(snapshot.samples())
        assert again.hash == snapshot.hash


def test_no_cell_of_a_csv_can_become_a_formula(tmp_path: Path) -> None:
    path = export(freeze(tmp_path, SINGLE), "csv", tmp_path).path
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")  # by which Excel knows UTF-8
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [*rows[0]] == ["id", "text", "label", "split"]
    cells = {cell for row in rows for cell in row.values()}
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert {"'=1+1", "''=已有一撇", "'=差评", "''引号"} <= cells


def test_cells_of_excel_are_texts_and_stay_texts(tmp_path: Path) -> None:
    path = export(freeze(tmp_path, SINGLE), "xlsx", tmp_path).path
    rows = list(openpyxl.load_workbook(path).worksheets[0].iter_rows(min_row=2))
    assert {cell.data_type for row in rows for cell in row} == {"s"}
    cells = {row[1].value: row[1] for row in rows}
    assert cells.keys() == {Normaliser()(text) for text in TEXTS}
    assert (cells["=1+1"].number_format, cells["=1+1"].quotePrefix) == ("@", True)


def test_excel_refuses_what_it_can_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = Sample(id="a", text="😀" * 16_384, pair=None, labels=("好评",), split=Split.TRAIN)
    odd = Sample(id="a", text="尾\uffff", pair=None, labels=("好评",), split=Split.TRAIN)
    for sample, message in ((long, "sample a: an Excel cell holds 32,767"), (odd, r"sample a: .* character U\+FFFF")):
        snapshot = write_snapshot([sample], taxonomy=SINGLE, normaliser=Normaliser(), folder=tmp_path / "snapshots")
        with pytest.raises(BadInput, match=message):
            export(snapshot, "xlsx", tmp_path)
    monkeypatch.setattr(sheets, "EXCEL_ROWS", len(TEXTS))
    with pytest.raises(BadInput, match="an Excel sheet holds 15 samples and these are 16; take csv"):
        export(freeze(tmp_path / "snapshots", SINGLE), "xlsx", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["snapshots"]


def test_parquet_holds_texts_and_lists_of_texts(tmp_path: Path) -> None:
    single = export(freeze(tmp_path, SINGLE, pairs=True), "parquet", tmp_path).path
    rows = {row["text"]: row for row in pq.read_table(single).to_pylist()}
    assert rows["=1+1"] == {
        "id": sample_id("=1+1", "答0"),
        "text": "=1+1",
        "pair": "答0",
        "label": "好评",
        "split": "train",
    }
    single.unlink()
    multi = pq.read_table(export(freeze(tmp_path, MULTI), "parquet", tmp_path).path).to_pylist()
    assert {tuple(row["label"]) for row in multi} >= {("价格|费用",), ("-位置", "服务")}


def test_fasttext_takes_labels_with_spaces_and_several_of_them(tmp_path: Path) -> None:
    lines = export(freeze(tmp_path, SINGLE), "fasttext", tmp_path).path.read_text(encoding="utf-8").splitlines()
    assert {"__label__好评 =1+1", "__label__很_好 @小明 来看"} <= set(lines)
    assert not [line for line in lines if line.count("__label__") != 1]  # none in the texts
    (tmp_path / "out.fasttext").unlink()
    lines = export(freeze(tmp_path, MULTI), "fasttext", tmp_path).path.read_text(encoding="utf-8").splitlines()
    assert "__label__-位置 __label__服务 +86 是区号" in lines


def test_fasttext_refuses_pairs_and_labels_that_become_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no pairs of texts"):
        export(freeze(tmp_path, SINGLE, pairs=True), "fasttext", tmp_path)
    alike = Taxonomy(task=Task.SINGLE, labels=("很 好", "很_好"))
    with pytest.raises(BadInput, match="'很 好' and '很_好' would both be __label__很_好"):
        export(freeze(tmp_path, alike), "fasttext", tmp_path)


def test_label_studio_gets_tasks_with_finished_annotations(tmp_path: Path) -> None:
    tasks = json.loads(export(freeze(tmp_path, MULTI), "label-studio", tmp_path).path.read_text(encoding="utf-8"))
    assert len(tasks) == len(TEXTS)
    by_text = {task["data"]["text"]: task for task in tasks}
    assert by_text["+86 是区号"] == {
        "data": {"text": "+86 是区号", "sample_id": sample_id("+86 是区号"), "split": "train"},
        "annotations": [
            {
                "result": [
                    {
                        "from_name": "label",
                        "to_name": "text",
                        "type": "choices",
                        "value": {"choices": ["-位置", "服务"]},
                    }
                ]
            }
        ],
    }
    (tmp_path / "out.label-studio").unlink()
    tasks = json.loads(export(freeze(tmp_path, PATHS), "label-studio", tmp_path).path.read_text(encoding="utf-8"))
    results = [task["annotations"][0]["result"][0] for task in tasks]
    assert {result["type"] for result in results} == {"taxonomy"}
    assert [["人生", "离职"]] in [result["value"]["taxonomy"] for result in results]


def test_doccano_gets_a_list_of_labels_a_line(tmp_path: Path) -> None:
    lines = export(freeze(tmp_path, SINGLE), "doccano", tmp_path).path.read_text(encoding="utf-8").splitlines()
    rows = {row["text"]: row for row in map(json.loads, lines)}
    assert rows["=1+1"] == {
        "text": "=1+1",
        "label": ["好评"],
        "sample_id": sample_id("=1+1"),
        "split": "train",
    }


@pytest.mark.parametrize("taxonomy", [SINGLE, MULTI])
def test_a_hugging_face_folder_says_what_its_files_are(tmp_path: Path, taxonomy: Taxonomy) -> None:
    snapshot = freeze(tmp_path, taxonomy)
    folder = export(snapshot, "hf", tmp_path).path
    head = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert head["configs"][0]["data_files"] == [
        {"split": "train", "path": "train.parquet"},
        {"split": "validation", "path": "dev.parquet"},
        {"split": "test", "path": "test.parquet"},
    ]
    features = {feature["name"]: feature for feature in head["dataset_info"]["features"]}
    assert [*features] == pq.read_schema(folder / "train.parquet").names == ["id", "text", "label"]
    kind = features["label"]["sequence" if taxonomy.multiple else "dtype"]
    names = [kind["class_label"]["names"][str(number)] for number in range(len(taxonomy))]
    assert names == list(taxonomy.labels)
    for split in Split:
        rows = pq.read_table(folder / f"{split}.parquet").to_pylist()
        labels = [row["label"] if taxonomy.multiple else [row["label"]] for row in rows]
        expected = [sample.labels for sample in snapshot.samples(split)]
        assert [tuple(names[number] for number in numbers) for numbers in labels] == expected


@pytest.mark.parametrize("kind", list(ExportFormat))
def test_one_split_is_exported_alone(tmp_path: Path, kind: ExportFormat) -> None:
    heard: list[int] = []
    exported = export(freeze(tmp_path, SINGLE), kind, tmp_path, split=Split.DEV, on_sample=heard.append)
    assert exported.samples == sum(heard) == 4
    if kind is ExportFormat.HF:
        assert sorted(path.name for path in exported.path.iterdir()) == ["README.md", "dev.parquet"]
    elif kind not in (ExportFormat.XLSX, ExportFormat.PARQUET):
        content = exported.path.read_text(encoding="utf-8")
        assert sum(text in content for text in ("-5度", "'=已有一撇", "+86 是区号")) == 1


def test_what_exists_is_not_written_over(tmp_path: Path) -> None:
    snapshot = freeze(tmp_path, SINGLE)
    for kind in ("jsonl", "hf"):
        path = export(snapshot, kind, tmp_path).path
        with pytest.raises(BadInput, match=f"{path.name} exists already"):
            export(snapshot, kind, tmp_path)
    with pytest.raises(BadInput, match="exists already"):
        export_label_names(SINGLE, path)


def test_an_export_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = freeze(tmp_path / "snapshots", SINGLE)

    def full(content: object, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    for kind in (ExportFormat.CSV, ExportFormat.HF):
        monkeypatch.setitem(exporting._WRITERS, kind, full)
        with pytest.raises(OSError, match="No space left"):
            export(snapshot, kind, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["snapshots"]


def test_an_empty_split_and_labels_with_every_separator_are_refused(tmp_path: Path) -> None:
    lone = [Sample(id="a", text="好", pair=None, labels=("|;,、/&␟",), split=Split.TRAIN)]
    taxonomy = Taxonomy(task=Task.MULTI, labels=("|;,、/&␟",), multiple=True)
    snapshot = write_snapshot(lone, taxonomy=taxonomy, normaliser=Normaliser(), folder=tmp_path)
    with pytest.raises(BadInput, match="has no sample in split dev; leave out --split"):
        export(snapshot, "csv", tmp_path, split=Split.DEV)
    with pytest.raises(BadInput, match="take jsonl"):
        export(snapshot, "csv", tmp_path)
    assert export(snapshot, "jsonl", tmp_path).samples == 1
