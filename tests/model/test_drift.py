"""Whether two sets are alike: agreeing with scipy, quiet on equals, loud on others."""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from model.drift import kolmogorov_smirnov, shares_differ


def test_the_distance_and_its_chance_are_those_of_scipy() -> None:
    random = np.random.default_rng(0)
    for n, m, moved in [(300, 500, 0.0), (2000, 900, 0.1), (400, 8000, 0.3)]:
        one, other = random.normal(size=n), random.normal(size=m) + moved
        known = ks_2samp(one, other, method="asymp")
        found = kolmogorov_smirnov(one, other)
        assert found.size == pytest.approx(known.statistic)
        assert found.p_value == pytest.approx(known.pvalue, abs=0.02)


def test_shares_differ_as_chi_square_says() -> None:
    random = np.random.default_rng(0)
    for other_shares in ([0.5, 0.3, 0.2], [0.45, 0.33, 0.22], [0.2, 0.3, 0.5]):
        one, other = random.choice(3, 400, p=[0.5, 0.3, 0.2]), random.choice(3, 700, p=other_shares)
        table = np.stack([np.bincount(one, minlength=3), np.bincount(other, minlength=3)])
        assert shares_differ(one, other).p_value == pytest.approx(chi2_contingency(table).pvalue, abs=0.03)


def test_parts_of_the_same_seldom_seem_different() -> None:
    random = np.random.default_rng(0)
    alarms = [0, 0]
    for _ in range(100):
        alarms[0] += kolmogorov_smirnov(random.random(300), random.random(700)).p_value < 0.05
        alarms[1] += shares_differ(random.integers(0, 50, 300), random.integers(0, 50, 700)).p_value < 0.05
    assert max(alarms) <= 12


def test_nothing_is_like_anything() -> None:
    assert kolmogorov_smirnov(np.empty(0), np.ones(3)) == (0.0, 1.0)
    assert shares_differ(np.empty(0, np.int64), np.ones(3, np.int64)) == (0.0, 1.0)
    assert kolmogorov_smirnov(np.ones(5), np.ones(9)) == (0.0, 1.0)
