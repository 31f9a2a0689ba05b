"""Whether two sets of texts are alike: what a guarantee from one says about the other rests on that. Numpy alone."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.types import IntArray

Values = NDArray[np.float64]

DRAWS = 2000  # of the permutation test
SERIES = 100  # terms of Kolmogorov's distribution: far more than it needs
RARE = 5  # categories with fewer of both sets together are taken as one


class Difference(NamedTuple):
    """How much two sets differ, 0 to 1, and how likely so much is by chance."""

    size: float
    p_value: float


def kolmogorov_smirnov(one: Values, other: Values) -> Difference:
    """The greatest distance between the distributions of two sets of numbers, (n,) and (m,); its chance asymptotic.

    With ties it is too careful: differences seem likelier by chance than they are. See Press et al., "Numerical
    Recipes", 14.3.
    """
    n, m = len(one), len(other)
    if not n or not m:
        return Difference(0.0, 1.0)
    values = np.unique(np.concatenate([one, other]))
    below = [np.searchsorted(np.sort(each), values, side="right") / len(each) for each in (one, other)]
    size = float(np.abs(below[0] - below[1]).max())
    root = np.sqrt(n * m / (n + m))
    reach = (root + 0.12 + 0.11 / root) * size
    if reach < 0.2:  # the series does not converge there, and the chance is 1 in 12 digits
        return Difference(size, 1.0)
    terms = np.arange(1, SERIES + 1)
    chance = 2 * float(((-1.0) ** (terms - 1) * np.exp(-2 * (terms * reach) ** 2)).sum())
    return Difference(size, min(1.0, max(0.0, chance)))


def shares_differ(one: IntArray, other: IntArray, *, seed: int = 0) -> Difference:
    """The total variation between the shares of categories, numbered from 0, in two sets, (n,) and (m,).

    The chance is that of a permutation test on chi-square; rare categories are taken together.
    """
    n, m = len(one), len(other)
    if not n or not m:
        return Difference(0.0, 1.0)
    width = int(max(one.max(), other.max())) + 1
    counts = np.stack([np.bincount(each, minlength=width) for each in (one, other)])
    rare = counts.sum(axis=0) < RARE
    table = np.column_stack([counts[:, ~rare], counts[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    size = float(np.abs(table[0] / n - table[1] / m).sum() / 2)
    totals = table.sum(axis=0)
    expected = totals * n / (n + m)
    # For given totals, chi-square of both rows is a multiple of this, of the first.
    seen = ((table[0] - expected) ** 2 / totals).sum()
    draws = np.random.default_rng(seed).multivariate_hypergeometric(totals, n, size=DRAWS, method="marginals")
    drawn = ((draws - expected) ** 2 / totals).sum(axis=1)
    return Difference(size, float((1 + (drawn >= seen * (1 - 1e-12)).sum()) / (1 + DRAWS)))
