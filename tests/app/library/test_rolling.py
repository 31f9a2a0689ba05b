"""A library goes back to any of its snapshots, with the same hash, and forth again; no event is lost."""

import pytest
from workshop import Workshop

from app.library.history import history
from app.library.labelling import label_sample, undo_event
from app.library.revisions import merge, rename
from app.library.rolling import RolledBack, preview_rollback, roll_back
from app.library.taxonomies import Undo, change_taxonomy, list_versions
from app.library.verifying import verify
from app.store.tables import label_events, snapshots
from model.errors import BadInput, BadSnapshot, BadTaxonomy

ROWS = "text,label,split\n房间大,好评,\n早餐凉,差评,\n还可以,中评,\n"


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS), split="split")
    return workshop


def back(workshop: Workshop, snapshot: str | None) -> RolledBack:
    done = roll_back(workshop.engine, "default", snapshot, by="标注员甲")
    assert list(verify(workshop.engine, library="default")) == []
    return done


def say(workshop: Workshop, text: str, label: str) -> int:
    return label_sample(
        workshop.engine, library="default", sample=text, is_text=True, labels=[label], by="标注员甲"
    ).event


def hash_of(workshop: Workshop) -> str:
    return workshop.freeze().snapshot.hash


def test_imports_words_undos_and_changes_of_classes_are_rolled_back_and_the_snapshot_is_the_same(
    reviews: Workshop,
) -> None:
    frozen = hash_of(reviews)
    # of the same group as 房间大, and protected: while it counts, both stand in test
    reviews.load(reviews.write("b.csv", "text,label,split\n房间大！,一般,test\n窗很小,差评,\n"), split="split")
    undo_event(reviews.engine, say(reviews, "早餐凉", "好评"), by="标注员甲")
    undo_event(reviews.engine, 1, by="标注员甲")
    change_taxonomy(reviews.engine, "default", merge(["中评", "好评"], into="不差"), by="标注员甲")
    say(reviews, "窗很小", "不差")
    events, lived = reviews.count(label_events), hash_of(reviews)
    assert preview_rollback(reviews.engine, "default", frozen[:6]).events == 6
    done = back(reviews, frozen[:6])
    assert (done.events, done.samples, done.after.labels) == (6, 5, ("中评", "好评", "差评"))
    assert hash_of(reviews) == frozen
    assert reviews.count(label_events) == events
    again = back(reviews, None)
    assert (again.events, again.after.labels) == (6, ("一般", "不差", "差评"))
    assert hash_of(reviews) == lived


def test_what_is_said_after_a_rollback_counts_and_survives_its_undoing(reviews: Workshop) -> None:
    frozen = hash_of(reviews)
    change_taxonomy(reviews.engine, "default", rename("差评", "不满意"), by="标注员甲")
    say(reviews, "还可以", "不满意")
    back(reviews, frozen)
    say(reviews, "还可以", "好评")
    say(reviews, "房间大", "差评")
    assert reviews.samples()["还可以"].labels == ("好评",)
    back(reviews, None)
    assert {text: sample.labels[0] for text, sample in reviews.samples().items()} == {
        "房间大": "不满意",
        "早餐凉": "不满意",
        "还可以": "好评",
    }


def test_rolled_back_events_are_shown_as_such_and_can_not_be_undone(reviews: Workshop) -> None:
    frozen = hash_of(reviews)
    event = say(reviews, "房间大", "差评")
    back(reviews, frozen)
    found = history(reviews.engine, library="default", sample="房间大", is_text=True)
    assert [recorded.rolled_back for recorded in found.sample.recorded] == [False, True]
    assert reviews.samples()["房间大"].labels == ("好评",)
    with pytest.raises(BadInput, match=f"event {event} was rolled back"):
        undo_event(reviews.engine, event, by="标注员甲")


def test_a_file_imported_again_after_a_rollback_counts_again(workshop: Workshop) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n"))
    frozen = hash_of(workshop)
    workshop.load(workshop.write("b.csv", "text,label\n早餐凉,好评\n"))
    lived = hash_of(workshop)
    back(workshop, frozen)
    assert workshop.load(workshop.home / "b.csv").added == 0
    assert list(verify(workshop.engine)) == []
    assert hash_of(workshop) == lived


def test_rollbacks_follow_one_another_and_are_undone_from_the_last(reviews: Workshop) -> None:
    first = hash_of(reviews)
    say(reviews, "房间大", "差评")
    second = hash_of(reviews)
    say(reviews, "还可以", "差评")
    third = hash_of(reviews)
    back(reviews, second)
    back(reviews, first)
    assert hash_of(reviews) == first
    back(reviews, None)
    assert hash_of(reviews) == second
    back(reviews, None)
    assert hash_of(reviews) == third
    with pytest.raises(BadInput, match="no rollback to undo"):
        back(reviews, None)


def test_what_can_not_be_rolled_back_is_refused_and_changes_nothing(reviews: Workshop) -> None:
    frozen = hash_of(reviews)
    with pytest.raises(BadInput, match=f"as it was in snapshot {frozen}"):
        back(reviews, frozen)
    with pytest.raises(BadSnapshot, match="'ffff' begins no snapshot on record of library 'default'"):
        back(reviews, "ffff")
    say(reviews, "房间大", "差评")
    hash_of(reviews)
    for no_hash in ("", "abc", "很好", frozen.upper() + "0"):
        with pytest.raises(BadSnapshot, match="is not a hash"):
            back(reviews, no_hash)
    with reviews.engine.begin() as connection:
        connection.execute(snapshots.update().values(last_event=None))
    with pytest.raises(BadSnapshot, match="frozen by an earlier wenlei"):
        back(reviews, frozen)
    assert len(list_versions(reviews.engine, "default")) == 1


def test_a_rollback_is_not_undone_as_a_change_of_the_taxonomy(reviews: Workshop) -> None:
    frozen = hash_of(reviews)
    say(reviews, "房间大", "差评")
    back(reviews, frozen)
    with pytest.raises(BadTaxonomy, match="belongs to a rollback"):
        change_taxonomy(reviews.engine, "default", Undo(), by="标注员甲")


def test_the_undoing_of_a_rollback_is_not_undone_as_a_change_of_the_taxonomy(reviews: Workshop) -> None:
    frozen = hash_of(reviews)
    reviews.load(reviews.write("b.csv", "text,label\n窗很小,一般\n"))
    back(reviews, frozen)
    back(reviews, None)
    undoing = list_versions(reviews.engine, "default")[-1].version
    with pytest.raises(BadTaxonomy, match=f"version {undoing} undid a rollback; roll back again"):
        change_taxonomy(reviews.engine, "default", Undo(undoing), by="标注员甲")
    assert reviews.samples()["窗很小"].labels == ("一般",)
