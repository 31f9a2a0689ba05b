"""Agreement between annotators: scikit-learn's kappa, Krippendorff's own examples, sets worked out by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from model.metrics import cohen_kappa, krippendorff_alpha


def units(*annotators: str) -> list[list[int]]:
    """Rows of values, one an annotator, a dot where there is none, as the values of each text."""
    return [[int(value, 16) for value in column if value != "."] for column in zip(*annotators, strict=True)]


def sets(*values: Sequence[int]) -> np.ndarray:
    """Sets of labels as rows."""
    rows = np.zeros((len(values), 4), dtype=bool)
    for row, labels in zip(rows, values, strict=True):
        row[list(labels)] = True
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    one = chosen.integers(0, 5, 300)
    other = np.where(chosen.random(300) < 0.7, one, chosen.integers(0, 7, 300))
    assert cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other), abs=1e-12)


def test_kappa_is_1_for_equals_negative_for_opposites_and_nothing_where_chance_always_agrees() -> None:
    one, other = np.array([0, 1, 0, 1]), np.array([1, 0, 1, 0])
    assert (cohen_kappa(one, one), cohen_kappa(one, other)) == (1, -1)
    assert cohen_kappa(np.array([3, 3]), np.array([3, 3])) is None


@pytest.mark.parametrize(
    ("annotators", "alpha"),
    [
        (("0100000010", "1110010000"), 0.095),  # A: two observers, two values
        (("aabbdcccedda", "babbbccceddd"), 0.692),  # B: two observers, five values
        (("123321412...", "1233224125.3", ".3332342251.", "12332441251."), 0.743),  # C: four, some values missing
    ],
)
def test_alpha_is_that_of_krippendorffs_examples(annotators: Sequence[str], alpha: float) -> None:
    assert krippendorff_alpha(units(*annotators), np.eye(16, dtype=bool)) == pytest.approx(alpha, abs=5e-4)


def test_alpha_of_sets_is_what_masi_gives_by_hand() -> None:
    # distances: {0} {1} 1; {0} {0,1} 1 - 1/2 x 2/3 = 2/3; {0,1} {1,2} 1 - 1/3 x 1/3 = 8/9; {1} and {0,1}, {1,2} 2/3
    values = sets([0], [0, 1], [1, 2], [1])
    given = [[0, 0], [0, 1], [1, 2], [3, 3]]
    observed = 2 * (2 / 3 + 8 / 9)
    # counts: {0} 3, {0,1} 2, {1,2} 1, {1} 2
    expected = 2 * (3 * 2 * 2 / 3 + 3 * 1 * 1 + 3 * 2 * 1 + 2 * 1 * 8 / 9 + 2 * 2 * 2 / 3 + 1 * 2 * 2 / 3)
    assert krippendorff_alpha(given, values) == pytest.approx(1 - 7 * observed / expected)


def test_alpha_knows_empty_sets_as_the_same_and_as_wholly_unlike_any_other() -> None:
    values = sets([], [0], [0, 1])
    assert krippendorff_alpha([[0, 0], [1, 1]], values) == 1
    # distances: {} to both others 1, {0} to {0,1} 2/3; counts: {} 3, {0} 2, {0,1} 1
    expected = 2 * (3 * 2 + 3 * 1 + 2 * 1 * 2 / 3)
    assert krippendorff_alpha([[0, 0], [0, 1], [1, 2]], values) == pytest.approx(1 - 5 * 2 * (1 + 2 / 3) / expected)


def test_alpha_needs_two_values_and_leaves_out_texts_with_one() -> None:
    values = np.eye(3, dtype=bool)
    assert krippendorff_alpha([[1, 1], [1, 1]], values) is None
    assert krippendorff_alpha([[1], [2]], values) is None
    assert krippendorff_alpha([[0, 0], [1, 1], [2]], values) == 1


def test_alpha_is_the_same_for_many_values_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = np.random.default_rng(0)
    given = chosen.integers(0, 7, (100, 3)).tolist()
    values = chosen.random((7, 5)) < 0.5
    values[:, 0] = True
    whole = krippendorff_alpha(given, values)
    monkeypatch.setattr("model.metrics.VALUES_AT_ONCE", 2)
    assert krippendorff_alpha(given, values) == pytest.approx(whole)
