"""Every figure against scikit-learn and scipy, and the promises that they can't vouch for."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from scipy.stats import binom
from sklearn.metrics import accuracy_score, f1_score, precision_recall_curve, precision_recall_fscore_support

from model.errors import BadInput, UnknownLabel
from model.metrics import (
    activate,
    evaluate,
    fit_temperature,
    fit_thresholds,
    gold_matrix,
    predicted_matrix,
)
from model.types import Activation, Task, Taxonomy

SINGLE = Taxonomy(Task.SINGLE, ("体育", "财经", "科技", "娱乐"))
MULTI = Taxonomy(Task.MULTI, ("体育", "财经", "科技", "娱乐"), multiple=True)
PATHS = Taxonomy(Task.HIERARCHICAL, ("组织-裁员", "组织-罢工", "竞赛-夺冠", "其他"), level_sep="-")


def random_case(taxonomy, *, n=400, seed=0):
    """Logits that know something about the gold labels, but not all."""
    generator = np.random.default_rng(seed)
    gold = np.zeros((n, len(taxonomy)), dtype=bool)
    gold[np.arange(n), generator.integers(0, len(taxonomy), n)] = True
    if taxonomy.multiple:
        gold |= generator.random(gold.shape) < 0.2
        gold[:5] = False
    logits = (generator.normal(size=gold.shape) * 2 + gold * 2 - 1).astype(np.float32)
    return logits, gold


@given(hnp.arrays(np.float32, (3, 4), elements=st.floats(-1e4, 1e4, width=32)))
def test_activations_agree_with_scipy_and_never_overflow(logits):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        soft, sigmoid = activate(logits, Activation.SOFTMAX), activate(logits, Activation.SIGMOID)
    assert soft.dtype == sigmoid.dtype == np.float32
    np.testing.assert_allclose(soft, softmax(logits.astype(float), axis=-1), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(sigmoid, expit(logits.astype(float)), rtol=1e-4, atol=1e-30)


def test_gold_matrix_marks_every_label_of_every_text():
    gold = gold_matrix([("财经", "娱乐"), (), ("体育",)], MULTI)
    assert gold.tolist() == [[False, True, False, True], [False] * 4, [True, False, False, False]]
    assert gold_matrix([], MULTI).shape == (0, 4)
    with pytest.raises(UnknownLabel, match="军事"):
        gold_matrix([("军事",)], MULTI)


def test_one_label_is_chosen_however_low_its_score():
    assert predicted_matrix(np.array([[0.2, 0.3, 0.25, 0.25]]), SINGLE, None).tolist() == [[False, True, False, False]]


def test_all_labels_at_or_above_their_thresholds_are_chosen_and_perhaps_none():
    scores = np.array([[0.5, 0.49, 0.3, 0.9], [0.1, 0.1, 0.1, 0.1]], dtype=np.float32)
    assert predicted_matrix(scores, MULTI, None).tolist() == [[True, False, False, True], [False] * 4]
    fitted = predicted_matrix(scores, MULTI, {"科技": 0.25, "娱乐": 0.95})
    assert fitted.tolist() == [[True, False, True, False], [False] * 4]


@pytest.mark.parametrize("seed", range(5))
def test_single_choice_figures_are_scikit_learns(seed):
    logits, gold = random_case(SINGLE, seed=seed, n=60)
    scores = activate(logits, Activation.SOFTMAX)
    figures = evaluate(scores, gold, SINGLE)
    truth, chosen = gold.argmax(axis=1), scores.argmax(axis=1)
    assert figures["accuracy"] == pytest.approx(accuracy_score(truth, chosen))
    assert figures["macro_f1"] == pytest.approx(f1_score(truth, chosen, average="macro", zero_division=0))
    assert figures["micro_f1"] == pytest.approx(f1_score(truth, chosen, average="micro", zero_division=0))
    table = np.array([list(figures["per_label"][label].values()) for label in SINGLE.labels]).T
    np.testing.assert_allclose(
        table, precision_recall_fscore_support(truth, chosen, labels=range(4), zero_division=0), rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(5))
def test_multi_label_figures_are_scikit_learns(seed):
    logits, gold = random_case(MULTI, seed=seed)
    scores, thresholds = activate(logits, Activation.SIGMOID), {"体育": 0.3, "科技": 0.8}
    figures = evaluate(scores, gold, MULTI, thresholds=thresholds)
    chosen = predicted_matrix(scores, MULTI, thresholds)
    assert figures["accuracy"] == pytest.approx(accuracy_score(gold, chosen))
    for average in ("macro", "micro"):
        expected = f1_score(gold, chosen, average=average, zero_division=0)
        assert figures[f"{average}_f1"] == pytest.approx(expected)


def test_labels_that_neither_occur_nor_are_predicted_stay_out_of_macro_f1():
    scores = np.array([[0.9, 0.1, 0, 0], [0.6, 0.4, 0, 0]], dtype=np.float32)
    figures = evaluate(scores, gold_matrix([("体育",), ("财经",)], SINGLE), SINGLE)
    assert figures["macro_f1"] == pytest.approx(f1_score([0, 1], [0, 0], average="macro", zero_division=0))
    assert figures["per_label"]["娱乐"] == {"precision": 0, "recall": 0, "f1": 0, "support": 0}


def test_accuracy_interval_is_the_binomial_one():
    logits, gold = random_case(SINGLE, n=2000)
    figures = evaluate(activate(logits, Activation.SOFTMAX), gold, SINGLE, resamples=4000)
    expected = np.array(binom.interval(0.95, 2000, figures["accuracy"])) / 2000
    np.testing.assert_allclose(figures["accuracy_ci"], expected, atol=0.002)


def test_macro_f1_interval_is_that_of_resampled_rows():
    logits, gold = random_case(MULTI, n=150)
    scores = activate(logits, Activation.SIGMOID)
    predicted, generator = predicted_matrix(scores, MULTI, None), np.random.default_rng(3)
    draws = generator.integers(0, 150, (600, 150))
    resampled = [f1_score(gold[rows], predicted[rows], average="macro", zero_division=0) for rows in draws]
    figures = evaluate(scores, gold, MULTI, resamples=3000)
    np.testing.assert_allclose(figures["macro_f1_ci"], np.quantile(resampled, [0.025, 0.975]), atol=0.012)


def test_bootstrap_in_many_chunks_keeps_to_its_seed(monkeypatch):
    logits, gold = random_case(MULTI, n=100)
    scores = activate(logits, Activation.SIGMOID)
    whole = evaluate(scores, gold, MULTI, seed=1)
    assert evaluate(scores, gold, MULTI, seed=1) == whole
    assert evaluate(scores, gold, MULTI, seed=2)["macro_f1_ci"] != whole["macro_f1_ci"]
    monkeypatch.setattr("model.metrics.DRAWS_AT_ONCE", 500)
    assert evaluate(scores, gold, MULTI, seed=1) == whole


def test_higher_confidence_gives_a_wider_interval():
    logits, gold = random_case(SINGLE)
    scores = activate(logits, Activation.SOFTMAX)
    (low, high), (lower, higher) = (
        evaluate(scores, gold, SINGLE, confidence=confidence)["macro_f1_ci"] for confidence in (0.8, 0.99)
    )
    assert lower < low < high < higher


def test_calibration_error_is_the_gap_between_confidence_and_accuracy():
    # Three texts at 0.8, of which two are right; one at 0.4, wrong: (|2.4 - 2| + |0.4 - 0|) / 4.
    scores = np.array([[0.8, 0.2, 0, 0]] * 3 + [[0.4, 0.3, 0.3, 0]])
    gold = gold_matrix([("体育",), ("体育",), ("财经",), ("科技",)], SINGLE)
    assert evaluate(scores, gold, SINGLE)["ece"] == pytest.approx(0.2)


def test_calibration_error_of_several_labels_looks_at_each_score():
    scores = np.array([[0.9, 0.1, 0.1, 1.0]])
    assert evaluate(scores, gold_matrix([("体育", "娱乐")], MULTI), MULTI)["ece"] == pytest.approx(0.3 / 4)


def test_each_level_of_a_hierarchy_has_its_accuracy():
    labels = [("组织-裁员",), ("组织-罢工",), ("竞赛-夺冠",), ("其他",)]
    scores = np.eye(4)[[0, 0, 1, 3]]  # right; right up to the first level; wrong; right, with one level only
    figures = evaluate(scores, gold_matrix(labels, PATHS), PATHS)
    assert figures["per_level"] == {"1": 0.75, "2": 0.5}
    assert figures["per_level"]["2"] == figures["accuracy"]


@given(st.data())
def test_figures_are_plain_finite_numbers_whatever_the_rows(data):
    taxonomy = data.draw(st.sampled_from([SINGLE, MULTI, PATHS]))
    n = data.draw(st.integers(1, 4))
    scores = data.draw(hnp.arrays(np.float32, (n, 4), elements=st.floats(0, 1, width=32)))
    fewest, most = (0, 4) if taxonomy.multiple else (1, 1)
    row = st.sets(st.sampled_from(taxonomy.labels), min_size=fewest, max_size=most).map(sorted)
    gold = gold_matrix([data.draw(row) for _ in range(n)], taxonomy)
    figures = evaluate(scores, gold, taxonomy, resamples=20)
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures
    assert figures["accuracy_ci"][0] <= figures["accuracy_ci"][1]
    assert 0 <= figures["macro_f1"] <= 1


def test_nothing_to_evaluate_is_refused():
    with pytest.raises(BadInput, match="no samples"):
        evaluate(np.zeros((0, 4)), np.zeros((0, 4), dtype=bool), SINGLE)


@pytest.mark.parametrize("factor", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("taxonomy", [SINGLE, MULTI])
def test_fitted_temperature_is_the_likeliest(taxonomy, factor):
    logits, gold = random_case(taxonomy, n=3000)
    logits = logits * np.float32(factor)

    def loss(temperature):
        scaled = logits.astype(float) / temperature
        if taxonomy is SINGLE:
            return -log_softmax(scaled, axis=1)[gold].sum()
        return -(np.log(expit(scaled))[gold].sum() + np.log(expit(-scaled))[~gold].sum())

    expected = minimize_scalar(loss, bounds=(0.05, 20), method="bounded").x
    assert fit_temperature(logits, gold, taxonomy.activation) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("activation", list(Activation))
@pytest.mark.parametrize("n", [0, 1, 10])
def test_temperature_of_few_or_separable_rows_stays_near_one(activation, n):
    gold = np.eye(4, dtype=bool)[np.arange(n) % 4]
    for logits in (np.where(gold, 8, -8), np.where(gold, -8, 8), np.zeros((n, 4)), np.where(gold, 1e30, -1e30)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            temperature = fit_temperature(logits.astype(np.float32), gold, activation)
        assert 0.05 <= temperature <= 20.01
        assert n or temperature == 1.0
    certain = fit_temperature(np.where(gold, 8, -8).astype(np.float32), gold, activation)
    assert 0.5 < certain < 2


def test_fitted_thresholds_reach_the_best_f1_there_is():
    logits, gold = random_case(MULTI, n=500)
    scores = np.round(activate(logits, Activation.SIGMOID), 1)  # many ties
    thresholds = fit_thresholds(scores, gold, MULTI.labels)
    figures = evaluate(scores, gold, MULTI, thresholds=thresholds)
    for column, label in enumerate(MULTI.labels):
        precision, recall, _ = precision_recall_curve(gold[:, column], scores[:, column])
        best = np.max(2 * precision * recall / np.maximum(precision + recall, 1e-9))
        assert figures["per_label"][label]["f1"] == pytest.approx(best)


def test_labels_without_positives_keep_the_default_threshold():
    scores = np.array([[0.2, 0.7], [0.1, 0.6]], dtype=np.float32)
    gold = np.array([[True, False], [False, False]])
    assert fit_thresholds(scores, gold, ("甲", "乙")) == {"甲": pytest.approx(0.15), "乙": 0.5}
    assert fit_thresholds(scores[:0], gold[:0], ("甲", "乙")) == {"甲": 0.5, "乙": 0.5}
