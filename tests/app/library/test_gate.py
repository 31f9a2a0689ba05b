"""The gate on real libraries: what is accepted under the bound, what is written, and what goes to review."""

from pathlib import Path

import pytest
from workshop import Workshop

from app.library.gate.running import apply
from app.library.history import history
from app.library.labelling import label_sample
from app.library.shapes.gate import gate_report, warnings
from app.library.sweeping import apply_sweep, list_sweeps, undo_sweep
from app.library.verifying import verify
from app.store.sweeps import SweptLabels
from app.store.tables import label_events
from model.errors import BadInput, BadTaxonomy
from model.runtime.onnx import OnnxClassifier
from model.text import sample_id
from model.types import Task, Taxonomy
from tests.app.library.gates import WORDS, Gate
from tests.gating import keyword_bundle, made_up


def test_what_the_model_knows_is_accepted_and_the_rest_goes_to_review(gate: Gate) -> None:
    weighed = gate.weigh(gate.freeze())
    done = gate.apply(weighed)
    right = dict(made_up(200, WORDS, seed=4))
    accepted = {text: label for text, label in right.items() if text not in gate.left()}
    assert 100 < len(accepted) == done.accepted < 170
    wrong = 0
    for text, label in accepted.items():
        current = history(gate.workshop.engine, library="default", sample=text, is_text=True).current
        assert current is not None
        wrong += current.labels != (label,)
    assert wrong <= 0.05 * len(accepted)
    queue = gate.queue()
    assert set(queue) == {sample_id(text) for text in gate.left()}
    assert done.queued == len(queue)
    for item in queue.values():
        assert item.reason == "unsure"
        assert item.value == pytest.approx(1 - item.confidence)
        assert item.proposed in ('["好评"]', '["差评"]')
        assert item.proposed_by == weighed.model
    assert list(verify(gate.workshop.engine)) == []


def test_the_whole_report_is_kept_with_the_sweep_which_is_undone_as_one(gate: Gate) -> None:
    weighed = gate.weigh(gate.freeze())
    before = gate.left()
    done = gate.apply(weighed, review=False)
    assert done.queued is None
    assert gate.queue() == {}
    (sweep,) = list_sweeps(gate.workshop.engine, "default")
    assert (sweep.kind, sweep.by, sweep.actor) == ("gate", "标注员甲", weighed.model)
    assert sweep.asked == {
        "max_error": 0.05,
        "confidence": 0.95,
        "per_class": False,
        "calibration": gate.snapshot,
        "split": "test",
    }
    assert sweep.outcome["changed"] == done.accepted
    assert sweep.outcome["calibration"]["samples"] == 400
    (rule,) = sweep.outcome["rules"]
    assert rule["upper"] <= 0.05
    assert rule["accepted"] == done.accepted
    assert sweep.note is not None
    assert "at most 0.05 of the accepted labels are wrong" in sweep.note
    assert done.sweep == sweep.id
    undo_sweep(gate.workshop.engine, library="default", sweep=sweep.id, by="标注员乙")
    assert gate.left() == before


def test_weighing_alone_writes_nothing_and_the_same_again_gives_the_same(gate: Gate) -> None:
    classifier = gate.freeze()
    events = gate.workshop.count(label_events)
    assert gate_report(gate.weigh(classifier)) == gate_report(gate.weigh(classifier))
    assert gate.workshop.count(label_events) == events
    assert gate.queue() == {}


def test_a_second_run_makes_the_bound_hold_for_both_and_is_not_fooled_by_what_the_first_left(gate: Gate) -> None:
    classifier = gate.freeze()
    first = gate.weigh(classifier)
    done = gate.apply(first)
    again = gate.weigh(classifier)
    assert set(again.pool.ids) == {sample_id(text) for text in gate.left()}
    assert again.before == done.accepted
    assert gate_report(again)["warnings"] == []  # with what was accepted before, it is the same pool
    assert not again.decision.accepted.any()
    (rule,) = again.decision.rules
    assert rule.chosen.best == first.decision.rules[0].chosen.best
    repeated = gate.apply(again)
    assert (repeated.sweep, repeated.queued) == (None, len(again.pool.ids))
    looser = gate.weigh(classifier, max_error=0.3)
    assert looser.decision.accepted.any()
    assert f"with the {done.accepted} of before that these rules accept" in gate_report(looser)["guarantee"]


def test_the_bound_is_not_stated_of_what_an_earlier_run_accepted_under_a_looser_one(gate: Gate) -> None:
    classifier = gate.freeze()
    loose = gate.apply(gate.weigh(classifier, max_error=0.3))
    gate.pool((text for text, _ in made_up(200, WORDS, seed=5)), "more.csv")
    strict = gate.weigh(classifier, max_error=0.05)
    assert strict.before == loose.accepted
    assert strict.decision.accepted.any()
    assert 0 < strict.decision.earlier < loose.accepted
    assert f"with the {strict.decision.earlier} of before" in gate_report(strict)["guarantee"]


def test_labels_of_before_that_this_model_contradicts_are_counted(gate: Gate) -> None:
    classifier = gate.freeze()
    first = gate.weigh(classifier)
    sure = [index for index, accepted in enumerate(first.decision.accepted.tolist()) if accepted]
    said = [(first.pool.ids[index], first.sets[first.pool.sets[index]]) for index in sure[:5]]
    other = {("好评",): ("差评",), ("差评",): ("好评",)}
    rows = [
        SweptLabels(sample, other[labels] if place < 3 else labels, 0.9) for place, (sample, labels) in enumerate(said)
    ]
    apply_sweep(
        gate.workshop.engine,
        library="default",
        kind="gate",
        actor="别的@1",
        rows=rows,
        judged={},
        asked={},
        outcome={},
        by="标注员甲",
        version=first.version,
    )
    again = gate.weigh(classifier)
    assert (again.before, again.decision.earlier, again.contradicted) == (5, 5, 3)
    assert any("another model gave before, 3 are not what this one says" in told for told in warnings(again))
    assert first.contradicted == 0
    assert not any("another model" in told for told in warnings(first))


def test_too_few_samples_accept_nothing_and_say_how_many_it_takes(gate: Gate) -> None:
    weighed = gate.weigh(gate.freeze(), max_error=0.005)
    report = gate_report(weighed)
    (rule,) = report["rules"]
    assert (rule["threshold"], rule["of"], rule["needed"]) == (None, 400, 598)
    assert rule["why"] is not None
    assert "there are 400 calibration samples, and it takes at least 598 without an error" in rule["why"]
    assert "these data would support a max_error of 0.0" in rule["why"]
    assert "nothing is guaranteed" in report["guarantee"]
    done = gate.apply(weighed)
    assert (done.sweep, done.accepted, done.queued) == (None, 0, 200)
    assert list_sweeps(gate.workshop.engine, "default") == []


def test_a_model_that_is_wrong_accepts_nothing_and_says_how_wrong(gate: Gate) -> None:
    gate.words = {"好评": "差", "差评": "好"}
    (rule,) = gate_report(gate.weigh(gate.freeze()))["rules"]
    assert rule["threshold"] is None
    assert "are wrong, too many for 0.05" in str(rule["why"])


def test_each_class_has_a_threshold_of_its_own_and_one_without_data_is_named(
    workshop: Workshop, tmp_path: Path
) -> None:
    words = {"好评": "好", "差评": "差", "中评": "快"}
    gate = Gate(workshop, tmp_path, Taxonomy(Task.SINGLE, tuple(words)), words)
    common = [row for row in made_up(600, words, seed=3, unsure=0.2) if "快" not in row[0]]
    rare = [row for row in made_up(60, words, seed=5, unsure=0) if row[1] == "中评"]
    gate.labelled(made_up(20, words, seed=1), "train")
    gate.labelled([*common, *rare], "test")
    gate.pool(text for text, _ in made_up(150, words, seed=4))
    weighed = gate.weigh(gate.freeze(), per_class=True)
    report = gate_report(weighed)
    rules = {tuple(rule["labels"] or ()): rule for rule in report["rules"]}
    assert set(rules) == {("好评",), ("差评",), ("中评",)}
    assert rules["中评",]["threshold"] is None
    assert {rules[label,]["accepted"] > 0 for label in ("好评", "差评")} == {True}
    assert {rules[label,]["confidence"] for label in ("好评", "差评")} == {0.975}
    assert any("1 classes" in told and "中评" in told for told in report["warnings"])
    assert sum(rule["accepted"] for rule in rules.values()) == report["accepted"]
    gate.apply(weighed)
    assert {item.proposed for item in gate.queue().values()} >= {'["中评"]'}


def test_several_labels_are_right_only_as_a_set_and_no_labels_are_never_accepted(
    workshop: Workshop, tmp_path: Path
) -> None:
    words = {"好评": "好", "差评": "差", "价格": "贵"}
    taxonomy = Taxonomy(Task.MULTI, tuple(words), multiple=True)
    gate = Gate(workshop, tmp_path, taxonomy, words)
    rows = [(f"{text}贵", f"{label}|价格") for text, label in made_up(200, WORDS, seed=3, unsure=0)]
    rows += made_up(200, WORDS, seed=6, unsure=0)
    gate.labelled([*made_up(20, WORDS, seed=1, unsure=0), ("有贵的好的", "好评|价格")], "train", label_sep="|")
    gate.labelled(rows, "test", label_sep="|")
    empty = ["这房间大", "早餐一般上", "他来时有人"]
    gate.pool([*empty, *(f"贵{text}" for text, _ in made_up(60, WORDS, seed=4, unsure=0))])
    weighed = gate.weigh(gate.freeze())
    gate.apply(weighed)
    assert gate.left() == set(empty)
    assert {item.proposed for item in gate.queue().values()} == {None}
    text = f"贵{made_up(60, WORDS, seed=4, unsure=0)[0][0]}"
    current = history(workshop.engine, library="default", sample=text, is_text=True).current
    assert current is not None
    assert len(current.labels) == 2
    assert "价格" in current.labels


def test_labels_in_levels_are_accepted_as_paths(workshop: Workshop, tmp_path: Path) -> None:
    words = {"服务-好": "好", "服务-差": "差", "房间-干净": "净"}
    gate = Gate(workshop, tmp_path, Taxonomy(Task.HIERARCHICAL, tuple(words), level_sep="-"), words)
    gate.labelled(made_up(30, words, seed=1), "train", level_sep="-")
    gate.labelled(made_up(400, words, seed=3), "test", level_sep="-")
    right = dict(made_up(100, words, seed=4))
    gate.pool(right)
    done = gate.apply(gate.weigh(gate.freeze()))
    assert done.accepted > 40
    wrong = 0
    for text in set(right) - gate.left():
        current = history(workshop.engine, library="default", sample=text, is_text=True).current
        wrong += current is None or current.labels != (right[text],)
    assert wrong <= 0.05 * done.accepted + 1


def test_an_empty_pool_and_a_model_of_other_labels_are_refused(gate: Gate) -> None:
    classifier = gate.freeze()
    for text in gate.left():
        label_sample(gate.workshop.engine, library="default", sample=text, is_text=True, labels=["好评"], by="标注员甲")
    with pytest.raises(BadInput, match="no samples that were never labelled, so there is nothing to label"):
        gate.weigh(classifier)
    other = Taxonomy(Task.SINGLE, ("好评", "退货"))
    bundle = keyword_bundle(
        gate.folder / "other", taxonomy=other, words={"好评": "好", "退货": "差"}, snapshot=gate.snapshot
    )
    with pytest.raises(BadTaxonomy, match="only the model has 退货"):
        gate.weigh(OnnxClassifier.load(bundle))


def test_what_people_say_while_it_is_weighed_stands(gate: Gate) -> None:
    weighed = gate.weigh(gate.freeze())
    index = int(weighed.decision.accepted.argmax())
    said = weighed.pool.ids[index]
    other = "差评" if weighed.sets[weighed.pool.sets[index]] == ("好评",) else "好评"
    label_sample(gate.workshop.engine, library="default", sample=said, labels=[other], by="标注员乙")
    done = gate.apply(weighed)
    assert done.accepted == int(weighed.decision.accepted.sum()) - 1
    current = history(gate.workshop.engine, library="default", sample=said).current
    assert current is not None
    assert current.labels == (other,)


def test_a_taxonomy_that_changed_meanwhile_stops_it_before_anything_is_written(gate: Gate) -> None:
    weighed = gate.weigh(gate.freeze())
    gate.labelled([("这是退货的", "退货")], "train")
    events = gate.workshop.count(label_events)
    with pytest.raises(BadInput, match="the taxonomy of library 'default' has become version 2"):
        gate.apply(weighed)
    assert gate.workshop.count(label_events) == events
    assert gate.queue() == {}


def test_when_queueing_fails_half_way_it_says_what_is_there(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = gate.weigh(gate.freeze())
    monkeypatch.setattr("app.library.gate.running.ITEMS_AT_ONCE", 10)
    heard: list[int] = []

    def meddle(count: int) -> None:
        heard.append(count)
        if len(heard) == 2:  # the sweep is there, and the first ten are in review
            gate.labelled([("这是退货的", "退货")], "train")

    with pytest.raises(
        BadInput, match=r"labels were accepted in sweep 1 and 10 samples are in review, but the rest is"
    ):
        apply(gate.workshop.engine, weighed, by="标注员甲", report={}, note="", review=True, on_written=meddle)
    assert len(list_sweeps(gate.workshop.engine, "default")) == 1
    assert len(gate.queue()) == 10
    assert list(verify(gate.workshop.engine)) == []
