"""A taxonomy is changed by one event that says what it touches, can be undone, and loses no label."""

from contextlib import AbstractContextManager

import pytest
import sqlalchemy as sa
from workshop import Workshop

from app.library import importing
from app.library.declarations import read_declaration
from app.library.labelling import label_sample
from app.library.revisions import add, describe, merge, move, remove, rename, split
from app.library.taxonomies import (
    Change,
    Outcome,
    Touched,
    Undo,
    change_taxonomy,
    list_versions,
    preview_change,
    show_taxonomy,
)
from app.library.verifying import verify
from app.store.database import writing
from app.store.tables import audit_events, label_events
from model.errors import BadInput, BadTaxonomy, UnknownLabel
from model.types import Choice

ROWS = "text,label\n房间大,好评\n早餐凉,差评\n还可以,中评\n隔音差,差评\n"


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    return workshop


def change(workshop: Workshop, revise: Change, library: str = "default") -> Touched:
    touched = change_taxonomy(workshop.engine, library, revise, by="标注员甲")
    assert list(verify(workshop.engine, library=library)) == []
    return touched


def labels(workshop: Workshop) -> dict[str, str]:
    return {text: "+".join(sample.labels) for text, sample in workshop.samples().items()}


def say(workshop: Workshop, text: str, *given: str) -> None:
    label_sample(workshop.engine, library="default", sample=text, is_text=True, labels=given, by="标注员甲")


def test_a_preview_tells_samples_and_snapshots_and_writes_nothing(reviews: Workshop) -> None:
    frozen = reviews.freeze().snapshot
    before = show_taxonomy(reviews.engine, "default")
    touched = preview_change(reviews.engine, "default", rename("差评", "不满意"))
    assert (touched.version, touched.samples, touched.carrying, touched.unlabelled) == (2, 2, {"差评": 2}, 0)
    assert [(snapshot.hash, snapshot.samples) for snapshot in touched.snapshots] == [(frozen.hash, 2)]
    assert show_taxonomy(reviews.engine, "default") == before
    assert preview_change(reviews.engine, "default", remove("差评")).unlabelled == 2


def test_renamed_merged_and_split_classes_show_in_current_labels_and_snapshots_and_no_event_changes(
    reviews: Workshop,
) -> None:
    before, frozen = reviews.count(label_events), reviews.freeze().snapshot
    change(reviews, rename("差评", "不满意"))
    assert labels(reviews) == {"房间大": "好评", "早餐凉": "不满意", "还可以": "中评", "隔音差": "不满意"}
    change(reviews, merge(["中评", "不满意"], into="不满意"))
    assert labels(reviews)["还可以"] == "不满意"
    change(reviews, split("不满意", into=["卫生", "吃住"]))
    assert labels(reviews) == {"房间大": "好评"}
    say(reviews, "早餐凉", "吃住")
    assert labels(reviews) == {"房间大": "好评", "早餐凉": "吃住"}
    for _ in range(3):
        change(reviews, Undo())
    assert labels(reviews) == {"房间大": "好评", "早餐凉": "差评", "还可以": "中评", "隔音差": "差评"}
    assert reviews.freeze().snapshot.hash == frozen.hash
    assert reviews.count(label_events) == before + 1
    assert reviews.count(audit_events) == 6


def test_files_that_still_use_an_old_name_or_a_code_are_understood_and_the_same_file_adds_nothing(
    reviews: Workshop,
) -> None:
    change(reviews, rename("差评", "不满意"))
    events = reviews.count(label_events)
    assert reviews.load(reviews.home / "a.csv").added == 0
    assert reviews.count(label_events) == events
    reviews.load(reviews.write("b.csv", "text,label\n床太硬,差评\n窗很大,好评\n"))
    assert labels(reviews)["床太硬"] == "不满意"
    say(reviews, "窗很大", "差评")
    assert labels(reviews)["窗很大"] == "不满意"


def test_a_name_that_is_given_anew_means_the_new_class_and_old_labels_the_old_one(reviews: Workshop) -> None:
    change(reviews, remove("差评"))
    assert labels(reviews) == {"房间大": "好评", "还可以": "中评"}
    change(reviews, add("差评"))
    assert labels(reviews) == {"房间大": "好评", "还可以": "中评"}
    reviews.load(reviews.write("b.csv", "text,label\n早餐凉,差评\n"))
    assert labels(reviews) == {"房间大": "好评", "还可以": "中评", "早餐凉": "差评"}


def test_classes_that_imports_brought_since_survive_an_undo_of_an_earlier_change(reviews: Workshop) -> None:
    change(reviews, rename("差评", "不满意"))
    reviews.load(reviews.write("b.csv", "text,label\n一般般,一般\n"))
    change(reviews, Undo())
    assert show_taxonomy(reviews.engine, "default")[1] == {"一般": 1, "中评": 1, "好评": 1, "差评": 2}
    assert [version.kind for version in list_versions(reviews.engine, "default")] == [
        *("import", "rename", "import", "undo")
    ]


def test_changes_are_undone_from_the_last_to_the_first_and_redone(reviews: Workshop) -> None:
    change(reviews, rename("差评", "不满意"))
    change(reviews, merge(["中评"], into="好评"))
    with pytest.raises(BadTaxonomy, match=r"version 3 \(merge\) came after version 2; undo that first"):
        change(reviews, Undo(2))
    change(reviews, Undo())
    with pytest.raises(BadTaxonomy, match="version 3 is undone already, by version 4; undo that to bring it back"):
        change(reviews, Undo(3))
    say(reviews, "还可以", "中评")
    change(reviews, Undo(4))
    assert labels(reviews)["还可以"] == "好评"
    change(reviews, Undo())
    assert labels(reviews)["还可以"] == "中评"
    change(reviews, Undo())
    assert labels(reviews)["早餐凉"] == "差评"
    with pytest.raises(BadTaxonomy, match="no change of the taxonomy to undo"):
        change(reviews, Undo())
    for version, message in ((1, "version 1 is the taxonomy's first"), (9, "no version 9")):
        with pytest.raises(BadTaxonomy, match=message):
            change(reviews, Undo(version))


def test_labels_given_in_terms_that_were_taken_back_wait_where_nobody_knows_the_old_one(reviews: Workshop) -> None:
    change(reviews, merge(["好评", "中评"], into="不差"))
    say(reviews, "隔音差", "不差")
    change(reviews, Undo())
    assert labels(reviews) == {"房间大": "好评", "早餐凉": "差评", "还可以": "中评"}
    change(reviews, split("好评", into=["很好", "较好"], rest="较好"))
    say(reviews, "隔音差", "很好")
    change(reviews, Undo())
    assert labels(reviews)["隔音差"] == "好评"


def test_what_an_undo_would_do_is_told_sample_by_sample(reviews: Workshop) -> None:
    change(reviews, merge(["好评", "中评"], into="不差"))
    say(reviews, "早餐凉", "不差")
    undoing = preview_change(reviews.engine, "default", Undo())
    assert (undoing.samples, undoing.unlabelled) == (3, 1)
    assert set(undoing.outcomes) == {
        Outcome(("不差",), ("好评",), 1),
        Outcome(("不差",), ("中评",), 1),
        Outcome(("不差",), (), 1),  # said since, and nobody knows which of the two
    }
    change(reviews, Undo())
    redoing = preview_change(reviews.engine, "default", Undo(3))
    assert Outcome((), ("不差",), 1) in redoing.outcomes
    assert (redoing.samples, redoing.unlabelled) == (3, 0)


def test_an_undo_is_refused_where_samples_could_not_keep_their_labels(workshop: Workshop) -> None:
    paths = workshop.write("a.txt", "公司/裁员\n公司/上市\n赛事/夺冠\n")
    choices = [Choice.SINGLE, Choice.MULTI]
    change(workshop, read_declaration(paths, level_sep="/", choices=choices))
    workshop.load(workshop.write("a.csv", "text,label\n裁员后上市,公司/裁员\n"))
    change(workshop, move("公司/上市", under="赛事"))
    say(workshop, "裁员后上市", "赛事/夺冠", "赛事/上市")
    with pytest.raises(BadTaxonomy, match="1 samples could not keep their labels"):
        change(workshop, Undo())


def test_merging_ends_a_conflict_and_undo_brings_it_back(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n还可以,中评\n还可以,好评\n早餐凉,差评\n"))
    assert workshop.freeze().conflicts == 1
    change(workshop, merge(["中评"], into="好评"))
    assert workshop.freeze().conflicts == 0
    change(workshop, Undo())
    assert workshop.freeze().conflicts == 1


def test_a_declared_taxonomy_takes_the_place_of_a_grown_one(reviews: Workshop) -> None:
    classes = reviews.write("classes.csv", "名称,编码,别名\n好评,P,\n差评,N,\n一般,M,中评\n")
    change(reviews, read_declaration(classes))
    library, counts = show_taxonomy(reviews.engine, "default")
    assert (library.definition.declared, counts) == (True, {"好评": 1, "差评": 2, "一般": 1})
    with pytest.raises(BadTaxonomy, match="like that already"):
        change(reviews, read_declaration(classes))
    rejected = reviews.load(reviews.write("b.csv", "text,label\n床太硬,N\n窗大,还行\n")).rejected
    assert (rejected, labels(reviews)["床太硬"]) == (1, "差评")
    lacking = reviews.write("less.csv", "名称\n好评\n差评\n")
    with pytest.raises(BadTaxonomy, match="lacks 一般, which library 'default' has"):
        change(reviews, read_declaration(lacking))
    change(reviews, Undo())
    assert not show_taxonomy(reviews.engine, "default")[0].definition.declared


def test_a_declaration_makes_a_library_whose_levels_choose_one_or_several(workshop: Workshop) -> None:
    table = workshop.write("classes.csv", "name,parent\n公司,\n裁员,公司\n上市,公司\n赛事,\n夺冠,赛事\n")
    declaration = read_declaration(table, choices=[Choice.SINGLE, Choice.MULTI])
    touched = change(workshop, declaration, library="events")
    assert touched.revision.definition.taxonomy.labels == ("公司/裁员", "公司/上市", "赛事/夺冠")
    rows = "text,label\n裁员后上市,公司/裁员|公司/上市\n公司夺冠,公司/裁员|赛事/夺冠\n"
    imported = workshop.load(workshop.write("a.csv", rows), library="events", label_sep="|")
    assert (imported.added, imported.rejected) == (1, 1)
    with pytest.raises(
        BadTaxonomy, match="1 samples could not keep their labels: '公司' and '赛事' both stand under the root"
    ):
        change(workshop, move("公司/上市", under="赛事"), library="events")


def test_nothing_is_written_when_a_change_is_refused(reviews: Workshop) -> None:
    with pytest.raises(UnknownLabel):
        change(reviews, rename("好平", "满意"))
    assert [version.version for version in list_versions(reviews.engine, "default")] == [1]


def test_an_alias_that_an_import_made_a_class_meanwhile_is_not_brought_back(reviews: Workshop) -> None:
    change(reviews, describe("差评", code="01", aliases=["不满意", "很差"]))
    change(reviews, remove("差评"))
    reviews.load(reviews.write("b.csv", "text,label\n窗很小,不满意\n"))
    change(reviews, Undo())
    reviews.load(reviews.write("c.csv", "text,label\n门很旧,不满意\n床很软,很差\n桌子晃,01\n"))
    found = labels(reviews)
    assert [found[text] for text in ("早餐凉", "窗很小", "门很旧", "床很软", "桌子晃")] == [
        *("差评", "不满意", "不满意", "差评", "差评")
    ]
    change(reviews, add("一般"))


def test_an_import_declares_no_class_by_another_name_of_a_class(reviews: Workshop) -> None:
    change(reviews, rename("差评", "不满意"))
    path = reviews.write("b.csv", "text,label\n窗很小,差评\n")
    with pytest.raises(BadTaxonomy, match="other names of classes: '差评' of '不满意'"):
        reviews.load(path, names=("好评", "中评", "不满意", "差评"))
    reviews.load(path, names=("好评", "中评", "不满意"))
    assert labels(reviews)["窗很小"] == "不满意"


def test_another_name_of_a_branch_does_not_become_a_class(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n公司裁员,公司/裁员\n"), level_sep="/")
    change(workshop, describe("公司", code="C"))
    assert workshop.load(workshop.write("b.csv", "text,label\n公司上市,公司/上市\n公司搬家,C\n")).rejected == 1
    assert list(show_taxonomy(workshop.engine, "default")[1]) == ["公司/上市", "公司/裁员"]


def test_a_class_that_is_removed_while_a_file_is_read_does_not_come_back(
    reviews: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_first(connection: sa.Connection) -> AbstractContextManager[None]:
        monkeypatch.undo()
        change(reviews, remove("差评"))
        return writing(connection)

    monkeypatch.setattr(importing, "writing", remove_first)
    with pytest.raises(BadInput, match="was changed while its files were being read"):
        reviews.load(reviews.write("b.csv", "text,label\n床太硬,差评\n"))
    assert list(show_taxonomy(reviews.engine, "default")[1]) == ["中评", "好评"]
