"""Selective classification with a guarantee: which predictions may be accepted so that few of them are wrong.

A threshold on the confidence is chosen from calibration samples, whose labels are known, for a pool, whose are not.
Numpy and nothing else. The method and its proof are in docs/gate.md.
"""

from dataclasses import dataclass
from math import ceil, exp, floor, lgamma, log, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.errors import BadInput
from model.metrics import BoolArray
from model.types import FloatArray

Confidences = NDArray[np.float64]
Counts = NDArray[np.int64]

STEPS = 100  # coverages of the pool that are tried: 1 %, 2 %, … 100 %
# Where the tests start: where this many times the fewest samples that could pass lie above, and at every doubling of
# that which leaves some of the calibration samples for the tests to go on to. Measured in docs/experiments.md.
FIRST_START = 3.0
LAST_START = 0.7  # of the calibration samples
FEWEST_START = 1.1  # times the fewest samples that could pass, where there are few
LARGER_ERRORS = (0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)  # that are offered instead


@dataclass(frozen=True, slots=True)
class Bound:
    """What is to hold: with `confidence`, at most `max_error` of the accepted predictions are wrong.

    Raises:
        BadInput: one of them is no such share.
    """

    max_error: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.max_error < 1:
            raise BadInput(f"max error {self.max_error:g}: give a share between 0 and 1, such as 0.02")
        if not 0.5 <= self.confidence < 1:
            raise BadInput(f"confidence {self.confidence:g}: give one from 0.5 to below 1, such as 0.95")

    @property
    def delta(self) -> float:
        """How likely it may be that the bound is broken."""
        return 1 - self.confidence

    def shared_by(self, several: int) -> "Bound":
        """The bound that each of `several` has to keep so that all of them keep this one (Bonferroni)."""
        return Bound(self.max_error, 1 - self.delta / several)


class Tested(NamedTuple):
    """A threshold that was tested.

    coverage: the share of the pool at or above it. accepted: how many of the pool that are. calibration: how many
    calibration samples are, `errors` of them wrong. p_value: how likely so few errors are if the bound does not hold.
    level: the p-value that was asked for. start: whether the tests start here (too). passed: p_value ≤ level.
    """

    threshold: float
    coverage: float
    accepted: int
    calibration: int
    errors: int
    p_value: float
    level: float
    start: bool
    passed: bool


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the tests came to. best: the last that passed, the one with the greatest coverage; None where none did.

    calibration: samples in all. needed: calibration samples that it takes at least, all of them right. tests: in their
    order.
    """

    bound: Bound
    calibration: int
    needed: int
    tests: tuple[Tested, ...]
    best: Tested | None

    @property
    def upper(self) -> float | None:
        """The Clopper-Pearson bound on the share of errors above the threshold."""
        if self.best is None:
            return None
        return clopper_pearson(self.best.errors, self.best.calibration, self.bound.delta)


def choose_threshold(calibration: Confidences, wrong: BoolArray, pool: Confidences, bound: Bound) -> Chosen:
    """The lowest threshold on the confidence that the calibration samples support.

    calibration, wrong: (n,), how sure the model is of each calibration sample, and whether it is wrong. pool: (m,), how
    sure it is of those whose labels are not known. Neither holds predictions that are never accepted.

    The thresholds are quantiles of the pool's confidences and the starts follow from the numbers of samples, so all of
    it is fixed before any error is counted. Each threshold's null hypothesis is that the bound does not hold above it.
    From the most confident on they are tested one after the other, by Wiens' (2003) fallback procedure: delta is split
    among the starts, a test that passes hands its level to the next, and one that fails loses it. That keeps the chance
    of any false rejection at delta, whatever the tests have to do with each other; with one start it is fixed-sequence
    testing (Bauer 1991; Angelopoulos et al. 2021, "Learn then Test"). `p_value` says what a test asks.
    """
    n, m = len(calibration), len(pool)
    needed = fewest_samples(bound)
    if not n or not m:
        return Chosen(bound, n, needed, (), None)
    descending = -np.sort(-pool)
    ranks = np.ceil(np.arange(1, STEPS + 1) / STEPS * m).astype(int) - 1
    thresholds = np.unique(descending[ranks])[::-1]  # coverages that a tie makes one are one
    accepted = np.searchsorted(-descending, -thresholds, side="right")
    order = np.argsort(-calibration, kind="stable")
    errors_before = np.concatenate([[0], np.cumsum(wrong[order])])
    above = np.searchsorted(-calibration[order], -thresholds, side="right")
    starts = _starts(accepted / m, n, needed)
    tests: list[Tested] = []
    level = 0.0
    for index in range(min(starts), len(thresholds)):
        level += bound.delta / len(starts) if index in starts else 0.0
        if not level:
            continue
        size, errors, taken = int(above[index]), int(errors_before[above[index]]), int(accepted[index])
        p = p_value(errors, size, taken, bound.max_error)
        passed = p <= level
        tests.append(
            Tested(float(thresholds[index]), taken / m, taken, size, errors, p, level, index in starts, passed)
        )
        level = level if passed else 0.0
    best = max((test for test in tests if test.passed), key=lambda test: test.accepted, default=None)
    return Chosen(bound, n, needed, tuple(tests), best)


def supported_error(calibration: Confidences, wrong: BoolArray, pool: Confidences, bound: Bound) -> float | None:
    """The smallest of `LARGER_ERRORS` above the bound's with which something could be accepted, None with none of them.

    calibration, wrong, pool: as `choose_threshold`. It is a hint: whoever takes an error because the data support it
    has chosen by the data, and the guarantee is then a little less sure than it says.
    """
    for max_error in LARGER_ERRORS:
        larger = Bound(max_error, bound.confidence)
        able = max_error > bound.max_error and fewest_samples(larger) <= len(calibration)
        if able and choose_threshold(calibration, wrong, pool, larger).best:
            return max_error
    return None


def p_value(errors: int, calibration: int, accepted: int, max_error: float) -> float:
    """How likely it is at most that so few of the calibration samples are wrong although the bound does not hold.

    It is the greater of two. The exact binomial one: the chance of an error is above `max_error` for texts like these.
    And the exact hypergeometric one, of the very pool: more than `max_error` of the `accepted` (rounded up to a whole
    text) are wrong, while the calibration samples are as good as any others of all that lie above the threshold.
    """
    if not calibration:
        return 1.0
    broken = floor(_rounded_up(max_error * accepted)) + 1  # errors in the pool
    tail = binomial_tail(errors, calibration, max_error)
    if broken > accepted:
        return tail
    return max(tail, hypergeometric_tail(errors, calibration + accepted, errors + broken, calibration))


def fewest_samples(bound: Bound) -> int:
    """The fewest calibration samples that can pass, all of them right: 149 at 2 % and 95 %."""
    return ceil(log(bound.delta) / log1p(-bound.max_error) - 1e-9)


def samples_for(errors: int, bound: Bound) -> int:
    """The fewest calibration samples that pass with that many errors among them."""
    low, high = errors, fewest_samples(bound) + 1
    while binomial_tail(errors, high, bound.max_error) > bound.delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        passes = binomial_tail(errors, middle, bound.max_error) <= bound.delta
        low, high = (low, middle) if passes else (middle, high)
    return high


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(X ≤ k) of a binomial X: of n, each with chance p, 0 < p < 1. In log space, so that no n is too large."""
    if k >= n:
        return 1.0
    if k < 0:
        return 0.0
    last = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p)
    i = np.arange(k, 0, -1, dtype=np.float64)
    return _sum(last, np.log(i) - np.log(n - i + 1) + log1p(-p) - log(p))


def hypergeometric_tail(k: int, total: int, marked: int, drawn: int) -> float:
    """P(X ≤ k) of a hypergeometric X: how many of `marked` among `total` are among the `drawn`."""
    if k >= min(marked, drawn):
        return 1.0
    least = max(0, drawn - (total - marked))
    if k < least:
        return 0.0
    rest = total - marked
    last = _log_choose(marked, k) + _log_choose(rest, drawn - k) - _log_choose(total, drawn)
    i = np.arange(k, least, -1, dtype=np.float64)
    return _sum(last, np.log(i) + np.log(rest - drawn + i) - np.log(marked - i + 1) - np.log(drawn - i + 1))


def clopper_pearson(errors: int, n: int, delta: float) -> float:
    """The exact upper bound on a rate of which `errors` of n were seen, right with 1 - delta; Clopper, Pearson 1934."""
    if errors >= n:
        return 1.0
    low, high = errors / n, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (middle, high) if binomial_tail(errors, n, middle) > delta else (low, middle)
    return high


def confidences(scores: FloatArray, chosen: BoolArray, *, multiple: bool) -> Confidences:
    """How sure the model is of each row's labels, (n,): of one label its score; of several, that the set is just right.

    scores, chosen: (n, n_labels). A set of labels is right if each chosen one is right and each other one is wrong;
    its confidence is the product of these chances, as if labels were independent. It need not be calibrated: it only
    has to put the texts in an order.
    """
    if not multiple:
        best: Confidences = scores.max(axis=1).astype(np.float64)
        return best
    wide = scores.astype(np.float64)
    with np.errstate(divide="ignore"):  # a score of just 0 or 1, the other way round
        sure: Confidences = np.exp(np.log(np.where(chosen, wide, 1 - wide)).sum(axis=1))
    return sure


def _starts(coverage: Confidences, n: int, needed: int) -> set[int]:
    """The positions among the coverages, ascending, where the tests start; n: calibration samples."""
    first = max(FEWEST_START * needed, min(FIRST_START * needed, LAST_START * n))
    wanted = [first]
    while 2 * wanted[-1] <= LAST_START * n:
        wanted.append(2 * wanted[-1])
    last = len(coverage) - 1
    return {min(int(np.searchsorted(coverage * n, size)), last) for size in wanted}


def _rounded_up(value: float) -> int:
    return ceil(value - 1e-9)  # 0.02 * 50 is 1, whatever floats make of it


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _sum(last: float, steps: Confidences) -> float:
    """The sum of probabilities, of which the log of the last is known, and by how much each one before it differs."""
    logs = last + np.concatenate([[0.0], np.cumsum(steps)])
    highest = float(logs.max())
    return min(1.0, exp(highest + log(float(np.exp(logs - highest).sum()))))
