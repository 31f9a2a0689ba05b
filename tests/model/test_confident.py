"""Confident learning: planted errors are found, doubts are no errors, and what can't be judged is refused."""

import numpy as np
import pytest

from model.confident import judge, judge_sets
from model.errors import BadInput
from model.metrics import BoolArray
from model.types import FloatArray, IntArray


def spread(true: IntArray, n_classes: int, *, seed: int, noise: float = 1.0) -> FloatArray:
    """Scores of a model that is right as a rule, and surest where it is: calibrated by how they are made."""
    logits = np.random.default_rng(seed).normal(0, noise, (len(true), n_classes))
    logits[np.arange(len(true)), true] += 3 * noise
    powers = np.exp(logits * 3 / noise)  # of two Gaussians that are 3 apart
    return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)


def plant(true: IntArray, n_classes: int, *, seed: int) -> tuple[IntArray, BoolArray]:
    """One in ten is labelled as the next class."""
    flipped = np.random.default_rng(seed).random(len(true)) < 0.1
    return np.where(flipped, (true + 1) % n_classes, true), flipped


def precision(order: IntArray, flipped: BoolArray, recall: float) -> float:
    hits = flipped[order].cumsum()
    found = int(np.searchsorted(hits, recall * flipped.sum())) + 1
    return float(hits[found - 1] / found)


def test_the_confident_joint_is_that_of_the_paper_by_hand() -> None:
    scores = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.4, 0.6], [0.1, 0.9], [0.95, 0.05]], np.float32)
    given = np.array([0, 0, 0, 1, 1, 1])
    found = judge(scores, given)
    np.testing.assert_allclose(found.thresholds, [0.6, 0.51666667], rtol=1e-6)
    # given 0: two of 0, one of 1; given 1: the first two of 1, the last of 0
    np.testing.assert_allclose(found.confident, [[2, 1], [1, 2]])


def test_rows_that_no_threshold_accepts_do_not_count_and_the_joint_still_adds_up() -> None:
    scores = np.array([[0.9, 0.1], [0.5, 0.5], [0.1, 0.9], [0.2, 0.8]], np.float32)
    found = judge(scores, np.array([0, 0, 1, 1]))
    np.testing.assert_allclose(found.confident, [[2, 0], [0, 2]])
    np.testing.assert_allclose(found.joint.sum(), 4)
    np.testing.assert_allclose(found.posterior.sum(axis=1), 1)


def test_planted_errors_come_first_with_what_they_really_are() -> None:
    true = np.arange(6000) % 5
    given, flipped = plant(true, 5, seed=0)
    found = judge(spread(true, 5, seed=1), given)
    order = np.argsort(found.right, kind="stable")
    assert flipped[order[:200]].mean() >= 0.99
    assert (found.proposed[order[:200]] == true[order[:200]]).mean() >= 0.99
    assert precision(order, flipped, 0.5) >= 0.99
    assert found.wrong.sum() == pytest.approx(flipped.sum(), rel=0.1)
    pairs = found.joint.copy()
    np.fill_diagonal(pairs, 0)
    assert (pairs.argmax(axis=0) == (np.arange(5) + 1) % 5).all()  # each class is mislabelled as the next


def test_knowing_which_mistakes_are_usual_ranks_better_than_the_scores_alone() -> None:
    true = np.arange(6000) % 5
    given, flipped = plant(true, 5, seed=0)
    scores = spread(true, 5, seed=1)
    by_score = np.argsort(scores[np.arange(len(given)), given], kind="stable")
    found = np.argsort(judge(scores, given).right, kind="stable")
    assert precision(found, flipped, 0.9) > precision(by_score, flipped, 0.9) + 0.01


def test_confidence_is_a_probability() -> None:
    true = np.arange(60_000) % 5
    given, _ = plant(true, 5, seed=2)
    found = judge(spread(true, 5, seed=3), given)
    is_right = found.proposed == true
    for low, high in ((0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        inside = (found.confidence >= low) & (found.confidence < high)
        assert inside.sum() > 100
        assert is_right[inside].mean() == pytest.approx(found.confidence[inside].mean(), abs=0.06)


def test_where_nothing_is_wrong_hardly_anything_is_found() -> None:
    true = np.arange(6000) % 5
    found = judge(spread(true, 5, seed=4), true)
    assert (found.wrong > 0.5).mean() < 0.01
    assert found.wrong.mean() < 0.02


def test_labels_of_sets_are_judged_each_by_itself() -> None:
    generator = np.random.default_rng(5)
    true = generator.random((3000, 4)) < 0.3
    given = true.copy()
    missing = np.flatnonzero(true[:, 2])[:40]
    given[missing, 2] = False
    scores = np.where(true, 0.999, 0.001).astype(np.float32)
    found = judge_sets(scores, given)
    assert (found[2].wrong[missing] > 0.9).all()
    assert sum((one.wrong > 0.5).sum() for one in found) == len(missing)


def test_a_model_that_is_all_sure_and_wrong_breaks_nothing() -> None:
    scores = np.zeros((4, 3), np.float32)
    scores[[0, 1, 2, 3], [1, 0, 2, 2]] = 1
    found = judge(scores, np.array([0, 1, 2, 0]))
    assert np.isfinite(found.posterior).all()
    assert found.proposed.tolist()[:2] == [1, 0]


@pytest.mark.parametrize(
    ("scores", "given", "why"),
    [
        ([[0.5, float("nan")], [0.5, 0.5]], [0, 1], "row 0 has the score nan for class 1"),
        ([[0.5, 0.5], [1.5, 0.5]], [0, 1], "row 1 has the score 1.5"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 2], "not among 2 classes"),
        ([[0.5, 0.5]], [0, 1], "give a row for each label"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 0], "judge two or more that have some"),
        ([[1.0], [1.0]], [0, 0], "1 classes with"),
    ],
)
def test_what_cannot_be_judged_is_refused(scores: list[list[float]], given: list[int], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        judge(np.array(scores, np.float32), np.array(given))


def test_sets_of_another_width_are_refused() -> None:
    with pytest.raises(BadInput, match="can't be of labels of shape"):
        judge_sets(np.zeros((3, 2), np.float32), np.zeros((3, 4), bool))
