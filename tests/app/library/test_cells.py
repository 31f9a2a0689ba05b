"""Cells: labels, splits and class names, read the same however they are written."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.library.cells import LabelReader, cell_split, cell_text
from app.library.label_names import read_label_names
from model.errors import BadInput, UnknownLabel
from model.types import Task, Taxonomy

SINGLE = Taxonomy(Task.SINGLE, ())
MULTI = Taxonomy(Task.MULTI, (), multiple=True)
PATHS = Taxonomy(Task.HIERARCHICAL, (), level_sep="-", multiple=True)


@pytest.mark.parametrize(
    ("taxonomy", "cell", "expected"),
    [
        (SINGLE, " 好评\u200b ", ["好评"]),
        (SINGLE, 1, ["1"]),
        (SINGLE, 1.0, ["1"]),
        (SINGLE, "体育|财经", ["体育|财经"]),
        (MULTI, "财经|体育||财经 ", ["体育", "财经"]),
        (MULTI, ["财经", "体育"], ["体育", "财经"]),
        (PATHS, "组织-裁员|人生-结婚", ["人生-结婚", "组织-裁员"]),
    ],
)
def test_a_cell_gives_its_labels_sorted_and_once(taxonomy: Taxonomy, cell: Any, expected: list[str]) -> None:
    reader = LabelReader(taxonomy, label_sep="|", names={}, closed=False)
    assert json.loads(reader(cell)) == expected
    assert reader.seen == set(expected)


@pytest.mark.parametrize(
    ("taxonomy", "cell", "reason"),
    [
        (SINGLE, "  ", "empty"),
        (SINGLE, None, "empty"),
        (MULTI, "||", "empty"),
        (SINGLE, ["体育", "财经"], "2 labels"),
        (SINGLE, {"a": 1}, "not text"),
        (SINGLE, "长" * 201, "right column"),
        (SINGLE, "坏\udcff", "bytes that are not text"),
        (PATHS, "组织-", "empty level"),
    ],
)
def test_a_cell_that_holds_no_label_says_why(taxonomy: Taxonomy, cell: Any, reason: str) -> None:
    reader = LabelReader(taxonomy, label_sep="|", names={}, closed=False)
    with pytest.raises(BadInput, match=reason):
        reader(cell)
    assert not reader.seen


def test_declared_classes_are_called_by_name_or_number_and_others_refused() -> None:
    reader = LabelReader(
        SINGLE, label_sep=None, names={"0": "差评", "1": "好评", "差评": "差评", "好评": "好评"}, closed=True
    )
    assert [reader(cell) for cell in ("1", 0, "好评")] == ['["好评"]', '["差评"]', '["好评"]']
    with pytest.raises(UnknownLabel, match="'2' is not in the taxonomy"):
        reader("2")


def test_a_split_is_read_by_any_of_its_names() -> None:
    assert [cell_split(cell) for cell in ("test", "Valid", "dev", "验证集", "训练集", " ", None)] == [
        0,
        1,
        1,
        1,
        2,
        None,
        None,
    ]
    with pytest.raises(BadInput, match="'holdout'"):
        cell_split("holdout")


def test_numbers_become_text_as_people_write_them() -> None:
    assert [cell_text(cell) for cell in (3, 3.0, 2.5, True, None)] == ["3", "3", "2.5", "true", ""]


@pytest.mark.parametrize(
    "content",
    [
        "差评\n好评\n",
        "\ufeff差评\r\n好评\r\n",
        '{"name": "好评", "id": 1}\n{"name": "差评", "id": 0}\n',
        '\n[{"label": 0, "label_des": "差评"}, {"label": 1, "label_des": "好评"}]',
    ],
)
def test_class_names_are_read_from_lines_and_json(tmp_path: Path, content: str) -> None:
    path = tmp_path / "classes.txt"
    path.write_text(content, encoding="utf-8", newline="")
    assert read_label_names(path) == ("差评", "好评")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "empty"),
        ("好评\n\n差评\n", "line 2"),
        ("\n好评\n差评\n", "line 1"),
        ("好评\n差评\n好评\n", "line 3.*twice"),
        ('{"name": "好评", "id": 5}\n', "0 to 0"),
        ('{"name": "好评"}\n', "one number and one name"),
        ('{"name": ', "not JSON"),
    ],
)
def test_class_names_that_name_no_classes_are_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "classes.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(BadInput, match=reason):
        read_label_names(path)
