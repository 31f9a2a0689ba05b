"""Curves of one classifier: how far its scores can be trusted, and its errors if it kept silent at times."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.metrics import ECE_BINS, BoolArray
from model.types import FloatArray

POINTS = 100  # of a risk–coverage curve


class Bin(NamedTuple):
    """Decisions of like sureness. sure: their mean score. right: the share of them that were right. n: how many."""

    sure: float
    right: float
    n: int


def reliability(sure: FloatArray, right: BoolArray) -> list[Bin]:
    """How often decisions were right, by how sure the model was; the bins of `ece` that are not empty.

    sure, right: (n_decisions,), as `model.metrics.sureness` gives them.
    """
    bins = np.minimum((sure * ECE_BINS).astype(int), ECE_BINS - 1)
    counts = np.bincount(bins, minlength=ECE_BINS)
    sums = [np.bincount(bins, weights=values, minlength=ECE_BINS) for values in (sure, right)]
    return [
        Bin(float(its_sure / count), float(its_right / count), int(count))
        for its_sure, its_right, count in zip(*sums, counts, strict=True)
        if count
    ]


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """coverage: shares of the texts that are answered, the surest first. risk: the share of those that are wrong.

    area: under the whole curve, the mean risk over all coverages (AURC; Geifman and El-Yaniv 2017).
    """

    coverage: list[float]
    risk: list[float]
    area: float


def risk_coverage(confidence: NDArray[np.floating[Any]], exact: BoolArray) -> RiskCoverage:
    """confidence: (n,), of each text's answer; exact: (n,), whether all its labels are right.

    Texts of one confidence are answered together, so their order among themselves means nothing.
    """
    order = np.argsort(-confidence, kind="stable")
    ranked, wrong = confidence[order], ~exact[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # of each confidence
    answered, errors = last + 1, wrong.cumsum()[last]
    risk, n = errors / answered, len(confidence)
    area = float((risk * np.diff(answered, prepend=0)).sum() / n)
    shown = np.unique(np.searchsorted(answered, np.linspace(1, n, min(n, POINTS))))
    return RiskCoverage((answered[shown] / n).tolist(), risk[shown].tolist(), area)
