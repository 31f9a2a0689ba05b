"""What each change makes of a taxonomy, and of the labels that were given before it."""

import re
from dataclasses import replace

import pytest

from app.library.revisions import Revise, Revision, add, describe, merge, move, remove, rename, split
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails
from model.errors import BadTaxonomy, UnknownLabel
from model.text import Normaliser
from model.types import Task, Taxonomy

FLAT = LibraryDefinition(
    name="评论",
    taxonomy=Taxonomy(Task.SINGLE, ("好评", "中评", "差评")),
    declared=True,
    label_sep=None,
    normaliser=Normaliser(),
    classes={"好评": ClassDetails(code="P", aliases=("正面",))},
)
GROWN = replace(FLAT, declared=False, taxonomy=Taxonomy(Task.SINGLE, ("中评", "好评", "差评")))
PATHS = replace(
    FLAT,
    taxonomy=Taxonomy(Task.HIERARCHICAL, ("公司/裁员", "公司/上市", "赛事/夺冠"), level_sep="/", multiple=True),
    classes={"公司": ClassDetails(description="公司的事")},
)


def labels(revision: Revision) -> tuple[str, ...]:
    return revision.definition.taxonomy.labels


def test_a_class_is_added_at_the_end_or_before_another_and_where_imports_add_some_in_their_order() -> None:
    assert labels(add("一般")(FLAT)) == ("好评", "中评", "差评", "一般")
    assert labels(add("一般", before="中评")(FLAT)) == ("好评", "一般", "中评", "差评")
    assert labels(add("一般")(GROWN)) == ("一般", "中评", "好评", "差评")


def test_a_renamed_class_keeps_its_place_and_its_old_name_as_an_alias() -> None:
    revision = rename("P", "满意")(FLAT)
    assert labels(revision) == ("满意", "中评", "差评")
    assert revision.definition.classes["满意"] == ClassDetails(code="P", aliases=("正面", "好评"))
    assert revision.meanings == {"好评": ("满意",)}
    back = rename("满意", "好评")(revision.definition)
    assert back.definition.classes["好评"].aliases == ("正面", "满意")


def test_a_branch_is_renamed_with_all_below_it_and_a_path_may_move_a_class() -> None:
    revision = rename("公司", "企业")(PATHS)
    assert labels(revision) == ("企业/裁员", "企业/上市", "赛事/夺冠")
    assert revision.definition.classes["企业"].description == "公司的事"
    assert revision.meanings == {"公司/裁员": ("企业/裁员",), "公司/上市": ("企业/上市",)}
    assert labels(rename("公司/裁员", "减员")(PATHS)) == ("公司/减员", "公司/上市", "赛事/夺冠")
    assert labels(rename("公司/裁员", "人事/裁员")(PATHS)) == ("人事/裁员", "公司/上市", "赛事/夺冠")


def test_classes_and_branches_move_under_another_parent_or_to_the_top() -> None:
    assert labels(move("公司/裁员", under="赛事")(PATHS)) == ("赛事/裁员", "公司/上市", "赛事/夺冠")
    assert labels(move("公司", under="赛事")(PATHS)) == ("赛事/公司/裁员", "赛事/公司/上市", "赛事/夺冠")
    assert labels(move("赛事/夺冠", under=None)(PATHS)) == ("公司/裁员", "公司/上市", "夺冠")


def test_a_branch_that_joins_another_takes_on_what_is_known_of_that() -> None:
    known = replace(PATHS, classes={"公司": ClassDetails(code="C"), "赛事": ClassDetails(code="S")})
    revision = rename("公司", "赛事")(known)
    assert labels(revision) == ("赛事/裁员", "赛事/上市", "赛事/夺冠")
    assert revision.definition.classes["赛事"] == ClassDetails(code="S")


def test_merged_classes_mean_what_they_become_and_leave_their_names() -> None:
    revision = merge(["好评", "中评"], into="不差")(FLAT)
    assert labels(revision) == ("不差", "差评")
    assert revision.meanings == {"好评": ("不差",), "中评": ("不差",)}
    assert revision.definition.classes == {"不差": ClassDetails(aliases=("好评", "P", "正面", "中评"))}
    among = merge(["中评"], into="正面")(FLAT)
    assert (labels(among), among.meanings) == (("好评", "差评"), {"中评": ("好评",)})
    assert among.definition.classes["好评"] == ClassDetails(code="P", aliases=("正面", "中评"))


def test_a_split_class_makes_room_for_its_parts_and_its_samples_wait_or_go_to_one() -> None:
    waiting = split("中评", into=["偏好", "偏差"])(FLAT)
    assert (labels(waiting), waiting.meanings) == (("好评", "偏好", "偏差", "差评"), {"中评": ()})
    settled = split("中评", into=["偏好", "偏差"], rest="偏差")(FLAT)
    assert settled.meanings == {"中评": ("偏差",)}
    kept = split("中评", into=["中评", "偏差"], rest="中评")(FLAT)
    assert (labels(kept), kept.meanings) == (("好评", "中评", "偏差", "差评"), {})
    assert labels(split("公司/裁员", into=["主动", "被动"])(PATHS))[:2] == ("公司/主动", "公司/被动")


def test_what_is_known_of_a_class_changes_piece_by_piece() -> None:
    revision = describe("好评", description="满意的评论")(FLAT)
    assert revision.definition.classes["好评"] == ClassDetails("P", "满意的评论", ("正面",))
    assert describe("好评", code="", aliases=["赞", "赞", " "])(FLAT).definition.classes["好评"] == ClassDetails(
        None, None, ("赞",)
    )
    assert describe("公司", description="")(PATHS).definition.classes == {}


def test_how_many_persons_review_a_class_survives_what_becomes_of_it() -> None:
    paired = describe("差评", reviewers=2)(FLAT)
    assert paired.asked == {"label": "差评", "reviewers": 2}
    known = paired.definition
    assert known.classes["差评"] == ClassDetails(reviewers=2)
    assert ClassDetails.from_json(known.classes["差评"].to_json()) == ClassDetails(reviewers=2)
    assert rename("差评", "不满意")(known).definition.classes["不满意"].reviewers == 2
    assert merge(["差评"], into="中评")(known).definition.classes["中评"].reviewers == 2
    assert merge(["中评"], into="差评")(known).definition.classes["差评"].reviewers == 2
    parts = split("差评", into=["卫生", "噪音"])(known).definition.classes
    assert (parts["卫生"].reviewers, parts["噪音"].reviewers) == (2, 2)
    assert describe("差评", description="不好")(known).definition.classes["差评"].reviewers == 2
    assert describe("差评", reviewers=1)(known).asked == {"label": "差评", "reviewers": 1}
    assert "差评" not in describe("差评", reviewers=1)(known).definition.classes
    branch = describe("公司", reviewers=2)(PATHS).definition
    assert rename("公司", "赛事")(branch).definition.classes["赛事"].reviewers == 2
    for reviewers in (0, 3):
        with pytest.raises(BadTaxonomy, match=f"{reviewers} reviewers: a class is reviewed by 1 person, or by 2"):
            describe("差评", reviewers=reviewers)(FLAT)


def test_a_branch_that_becomes_a_class_keeps_what_is_known_of_it() -> None:
    revision = add("公司", ClassDetails(code="C"))(PATHS)
    assert revision.definition.classes["公司"] == ClassDetails(code="C", description="公司的事")
    assert labels(revision) == (*PATHS.taxonomy.labels, "公司")


def test_what_is_said_of_a_class_is_cleaned_and_never_repeats_its_name() -> None:
    details = ClassDetails(code=" M1 ", description=" 不好不坏 ", aliases=("还行", " ", "一般", "M1", "还行"))
    revision = add("一般", details)(FLAT)
    assert revision.definition.classes["一般"] == ClassDetails("M1", "不好不坏", ("还行",))
    assert revision.asked == {
        "label": "一般",
        "code": "M1",
        "description": "不好不坏",
        "aliases": ["还行", "一般", "M1"],
    }
    assert describe("好评", code="", aliases=["", "赞"])(FLAT).asked == {"label": "好评", "aliases": ["赞"]}


def test_a_branch_may_be_called_by_its_code_or_an_alias() -> None:
    known = replace(PATHS, classes={"公司": ClassDetails(code="C", aliases=("企业",))})
    assert labels(rename("C", "单位")(known))[0] == "单位/裁员"
    assert labels(move("赛事/夺冠", under="企业")(known))[2] == "公司/夺冠"
    renamed = rename("C", "企业")(known)
    assert renamed.definition.classes["企业"] == ClassDetails(code="C")


def test_a_removed_class_leaves_its_samples_waiting() -> None:
    revision = remove("好评")(FLAT)
    assert (labels(revision), revision.meanings, revision.definition.classes) == (("中评", "差评"), {"好评": ()}, {})


@pytest.mark.parametrize(
    ("known", "change", "error", "message"),
    [
        (FLAT, add("好评"), BadTaxonomy, "there is a class '好评' already"),
        (FLAT, add("P"), BadTaxonomy, "it is another name of '好评'"),
        (FLAT, add(" "), BadTaxonomy, "name is empty"),
        (FLAT, add("长" * 201), BadTaxonomy, "has 201 characters, more than 200"),
        (FLAT, add("新", ClassDetails(code="正面")), BadTaxonomy, "'正面' would mean both"),
        (FLAT, describe("差评", aliases=["中评"]), BadTaxonomy, "'中评' would mean both '中评' and '差评'"),
        (FLAT, describe("差评", description="长" * 2001), BadTaxonomy, "2001 characters"),
        (FLAT, rename("好平", "满意"), UnknownLabel, "'好平' is not in the taxonomy"),
        (FLAT, rename("好评", "差评"), BadTaxonomy, "a class '差评' already; merge the two"),
        (FLAT, rename("好评", "好评"), BadTaxonomy, "stays what it is"),
        (FLAT, move("好评", under=None), BadTaxonomy, "has no levels"),
        (PATHS, move("公司", under="公司/裁员"), BadTaxonomy, "would be a circle"),
        (PATHS, move("公司", under="公司"), BadTaxonomy, "would be a circle"),
        (PATHS, move("公司", under="体育"), UnknownLabel, "'体育'"),
        (PATHS, move("公司", under=None), BadTaxonomy, "stays what it is"),
        (PATHS, remove("公司"), UnknownLabel, "is a branch, not a class; name one below it: 公司/裁员"),
        (PATHS, add("公司//新"), BadTaxonomy, "empty level"),
        (FLAT, merge(["好评"], into="好评"), BadTaxonomy, "nothing to merge"),
        (FLAT, merge(["好评", "差"], into="好评"), UnknownLabel, "'差'"),
        (FLAT, split("中评", into=["偏好"]), BadTaxonomy, "give two classes or more"),
        (FLAT, split("中评", into=["偏好", "偏差"], rest="好评"), BadTaxonomy, "rest goes to '好评'"),
        (FLAT, split("中评", into=["偏好", "P"]), BadTaxonomy, "another name of '好评'"),
    ],
)
def test_what_can_not_be_is_refused(
    known: LibraryDefinition, change: Revise, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message) if "(" in message else message):
        change(known)
