"""Whether one classifier is really better than another: paired tests on the same texts. Numpy and nothing else.

Matrices are (n, n_labels) and boolean, as in `model.metrics`, whose figures these are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.metrics import BoolArray, macro_f1, micro_f1
from model.selective import binomial_tail

Draws = NDArray[np.float64]  # a figure in each resample

RESAMPLES = 10_000
COUNTS_AT_ONCE = 4_000_000  # of texts in resamples that a step holds: 16 MB
FEWEST_SEEDS = 3  # of one recipe from which its seeds are drawn, too; fewer say nothing of their spread


@dataclass(frozen=True, slots=True)
class Resampled:
    """Figures of runs on the same resamples of the texts, each (n_runs, resamples)."""

    accuracy: Draws
    macro_f1: Draws
    micro_f1: Draws


def resample(
    gold: BoolArray, predicted: Sequence[BoolArray], *, resamples: int = RESAMPLES, seed: int = 0
) -> Resampled:
    """The figures of every run in `predicted` on `resamples` draws of n texts with replacement (Efron 1979).

    All runs are judged on the same draws, so that what differs between two of them is theirs and not the texts'.
    """
    n, random = len(gold), np.random.default_rng(seed)
    exact = np.stack([(one == gold).all(axis=1) for one in predicted], axis=1).astype(np.float32)
    hits = [(one & gold).astype(np.float32) for one in predicted]
    chosen = [one.astype(np.float32) for one in predicted]
    support = gold.astype(np.float32)
    parts: list[list[Draws]] = []
    at_once = max(1, COUNTS_AT_ONCE // n)
    for start in range(0, resamples, at_once):
        size = min(at_once, resamples - start)
        drawn = np.stack([np.bincount(random.integers(0, n, n), minlength=n) for _ in range(size)]).astype(np.float32)
        its_support = drawn @ support
        counts = [(drawn @ hit, drawn @ choice, its_support) for hit, choice in zip(hits, chosen, strict=True)]
        parts.append(
            [
                (drawn @ exact / n).T.astype(np.float64),
                np.stack([macro_f1(*own) for own in counts]),
                np.stack([micro_f1(*own) for own in counts]),
            ]
        )
    accuracy, macro, micro = (np.concatenate(figure, axis=1) for figure in zip(*parts, strict=True))
    return Resampled(accuracy=accuracy, macro_f1=macro, micro_f1=micro)


def over_seeds(draws: Draws, *, seed: int = 0) -> Draws:
    """The mean of the runs of one recipe in each resample: (n_runs, resamples) → (resamples,).

    From `FEWEST_SEEDS` runs on the runs are drawn with replacement, too: the second level of the bootstrap.
    """
    n_runs, resamples = draws.shape
    if n_runs < FEWEST_SEEDS:
        return np.asarray(draws.mean(axis=0))
    picked = np.random.default_rng(seed).integers(0, n_runs, (n_runs, resamples))
    return np.asarray(np.take_along_axis(draws, picked, axis=0).mean(axis=0))


def interval(draws: Draws, confidence: float = 0.95) -> tuple[float, float]:
    """Where the middle `confidence` of a figure's resamples lies."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def two_sided_p(differences: Draws) -> float:
    """How seldom resamples come out on the other side of 0, twice; never quite 0 (Davison and Hinkley 1997, 4.4)."""
    beyond = min((differences <= 0).sum(), (differences >= 0).sum())
    return float(min(1.0, 2 * (1 + beyond) / (1 + len(differences))))


class McNemar(NamedTuple):
    """The texts that only one of two classifiers has right, and how likely so uneven a split is by chance."""

    only_one: int
    only_other: int
    p: float


def mcnemar(one: BoolArray, other: BoolArray) -> McNemar:
    """McNemar's exact test of two classifiers; one, other: (n,), whether each has text i right (McNemar 1947)."""
    only_one, only_other = int((one & ~other).sum()), int((other & ~one).sum())
    p = min(1.0, 2 * binomial_tail(min(only_one, only_other), only_one + only_other, 0.5))
    return McNemar(only_one, only_other, p)


def holm(p_values: Sequence[float]) -> list[float]:
    """`p_values` adjusted so that one error among all of them is as unlikely as one alone was (Holm 1979)."""
    order = np.argsort(p_values, kind="stable")
    raised = np.array(p_values)[order] * np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(raised))
    return [float(value) for value in adjusted]


class Equivalence(NamedTuple):
    """Of a difference and a margin. not_worse: by more than the margin. equivalent: nor better by more than it.

    low, high: the two one-sided 95 % bounds, which is the 90 % interval (Schuirmann 1987).
    """

    low: float
    high: float
    not_worse: bool
    equivalent: bool


def equivalence(differences: Draws, margin: float) -> Equivalence:
    """Whether a figure is not worse, or as good, within `margin`; differences: of its resamples."""
    low, high = interval(differences, 0.90)
    return Equivalence(low, high, not_worse=low > -margin, equivalent=-margin < low and high < margin)
