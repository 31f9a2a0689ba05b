"""A taxonomy is declared by a list of names or a table, flat or with parents."""

from pathlib import Path

import pytest

from app.library.declarations import read_declaration
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails
from model.errors import BadInput, BadTaxonomy
from model.types import Choice, Task


def declared(tmp_path: Path, content: str, name: str = "classes.csv", **options: object) -> LibraryDefinition:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return read_declaration(path, **options).definition("库", None)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["classes.txt", "classes.csv"])
def test_a_list_of_names_is_a_flat_taxonomy_in_its_order(tmp_path: Path, name: str) -> None:
    taxonomy = declared(tmp_path, "好评\n中评\n\n差评\n", name).taxonomy
    assert (taxonomy.task, taxonomy.labels, taxonomy.multiple) == (Task.SINGLE, ("好评", "中评", "差评"), False)
    assert declared(tmp_path, "好评\n差评\n", name, task=Task.MULTI).taxonomy.multiple


def test_a_table_tells_code_description_and_aliases(tmp_path: Path) -> None:
    found = declared(tmp_path, "名称,编码,说明,别名\n好评,P,满意的,正面；赞\n差评,N,,\n")
    assert found.taxonomy.labels == ("好评", "差评")
    assert found.classes == {
        "好评": ClassDetails("P", "满意的", ("正面", "赞")),
        "差评": ClassDetails("N", None, ()),
    }


def test_a_table_tells_which_classes_two_persons_review(tmp_path: Path) -> None:
    found = declared(tmp_path, "名称,复核人数\n好评,\n中评,1\n差评,２\n")
    assert {label: details.reviewers for label, details in found.classes.items()} == {"好评": 1, "中评": 1, "差评": 2}
    with pytest.raises(BadInput, match="line 2: '三' reviewers; a class is reviewed by 1 person"):
        declared(tmp_path, "名称,复核人数\n好评,三\n")


def test_the_header_of_a_list_of_names_is_no_class(tmp_path: Path) -> None:
    assert declared(tmp_path, "名称\n好评\n差评\n", "classes.txt").taxonomy.labels == ("好评", "差评")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"好评": 1}\n', r"has no column of names \(好评\); head it 名称 or name"),
        ('{"name": ["好评"]}\n', "line 1: the name is a list"),
    ],
)
def test_json_that_names_no_class_is_refused(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        declared(tmp_path, content, "classes.jsonl")


def test_a_folder_declares_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        read_declaration(tmp_path)


def test_json_objects_are_a_table_too(tmp_path: Path) -> None:
    found = declared(
        tmp_path, '{"name": "好评", "aliases": ["赞", "棒"]}\n{"name": "差评", "aliases": []}\n', "a.jsonl"
    )
    assert found.classes["好评"].aliases == ("赞", "棒")


def test_parents_by_name_or_code_make_paths_of_which_the_ends_are_classes(tmp_path: Path) -> None:
    table = "name,parent,code\n裁员,公司,\n公司,,C\n上市,C,\n人数,裁员,\n夺冠,赛事,\n赛事,,\n"
    found = declared(tmp_path, table, choices=[Choice.SINGLE, Choice.MULTI])
    assert found.taxonomy.labels == ("公司/上市", "公司/裁员/人数", "赛事/夺冠")
    assert (found.taxonomy.task, found.taxonomy.level_sep, found.taxonomy.multiple) == (Task.HIERARCHICAL, "/", True)
    assert found.classes["公司"].code == "C"
    paths = declared(tmp_path, "公司-裁员\n公司-上市\n", level_sep="-").taxonomy
    assert (paths.labels, paths.multiple) == (("公司-裁员", "公司-上市"), False)


@pytest.mark.parametrize(
    ("content", "options", "error", "message"),
    [
        ("name\n好评\n差评\n好评\n", {}, BadTaxonomy, "line 4: the class '好评' stands twice"),
        ("name,parent\n甲,乙\n乙,丙\n丙,甲\n", {}, BadTaxonomy, "stand in a circle: 甲 → 乙 → 丙 → 甲"),
        ("name,parent\n甲,甲\n", {}, BadTaxonomy, "circle: 甲 → 甲"),
        ("name,parent\n甲,乙\n", {}, BadTaxonomy, "line 2: the parent '乙' of '甲' is not declared"),
        ("name,parent\n甲,丙\n丙,一\n丙,二\n一,\n二,\n", {}, BadTaxonomy, "could be any of 2 classes"),
        ("name,parent\n甲/一,乙\n乙,\n", {}, BadTaxonomy, "which parts the levels"),
        ("name,parent\n甲,乙\n乙,\n", {"task": Task.SINGLE}, BadTaxonomy, "task single has no levels"),
        ("name,code\n,P\n", {}, BadInput, "line 2: the class has no name"),
        ("code,parent\nP,Q\n", {}, BadInput, "no column of names"),
        ("name\n", {}, BadInput, "declares no class"),
        ("公司-裁员\n", {"level_sep": ""}, BadTaxonomy, "--level-sep is empty"),
    ],
)
def test_what_can_not_be_declared_says_where_and_why(
    tmp_path: Path, content: str, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        declared(tmp_path, content, **options)
