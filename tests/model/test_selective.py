"""The gate's statistics: exact, agreeing with scipy, and a bound that holds as often as it says."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, hypergeom

from model.errors import BadInput
from model.selective import (
    Bound,
    binomial_tail,
    choose_threshold,
    clopper_pearson,
    confidences,
    fewest_samples,
    hypergeometric_tail,
    p_value,
    samples_for,
    supported_error,
)

RUNS = 300
MOST_BROKEN = 26  # of 300 at 5 %: 15 expected, and 26 or more by chance once in 250


@settings(deadline=None)
@given(st.integers(1, 20_000), st.floats(0, 1), st.floats(0.001, 0.5))
def test_the_binomial_tail_and_its_bound_are_exact(n: int, share: float, p: float) -> None:
    k = int(share * n)
    assert binomial_tail(k, n, p) == pytest.approx(binom.cdf(k, n, p), rel=1e-7, abs=1e-300)
    if k < n:
        assert clopper_pearson(k, n, 0.05) == pytest.approx(beta.ppf(0.95, k + 1, n - k), abs=1e-7)


@settings(deadline=None)
@given(st.integers(2, 5_000), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_the_hypergeometric_tail_is_exact(total: int, marked: float, drawn: float, share: float) -> None:
    marks, draws = int(marked * total), int(drawn * total)
    k = int(share * min(marks, draws))
    assert hypergeometric_tail(k, total, marks, draws) == pytest.approx(
        hypergeom.cdf(k, total, marks, draws), rel=1e-6, abs=1e-12
    )


def test_tails_of_large_samples_do_not_underflow() -> None:
    assert binomial_tail(15_000, 1_000_000, 0.02) == 0 or binomial_tail(15_000, 1_000_000, 0.02) < 1e-200
    assert 0.4 < binomial_tail(20_000, 1_000_000, 0.02) < 0.6
    assert 0.4 < hypergeometric_tail(10_000, 1_000_000, 20_000, 500_000) < 0.6


def test_at_two_percent_it_takes_149_samples_without_an_error() -> None:
    assert [fewest_samples(Bound(share)) for share in (0.01, 0.02, 0.05)] == [299, 149, 59]
    assert [samples_for(errors, Bound(0.02)) for errors in range(4)] == [149, 236, 313, 386]


@pytest.mark.parametrize(("n", "accepts"), [(148, False), (149, True)])
def test_one_sample_too_few_accepts_nothing(n: int, accepts: bool) -> None:
    sure = np.full(n, 0.9)
    chosen = choose_threshold(sure, np.zeros(n, bool), np.full(100_000, 0.9), Bound(0.02))
    assert (chosen.best is not None) == (accepts and p_value(0, n, 100_000, 0.02) <= 0.05)
    assert chosen.needed == 149


def test_the_very_pool_is_bound_and_not_only_what_may_be_expected() -> None:
    assert p_value(0, 149, 10**7, 0.02) == pytest.approx(binomial_tail(0, 149, 0.02), rel=1e-3)
    # Of a pool as large as the calibration split, chance alone makes the share of errors vary twice as much.
    assert p_value(25, 2000, 2000, 0.02) > 3 * binomial_tail(25, 2000, 0.02)


def test_a_model_that_is_always_right_accepts_the_whole_pool() -> None:
    random = np.random.default_rng(0)
    chosen = choose_threshold(random.random(2000), np.zeros(2000, bool), random.random(500), Bound(0.02))
    assert chosen.best is not None
    assert (chosen.best.coverage, chosen.best.errors) == (1.0, 0)
    assert chosen.upper is not None
    assert chosen.upper < 0.02


def test_equal_confidences_are_accepted_together_or_not_at_all() -> None:
    random = np.random.default_rng(0)
    pool, sure = random.choice([0.7, 0.8, 0.9], 1000), random.choice([0.7, 0.8, 0.9], 3000)
    chosen = choose_threshold(sure, (sure < 0.75) & (random.random(3000) < 0.5), pool, Bound(0.02))
    assert chosen.best is not None
    assert chosen.best.threshold == 0.8
    assert chosen.best.accepted == (pool >= 0.8).sum()


def test_one_error_among_the_most_confident_does_not_end_everything() -> None:
    """Three wrong samples at the very top fail the first start; a later one passes."""
    sure = np.linspace(1, 0, 4000)
    wrong = np.zeros(4000, bool)
    wrong[:12] = True
    chosen = choose_threshold(sure, wrong, np.random.default_rng(0).random(5000), Bound(0.02))
    assert not chosen.tests[0].passed
    assert chosen.best is not None
    assert chosen.best.coverage == 1.0


def test_the_level_of_all_tests_together_is_never_more_than_delta() -> None:
    random = np.random.default_rng(1)
    sure = random.random(6000)
    chosen = choose_threshold(sure, random.random(6000) < 0.4 * (1 - sure), random.random(9000), Bound(0.05))
    assert sum(test.start for test in chosen.tests) > 2
    assert max(test.level for test in chosen.tests) <= 0.05 * (1 + 1e-12)
    for before, test in zip(chosen.tests, chosen.tests[1:], strict=False):
        assert test.start or test.level == (before.level if before.passed else 0)


def test_where_nothing_passes_it_says_what_the_data_would_support() -> None:
    random = np.random.default_rng(0)
    sure = random.random(500)
    chosen = choose_threshold(sure, random.random(500) < 0.1, random.random(500), Bound(0.02))
    assert chosen.best is None
    assert chosen.upper is None
    wrong = np.arange(500) % 10 == 0
    assert supported_error(sure, wrong, sure, Bound(0.02)) == 0.2
    assert choose_threshold(sure, wrong, sure, Bound(0.2)).best is not None
    assert choose_threshold(sure, wrong, sure, Bound(0.15)).best is None
    assert choose_threshold(np.empty(0), np.empty(0, bool), random.random(5), Bound(0.02)).best is None
    assert supported_error(np.empty(0), np.empty(0, bool), random.random(5), Bound(0.02)) is None


RISKS: dict[str, tuple[float, Callable[[np.ndarray], np.ndarray]]] = {
    "just above everywhere": (0.05, lambda sure: np.full(len(sure), 0.0501)),
    "falling": (0.05, lambda sure: 0.4 * (1 - sure) ** 2),
    "steep": (0.02, lambda sure: np.where(sure > 0.5, 0.005, 0.3)),
    "wrong at the top": (0.05, lambda sure: np.where(sure > 0.9, 0.2, 0.01)),
}


@pytest.mark.parametrize("name", RISKS)
@pytest.mark.parametrize("size", [400, 4000])
def test_the_bound_is_broken_no_more_often_than_it_says(name: str, size: int) -> None:
    max_error, risk = RISKS[name]
    random = np.random.default_rng(size)
    broken = unlucky = accepted = 0
    wide = random.random(200_000)
    for _ in range(RUNS):
        sure, pool = random.random(1500), random.random(size)
        wrong, pool_wrong = (random.random(len(each)) < risk(each) for each in (sure, pool))
        best = choose_threshold(sure, wrong, pool, Bound(max_error)).best
        if best is None:
            continue
        accepted += 1
        broken += risk(wide[wide >= best.threshold]).mean() > max_error
        unlucky += pool_wrong[pool >= best.threshold].sum() > np.ceil(max_error * best.accepted - 1e-9)
    assert broken <= MOST_BROKEN
    assert unlucky <= MOST_BROKEN
    assert accepted > 0 or name in ("just above everywhere", "wrong at the top")
    if name in ("falling", "steep"):
        assert accepted > 0.5 * RUNS


def test_several_labels_are_as_sure_as_that_the_set_is_just_right() -> None:
    scores = np.array([[0.9, 0.2], [0.9, 0.6]], np.float32)
    assert confidences(scores, scores >= 0.5, multiple=True) == pytest.approx([0.9 * 0.8, 0.9 * 0.6])
    assert confidences(scores, scores >= 0.5, multiple=False) == pytest.approx([0.9, 0.9])
    sure = np.array([[1.0, 0.0]], np.float32)
    assert confidences(sure, sure >= 0.5, multiple=True) == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("max_error", "confidence"), [(0, 0.95), (1, 0.95), (0.02, 1), (0.02, 0.3), (float("nan"), 0.9)]
)
def test_a_bound_that_is_none_is_refused(max_error: float, confidence: float) -> None:
    with pytest.raises(BadInput, match="give"):
        Bound(max_error, confidence)
