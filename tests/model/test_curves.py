"""Reliability, and risk against coverage."""

import numpy as np
import pytest

from model.curves import reliability, risk_coverage
from model.metrics import evaluate
from model.types import Task, Taxonomy


def test_the_bins_of_a_reliability_curve_add_up_to_the_calibration_error() -> None:
    random = np.random.default_rng(0)
    sure = random.uniform(0.5, 1, 500).astype(np.float32)
    right = random.random(500) < sure - 0.1
    scores = np.column_stack([sure, 1 - sure])
    gold = np.column_stack([right, ~right])
    figures = evaluate(scores, gold, Taxonomy(Task.SINGLE, ("一", "二")))
    bins = reliability(sure, right)
    assert sum(each.n for each in bins) == 500
    error = sum(each.n * abs(each.sure - each.right) for each in bins) / 500
    assert error == pytest.approx(figures["ece"], abs=1e-6)


def test_the_surest_answers_come_first() -> None:
    found = risk_coverage(np.array([0.9, 0.6, 0.8, 0.7], np.float32), np.array([True, False, True, False]))
    assert found.coverage == [0.25, 0.5, 0.75, 1.0]
    assert found.risk == pytest.approx([0, 0, 1 / 3, 1 / 2])
    assert found.area == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)


def test_answers_of_one_confidence_are_given_together() -> None:
    found = risk_coverage(np.array([0.5, 0.5, 0.5, 0.9], np.float32), np.array([False, True, True, True]))
    assert found.coverage == [0.25, 1.0]
    assert found.risk == pytest.approx([0, 0.25])
    assert found.area == pytest.approx((0 + 3 * 0.25) / 4)


def test_long_curves_are_drawn_by_a_hundred_points_that_begin_and_end_where_they_do() -> None:
    random = np.random.default_rng(1)
    confidence = random.random(5000).astype(np.float32)
    exact = random.random(5000) < confidence
    found = risk_coverage(confidence, exact)
    assert 90 < len(found.coverage) <= 100
    assert found.coverage[0] == 1 / 5000
    assert found.coverage[-1] == 1
    assert found.risk[-1] == pytest.approx(1 - exact.mean())
    assert found.area < found.risk[-1]  # better than at random
