"""Paired statistics, against statsmodels and scipy."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests

from model.comparing import equivalence, holm, interval, mcnemar, over_seeds, resample, two_sided_p
from model.metrics import BoolArray, evaluate, gold_matrix
from model.types import Task, Taxonomy

TAXONOMY = Taxonomy(Task.SINGLE, ("好评", "中评", "差评"))


def one_hot(labels: np.ndarray) -> BoolArray:
    rows: BoolArray = np.eye(len(TAXONOMY), dtype=bool)[labels]
    return rows


def answers(n: int, accuracies: list[float], *, seed: int = 0) -> tuple[BoolArray, list[BoolArray]]:
    """Gold of n texts, and what classifiers of about these accuracies say."""
    random = np.random.default_rng(seed)
    gold = random.integers(0, 3, n)
    said = [
        np.where(random.random(n) < accuracy, gold, (gold + random.integers(1, 3, n)) % 3) for accuracy in accuracies
    ]
    return one_hot(gold), [one_hot(each) for each in said]


def test_mcnemar_is_the_exact_test_of_statsmodels() -> None:
    random = np.random.default_rng(1)
    for n, p_one, p_other in ((20, 0.9, 0.5), (500, 0.9, 0.86), (4000, 0.8, 0.8)):
        one, other = random.random(n) < p_one, random.random(n) < p_other
        table = [[int((a & b).sum()) for b in (other, ~other)] for a in (one, ~one)]
        found = mcnemar(one, other)
        assert found.p == pytest.approx(reference_mcnemar(table, exact=True).pvalue, rel=1e-9)
        assert (found.only_one, found.only_other) == (table[0][1], table[1][0])


def test_mcnemar_of_classifiers_that_never_differ_in_being_right() -> None:
    right = np.array([True, False, True])
    assert mcnemar(right, right).p == 1.0


@pytest.mark.parametrize("p_values", [[0.01], [0.04, 0.01, 0.03, 0.005], [0.2, 0.2, 0.9], [0.001, 0.5, 0.001]])
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1])


def test_resampled_figures_are_those_of_evaluate_around_the_same_middle() -> None:
    gold, said = answers(400, [0.8, 0.7])
    draws = resample(gold, said, resamples=2000, seed=3)
    for run, predicted in enumerate(said):
        figures = evaluate(predicted.astype(np.float32), gold, TAXONOMY, resamples=2000)
        for name in ("accuracy", "macro_f1", "micro_f1"):
            assert getattr(draws, name)[run].mean() == pytest.approx(figures[name], abs=0.004)
        assert interval(draws.accuracy[run]) == pytest.approx(figures["accuracy_ci"], abs=0.01)
        assert interval(draws.macro_f1[run]) == pytest.approx(figures["macro_f1_ci"], abs=0.01)


def test_a_paired_difference_spreads_as_scipy_says() -> None:
    gold, (one, other) = answers(300, [0.85, 0.75], seed=5)
    draws = resample(gold, [one, other], resamples=4000)
    right = [(each == gold).all(axis=1).astype(float) for each in (one, other)]
    reference = stats.bootstrap(
        right, lambda a, b, axis: a.mean(axis) - b.mean(axis), paired=True, method="percentile", n_resamples=4000, rng=7
    )
    found = interval(draws.accuracy[0] - draws.accuracy[1])
    assert found == pytest.approx(tuple(reference.confidence_interval), abs=0.008)


def test_a_difference_of_one_sign_has_the_smallest_p_there_is_and_none_has_1() -> None:
    assert two_sided_p(np.full(999, 0.1)) == pytest.approx(2 / 1000)
    assert two_sided_p(np.zeros(999)) == 1.0


def test_equal_classifiers_are_rarely_called_different() -> None:
    """At 5 %, about one in twenty pairs; 60 pairs of 300 texts."""
    called = 0
    for seed in range(60):
        gold, (one, other) = answers(300, [0.8, 0.8], seed=seed)
        draws = resample(gold, [one, other], resamples=500, seed=seed)
        called += two_sided_p(draws.accuracy[0] - draws.accuracy[1]) < 0.05
    assert called <= 8  # 3 expected; more than 8 come once in 500 times


def test_the_spread_of_seeds_counts_from_three_on() -> None:
    texts_only = np.tile([0.8, 0.9], (1, 500))
    apart = np.concatenate([texts_only - 0.1, texts_only, texts_only + 0.1])
    assert over_seeds(apart[:2]).std() == pytest.approx(0.05, abs=1e-9)
    assert over_seeds(apart).std() > 0.06
    assert over_seeds(apart).mean() == pytest.approx(0.85, abs=0.01)


def test_not_worse_and_equivalent_are_about_the_ninety_per_cent_interval() -> None:
    differences = np.linspace(-0.004, 0.016, 2001)  # 90 % of it: -0.003 to 0.015
    found = equivalence(differences, margin=0.005)
    assert (found.low, found.high) == pytest.approx((-0.003, 0.015))
    assert found.not_worse
    assert not found.equivalent
    assert equivalence(differences, margin=0.02).equivalent
    assert not equivalence(differences, margin=0.002).not_worse


def test_several_labels_a_text_have_their_micro_f1_too() -> None:
    taxonomy = Taxonomy(Task.MULTI, ("甲", "乙", "丙"), multiple=True)
    gold = gold_matrix([("甲",), ("甲", "乙"), ("丙",), ("乙",)] * 30, taxonomy)
    predicted = gold_matrix([("甲",), ("甲",), ("丙", "乙"), ()] * 30, taxonomy)
    draws = resample(gold, [predicted], resamples=1000)
    figures = evaluate(predicted.astype(np.float32), gold, taxonomy)
    assert draws.micro_f1[0].mean() == pytest.approx(figures["micro_f1"], abs=0.01)
    assert draws.accuracy[0].mean() == pytest.approx(0.5 - 0.25, abs=0.01)
