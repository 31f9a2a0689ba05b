"""Verdicts on labels, and the findings made of them, by scores that are known."""

import numpy as np
import pytest

from app.library.doctor.findings import Severity
from app.library.doctor.label_errors import Verdicts, judge_labels
from app.library.doctor.predicted import examine_label_errors
from app.library.doctor.predicted_classes import examine_pairs
from app.library.doctor.predicted_samples import examine_hard_samples, examine_off_taxonomy
from model.predictions import NO_FOLD, Predictions
from model.types import Split, Task, Taxonomy

TOPICS = Taxonomy(Task.SINGLE, ("财经", "房产", "体育", "教育"))
TAGS = Taxonomy(Task.MULTI, ("价格", "质量", "物流"), multiple=True)
BY = {"by": "run-1", "command": "wenlei library doctor --run run-1"}


def predictions(gold: list[tuple[str, ...]], scores: np.ndarray, folds: list[int] | None = None) -> Predictions:
    """Of samples numbered from 0, all of train."""
    count = len(gold)
    return Predictions(
        ids=[f"{number:032x}" for number in range(count)],
        splits=[Split.TRAIN] * count,
        gold=gold,
        scores=scores.astype(np.float32),
        folds=np.array([number % 5 for number in range(count)] if folds is None else folds),
    )


def verdicts(given: Predictions, taxonomy: Taxonomy) -> Verdicts:
    return judge_labels(given, taxonomy, np.arange(len(given)))


def topics(count: int, *, sure: float = 0.97) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """Samples of each topic in turn, all labelled right, and scores that are sure of it, a little more or less."""
    places = np.arange(count) % len(TOPICS)
    scores = np.full((count, len(TOPICS)), 0.0)
    at = sure + np.random.default_rng(0).uniform(-0.02, 0.02, count)
    scores += ((1 - at) / (len(TOPICS) - 1))[:, None]
    scores[np.arange(count), places] = at
    return [(TOPICS.labels[place],) for place in places], scores


def test_errors_come_with_what_they_are_and_how_sure_that_is() -> None:
    gold, scores = topics(400)
    for wrong in (0, 40, 80):  # 财经, labelled as 房产
        gold[wrong] = ("房产",)
    found = verdicts(predictions(gold, scores), TOPICS)
    assert sorted(found.errors()) == [0, 40, 80]
    finding = examine_label_errors(found, **BY)
    assert finding.count == 3
    assert finding.severity is Severity.NOTABLE
    assert {example.proposed for example in finding.examples} == {("财经",)}
    assert finding.figures["plots"][1]["bars"] == [["房产 → 财经", 3]]
    assert finding.figures["estimated"] == pytest.approx(3, abs=1)
    assert finding.figures["classes"][0]["label"] == "房产"
    at_confidence = finding.figures["at_confidence"]
    assert (at_confidence[0]["drop"], at_confidence[0]["relabel"]) == (3, 3)
    assert [row["drop"] for row in at_confidence] == sorted((row["drop"] for row in at_confidence), reverse=True)
    assert all(wanted.reason == "label_error" and wanted.value > 0.5 for wanted in finding.reviews)


def test_where_all_is_right_there_is_nothing_to_do() -> None:
    finding = examine_label_errors(verdicts(predictions(*topics(400)), TOPICS), **BY)
    assert (finding.count, finding.severity, finding.commands, finding.reviews) == (0, Severity.FINE, (), ())


def test_classes_with_few_samples_or_in_one_fold_are_left_out_and_named() -> None:
    gold, scores = topics(400)
    kept = [place for place in range(400) if place % 4 != 2 or place < 12]  # three samples of 体育
    few = predictions([gold[place] for place in kept], scores[kept])
    found = verdicts(few, TOPICS)
    assert found.unjudged == ("体育",)
    assert (found.left_out, len(found)) == (3, len(kept) - 3)
    assert "1 个类别" in examine_label_errors(found, **BY).summary
    folds = [0 if labels == ("教育",) else number % 5 for number, labels in enumerate(gold)]
    assert verdicts(predictions(gold, scores, folds), TOPICS).unjudged == ("教育",)
    no_folds = [NO_FOLD] * len(gold)  # dev and test: no model has seen any of them
    assert verdicts(predictions(gold, scores, no_folds), TOPICS).unjudged == ()


@pytest.mark.parametrize("count", [0, 1, 7])
def test_too_few_samples_to_judge_at_all_are_no_error(count: int) -> None:
    found = verdicts(predictions(*topics(count)), TOPICS)
    assert len(found) == 0
    assert found.left_out == count
    for finding in (
        examine_label_errors(found, **BY),
        examine_off_taxonomy(found, **BY),
        examine_pairs(found, library="default"),
        examine_hard_samples(found, **BY),
    ):
        assert (finding.count, finding.severity) == (0, Severity.FINE)


def tags(count: int) -> tuple[list[tuple[str, ...]], np.ndarray]:
    """Samples with one tag or two, all labelled right, and scores that know it."""
    sets = [("价格",), ("质量",), ("物流",), ("价格", "质量"), ("质量", "物流")]
    gold = [sets[number % len(sets)] for number in range(count)]
    has = np.array([[tag in labels for tag in TAGS.labels] for labels in gold])
    jitter = np.random.default_rng(1).uniform(0, 0.001, has.shape)
    return gold, np.where(has, 0.999 - jitter, 0.001 + jitter)


def test_a_missing_label_and_one_too_many_are_told_apart() -> None:
    gold, scores = tags(500)
    gold[3], gold[23] = ("质量",), ("价格",)  # both 价格 and 质量
    gold[0], gold[20] = ("价格", "物流"), ("价格", "物流")  # 价格 alone
    found = verdicts(predictions(gold, scores), TAGS)
    proposed = {place: found.proposed[place] for place in found.errors().tolist()}
    assert proposed == {3: ("价格", "质量"), 23: ("价格", "质量"), 0: ("价格",), 20: ("价格",)}
    missing, false = (
        dict(zip(found.classes, found.missing, strict=True)),
        dict(zip(found.classes, found.false, strict=True)),
    )
    assert missing["价格"] == pytest.approx(1, abs=0.5)
    assert false["物流"] == pytest.approx(2, abs=0.7)


def test_a_sample_that_would_be_left_without_labels_gets_no_proposal() -> None:
    gold, scores = tags(500)
    for place in (0, 5, 10):
        scores[place] = 0.0001  # labelled 价格, and no label fits
    found = verdicts(predictions(gold, scores), TAGS)
    assert set(found.errors().tolist()) == {0, 5, 10}
    assert [found.proposed[place] for place in (0, 5, 10)] == [None] * 3
    assert (found.confidence[[0, 5, 10]] == 0).all()
    finding = examine_label_errors(found, **BY)
    assert all(wanted.proposed is None and wanted.confidence is None for wanted in finding.reviews)
    assert "no class fits better" in finding.examples[0].why


def test_texts_of_no_class_are_rare_and_found() -> None:
    gold, scores = topics(2000)
    scores[12] = [0.31, 0.23, 0.23, 0.23]
    finding = examine_off_taxonomy(verdicts(predictions(gold, scores), TOPICS), **BY)
    assert [example.sample_id for example in finding.examples] == [f"{12:032x}"]
    assert finding.reviews[0].reason == "off_taxonomy"
    scores[:400] = [0.31, 0.23, 0.23, 0.23]  # now it is the model that is weak
    assert examine_off_taxonomy(verdicts(predictions(gold, scores), TOPICS), **BY).count <= 4


def test_pairs_that_are_confused_come_with_their_directions() -> None:
    gold, scores = topics(800)
    finance = [place for place, labels in enumerate(gold) if labels == ("财经",)]
    estate = [place for place, labels in enumerate(gold) if labels == ("房产",)]
    for place in (*finance[:40], *estate[:40]):
        scores[place, [0, 1]] = scores[place, [1, 0]]
    finding = examine_pairs(verdicts(predictions(gold, scores), TOPICS), library="default")
    pair = finding.figures["pairs"][0]
    assert finding.count == 1
    assert pair["classes"] == ["财经", "房产"]
    assert pair["mutual"]
    assert pair["share"] == pytest.approx(0.2, abs=0.05)
    assert finding.severity is Severity.SERIOUS
    matrix = finding.figures["plots"][1]["matrix"]
    assert matrix["values"][0][0] is None
    assert matrix["values"][0][1] == pytest.approx(20, abs=5)
    assert finding.commands[1] == "wenlei taxonomy merge 财经 房产 --into 房产 --library default"


def test_hard_samples_are_those_whose_labels_stand_narrowly() -> None:
    gold, scores = topics(800)
    for place, own in zip(
        range(0, 160, 4), np.geomspace(0.5, 0.002, 40), strict=True
    ):  # of 财经, ever less so, but 体育
        scores[place] = [own, 0.005, 0.99 - own, 0.005]
    found = verdicts(predictions(gold, scores), TOPICS)
    finding = examine_hard_samples(found, **BY)
    hard = {wanted.sample_id for wanted in finding.reviews}
    errors = {found.ids[place] for place in found.errors()}
    assert hard
    assert not hard & errors
    assert all(0.3 <= wanted.value <= 0.5 for wanted in finding.reviews)
    assert {wanted.proposed for wanted in finding.reviews} == {None}  # who accepts keeps the label
    assert all(wanted.details["instead"] == ["体育"] for wanted in finding.reviews)
