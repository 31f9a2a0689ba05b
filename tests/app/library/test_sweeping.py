"""Sweeps: what machines decide counts over imports, never over persons, and is undone as one."""

import pytest
from workshop import Workshop

from app.library.history import History, history
from app.library.labelling import label_sample, undo_event
from app.library.revisions import rename
from app.library.sweeping import Swept, apply_sweep, list_sweeps, undo_sweep
from app.library.taxonomies import change_taxonomy
from app.library.verifying import verify
from app.store.sweeps import SweptLabels
from app.store.tables import label_events
from model.errors import BadInput, UnknownSweep
from model.text import sample_id

TEXTS = ("房间大", "早餐凉", "床很软")


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,好评\n床很软,好评\n窗户小,差评\n"))
    workshop.load(workshop.write("b.csv", "text\n没标过的\n"), label=None)
    return workshop


def sweep(
    reviews: Workshop,
    said: dict[str, tuple[str, ...]],
    kind: str = "relabel",
    version: int = 1,
    judged: dict[str, tuple[str, ...]] | None = None,
) -> Swept:
    rows = [SweptLabels(sample_id(text), labels, 0.9) for text, labels in said.items()]
    return apply_sweep(
        reviews.engine,
        library="default",
        kind=kind,
        actor="linear@1a2b",
        rows=rows,
        judged=reviews.labels(row.sample_id for row in rows) if judged is None else judged,
        asked={"min_confidence": 0.8},
        outcome={},
        by="标注员甲",
        version=version,
    )


def of(reviews: Workshop, text: str) -> History:
    return history(reviews.engine, library="default", sample=text, is_text=True)


def labels(reviews: Workshop) -> dict[str, tuple[str, ...] | None]:
    found = {text: of(reviews, text).current for text in (*TEXTS, "没标过的")}
    assert list(verify(reviews.engine)) == []
    return {text: current.labels if current else None for text, current in found.items()}


def test_a_sweep_counts_over_imports_and_is_undone_and_brought_back_as_one(reviews: Workshop) -> None:
    before = labels(reviews)
    done = sweep(reviews, {"早餐凉": ("差评",), "没标过的": ("差评",)})
    assert (done.changed, done.kept) == (2, 0)
    after = before | {"早餐凉": ("差评",), "没标过的": ("差评",)}
    assert labels(reviews) == after
    undone = undo_sweep(reviews.engine, library="default", sweep=done.sweep, by="标注员乙")
    assert labels(reviews) == before
    undo_sweep(reviews.engine, library="default", sweep=undone.sweep, by="标注员乙")
    assert labels(reviews) == after
    assert [made.kind for made in list_sweeps(reviews.engine, "default")] == ["relabel", "undo", "undo"]


def test_a_drop_takes_the_label_away_and_the_sample_out_of_snapshots(reviews: Workshop) -> None:
    done = sweep(reviews, {"早餐凉": ()}, kind="drop")
    assert labels(reviews)["早餐凉"] is None
    assert "早餐凉" not in reviews.samples()
    undo_sweep(reviews.engine, library="default", sweep=done.sweep, by="标注员乙")
    assert reviews.samples()["早餐凉"].labels == ("好评",)


def test_a_persons_word_is_never_swept_over_before_or_after(reviews: Workshop) -> None:
    label_sample(reviews.engine, library="default", sample="房间大", is_text=True, labels=["好评"], by="标注员甲")
    done = sweep(reviews, {"房间大": ("差评",), "早餐凉": ("差评",)})
    assert (done.changed, done.kept) == (1, 1)
    assert labels(reviews)["房间大"] == ("好评",)
    label_sample(reviews.engine, library="default", sample="早餐凉", is_text=True, labels=["好评"], by="标注员甲")
    assert labels(reviews)["早餐凉"] == ("好评",)
    assert not of(reviews, "早餐凉").current.conflict  # type: ignore[union-attr]


def test_where_persons_have_spoken_about_all_nothing_is_written(reviews: Workshop) -> None:
    label_sample(reviews.engine, library="default", sample="房间大", is_text=True, labels=["好评"], by="标注员甲")
    events = reviews.count(label_events)
    with pytest.raises(BadInput, match="nothing to relabel"):
        sweep(reviews, {"房间大": ("差评",)})
    assert reviews.count(label_events) == events
    assert list_sweeps(reviews.engine, "default") == []


def test_a_word_that_was_withdrawn_does_not_keep_a_sweep_away(reviews: Workshop) -> None:
    said = label_sample(
        reviews.engine, library="default", sample="房间大", is_text=True, labels=["好评"], by="标注员甲"
    )
    undo_event(reviews.engine, said.event, by="标注员甲")
    assert sweep(reviews, {"房间大": ("差评",)}).changed == 1


def test_imports_that_come_after_a_sweep_count_against_it(reviews: Workshop) -> None:
    sweep(reviews, {"没标过的": ("差评",)})
    reviews.load(reviews.write("c.csv", "text,label\n没标过的,好评\n"))
    assert labels(reviews)["没标过的"] == ("好评",)


def test_an_event_of_a_sweep_that_was_undone_by_itself_stays_undone(reviews: Workshop) -> None:
    done = sweep(reviews, {"早餐凉": ("差评",), "床很软": ("差评",)})
    event = of(reviews, "早餐凉").sample.recorded[-1].event.id
    undo_event(reviews.engine, event, by="标注员甲")
    assert undo_sweep(reviews.engine, library="default", sweep=done.sweep, by="标注员乙").changed == 1
    with pytest.raises(BadInput, match=f"nothing of sweep {done.sweep} counts"):
        undo_sweep(reviews.engine, library="default", sweep=done.sweep, by="标注员乙")


def test_what_has_another_label_since_it_was_judged_is_left_out(reviews: Workshop) -> None:
    judged = reviews.labels(map(sample_id, TEXTS))
    sweep(reviews, {"早餐凉": ("差评",)})
    done = sweep(reviews, {"早餐凉": (), "床很软": ()}, kind="drop", judged=judged)
    assert (done.changed, done.kept) == (1, 1)
    assert labels(reviews)["早餐凉"] == ("差评",)
    assert labels(reviews)["床很软"] is None
    with pytest.raises(BadInput, match="it has other labels by now"):
        sweep(reviews, {"没标过的": ("差评",)}, judged={sample_id("没标过的"): ("好评",)})


def test_sweeps_of_an_older_taxonomy_and_unknown_ones_are_refused(reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", rename("差评", "不满"), by="标注员甲")
    with pytest.raises(BadInput, match="has become version"):
        sweep(reviews, {"早餐凉": ("差评",)}, version=1)
    with pytest.raises(UnknownSweep, match="has no sweep 7"):
        undo_sweep(reviews.engine, library="default", sweep=7, by="标注员甲")
    assert list_sweeps(reviews.engine, "default") == []
