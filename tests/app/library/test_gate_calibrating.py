"""What the gate calibrates on, what it refuses to, and when pool and calibration samples are not alike."""

import pytest

from app.library.labelling import label_sample
from app.library.shapes.gate import gate_report
from app.library.sweeping import apply_sweep
from app.store.sweeps import SweptLabels
from model.errors import BadInput
from model.text import sample_id
from model.types import Split
from tests.app.library.gates import SINGLE, WORDS, Gate
from tests.gating import made_up


def test_what_was_trained_on_is_no_calibration(gate: Gate) -> None:
    classifier = gate.freeze()
    with pytest.raises(BadInput, match="--split train: the model was trained on it"):
        gate.weigh(classifier, split=Split.TRAIN)
    # The model's own snapshot has these in train; another one, frozen later, has a near duplicate in test.
    text = made_up(20, WORDS, seed=1)[0][0]
    other = Gate(gate.workshop, gate.folder, SINGLE, WORDS)
    other.labelled([(f"{text}啊", "好评")], "test")
    later = gate.workshop.freeze(near=1.0).snapshot.hash
    assert later != gate.snapshot
    with pytest.raises(BadInput, match="the model was trained on 1 of its 401 samples or on near duplicates of them"):
        gate.weigh(classifier, calibration=later[:12])


def test_a_model_of_an_unknown_snapshot_is_refused(gate: Gate) -> None:
    classifier = gate.freeze()
    gate.snapshot = "0123456789abcdef0123456789abcdef"
    with pytest.raises(BadInput, match=r"was trained on snapshot 0123456789abcdef.*nobody can tell"):
        gate.weigh(classifier)


def test_labels_of_machines_do_not_calibrate_and_what_people_correct_does(gate: Gate) -> None:
    classifier = gate.freeze()
    engine, rows = gate.workshop.engine, made_up(400, WORDS, seed=3)
    before = gate.weigh(classifier)
    right = [index for index in range(400) if not before.wrong[index]]
    ids = [before.predicted.ids[index] for index in right]
    texts = {sample_id(text): (text, label) for text, label in rows}
    swept = [SweptLabels(each, (texts[each][1],), 0.9) for each in ids[:7]]
    apply_sweep(
        engine,
        library="default",
        kind="relabel",
        actor="other@1",
        rows=swept,
        judged=gate.workshop.labels(ids[:7]),
        asked={},
        outcome={},
        by="标注员甲",
        version=1,
    )
    text, label = texts[ids[8]]
    other = "差评" if label == "好评" else "好评"
    label_sample(engine, library="default", sample=text, is_text=True, labels=[other], by="标注员甲")
    after = gate.weigh(classifier)
    assert after.calibration.by_machine == 7
    assert after.calibration.corrected == 1
    assert len(after.predicted.ids) == 393
    assert after.wrong.sum() == before.wrong.sum() + 1
    report = gate_report(after)["calibration"]
    assert (report["samples"], report["by_machine"], report["not_in_library"]) == (393, 7, 0)


def test_a_calibration_sample_that_fits_no_class_counts_as_wrong(gate: Gate) -> None:
    classifier = gate.freeze()
    engine = gate.workshop.engine
    before = gate.weigh(classifier)
    right = before.predicted.ids[int((~before.wrong).argmax())]
    label_sample(engine, library="default", sample=right, labels=[], none=True, by="标注员甲")
    after = gate.weigh(classifier)
    assert (len(after.predicted.ids), after.calibration.unlabelled) == (len(before.predicted.ids), 0)
    assert after.wrong.sum() == before.wrong.sum() + 1
    assert after.calibration.corrected == 1


def test_dev_is_taken_with_a_caveat(gate: Gate) -> None:
    report = gate_report(gate.weigh(gate.freeze(), split=Split.DEV))
    assert report["calibration"]["samples"] == 10
    assert any("calibrated on dev" in told for told in report["warnings"])


def test_a_pool_of_the_same_kind_is_quiet_and_one_of_another_is_told(gate: Gate) -> None:
    classifier = gate.freeze()
    assert gate_report(gate.weigh(classifier))["warnings"] == []
    gate.pool((f"{text}{text[:6]}又来上一年" for text, _ in made_up(300, WORDS, seed=9, unsure=0.9)), "foreign.csv")
    told = gate_report(gate.weigh(classifier))["warnings"]
    assert [("foreign.csv" in each, "the pool" in each) for each in told] == [(False, True), (True, False)]
    for each in told:
        assert "the guarantee may not hold" in each
        assert "the length of the texts" in each
        assert "how sure the model is" in each


def test_a_few_texts_of_another_kind_are_told_by_their_file_although_the_pool_hides_them(gate: Gate) -> None:
    gate.pool((text for text, _ in made_up(800, WORDS, seed=11)), "more.csv")
    classifier = gate.freeze()
    gate.apply(gate.weigh(classifier))
    gate.pool((f"又来上一年{text}" for text, _ in made_up(40, WORDS, seed=9)), "foreign.csv")
    (told,) = gate_report(gate.weigh(classifier))["warnings"]
    assert "what came from foreign.csv differs" in told
