"""A dry run: what files are taken for, the guessed roles, the first rows as they would be stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.library.definition import ImportOptions
from app.library.formats import Format
from app.library.guessing import Role, column_facts, guess_roles
from app.library.previewing import Preview, preview_files
from app.library.rows import Columns
from app.library.tables import Reading
from app.store.libraries import LibraryDefinition
from model.text import Normaliser
from model.types import Task, Taxonomy


def look(*paths: Path, known: LibraryDefinition | None = None, **columns: Any) -> list[Preview]:
    return preview_files(
        list(paths),
        options=ImportOptions(library="default"),
        known=known,
        columns=Columns(**columns),
        reading=Reading(),
    )


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"id": [1, 2, 3], "内容": ["房间很好", "早餐少", "安静"], "类别": ["a", "b", "a"]}, ("内容", "类别", None)),
        ({"a": ["0", "1", "0"], "b": ["这家店的房间很干净", "早餐太少了，不会再来", "前台很热情"]}, ("b", "a", None)),
        ({"c": ["好评"] * 6 + ["差评"] * 6, "d": [f"第{n}位客人说的话" for n in range(12)]}, ("d", "c", None)),
        ({"x": ["train", "dev", "test"], "y": ["很好的一天", "不好的一天", "一般的一天"]}, ("y", None, "x")),
        ({"t": ["甲乙丙丁", "戊己庚辛"], "l": [["a", "b"], ["a"]]}, ("t", "l", None)),
        ({"n": [1.5, 2.5]}, (None, None, None)),
    ],
)
def test_roles_follow_from_names_and_content(columns: dict[str, list[Any]], expected: tuple[str | None, ...]) -> None:
    roles = guess_roles([column_facts(name, cells) for name, cells in columns.items()])
    names = {role: name for name, role in roles.items()}
    assert (names.get(Role.TEXT), names.get(Role.LABEL), names.get(Role.SPLIT)) == expected


def test_a_preview_shows_what_would_be_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    rows = "类别;内容\n好评;ＷＩＦＩ  很快\n好评;WIFI 很快\n;没有标签的一条评论\n差评;早餐太少，房间太吵\n"
    path.write_bytes(rows.encode("gb18030"))
    (shown,) = look(path)
    assert (shown.table.format, shown.table.encoding, shown.table.delimiter) == (Format.CSV, "gb18030", ";")
    assert (shown.role("内容"), shown.role("类别")) == (Role.TEXT, Role.LABEL)
    assert (shown.read, shown.duplicates, shown.rejected) == (4, 1, 1)
    assert shown.labels == {"好评": 2, "差评": 1}
    assert [row.text for row in shown.rows] == ["WIFI 很快", "WIFI 很快", "早餐太少，房间太吵"]
    assert shown.rejects == ["a.csv, line 4: the label is empty"]


def test_columns_that_are_asked_for_go_before_guesses(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label,备注\n很好,好评,这一条备注写得特别长\n", encoding="utf-8")
    (shown,) = look(path, text="备注", label="text")
    assert (shown.role("备注"), shown.role("text"), shown.role("label")) == (Role.TEXT, Role.LABEL, None)
    (wrong,) = look(path, text="正文")
    assert wrong.problem is not None
    assert "no column '正文'" in wrong.problem


def test_a_declared_taxonomy_rejects_in_a_preview_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n很好,好评\n还行,中评\n", encoding="utf-8")
    taxonomy = Taxonomy(Task.SINGLE, ("好评", "差评"))
    known = LibraryDefinition("default", taxonomy, declared=True, label_sep=None, normaliser=Normaliser())
    (shown,) = look(path, known=known)
    assert (shown.rejected, shown.labels) == (1, {"好评": 1})
    assert "'中评' is not in the taxonomy" in shown.rejects[0]


def test_annotators_are_shown(tmp_path: Path) -> None:
    result = [{"from_name": "情感", "type": "choices", "value": {"choices": ["好评"]}}]
    tasks = [
        {"data": {"text": f"第{n}条"}, "annotations": [{"completed_by": "li", "result": result}]} for n in range(3)
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    (shown,) = look(path)
    assert shown.table.format is Format.LABEL_STUDIO
    assert (shown.role("text"), shown.role("情感")) == (Role.TEXT, Role.LABEL)
    assert {row.actor for row in shown.rows} == {"li"}
