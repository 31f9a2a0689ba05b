"""Whether the gate keeps its word on real data: how often the bound is broken on what was not calibrated on, and how
much is accepted.

    python tests/benchmarks/gate.py RUN... [--resamples 200] [--calibration 0.5] [--max-error 0.02 0.05]

RUN: folders of trained runs; their predictions of the test split, which no model was trained on, are split again and
again into calibration samples and a pool. A resample breaks the bound if more than max_error of what it accepts of the
pool is wrong. Beside it stand the same without regard for the size of the pool (binomial alone), and SGR (Geifman and
El-Yaniv 2017, "Selective Classification for Deep Neural Networks", algorithm 2). Drift: how often parts of the same
are taken for different, and whether the other runs' texts are, by confidence.
"""

import argparse
import sys
from collections.abc import Callable
from math import ceil, log2
from pathlib import Path
from typing import NamedTuple

import numpy as np

from model import selective
from model.drift import kolmogorov_smirnov, shares_differ
from model.metrics import BoolArray, gold_matrix, predicted_matrix
from model.predictions import read_predictions
from model.run import Run
from model.selective import Bound, Confidences, binomial_tail, choose_threshold, confidences
from model.types import IntArray, Split

ALARM, CHECKS, LARGE = 0.05, 3, 0.1  # as in app.library.gate.comparing
Method = Callable[[Confidences, BoolArray, Confidences, Bound], float]


class Judged(NamedTuple):
    """Test samples: how sure the model is of each, whether it is wrong, and which labels it predicts."""

    name: str
    sure: Confidences
    wrong: BoolArray
    sets: IntArray


def main() -> None:
    """Print a table a run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--calibration", type=float, nargs="+", default=[0.5], help="shares of the test split")
    parser.add_argument("--max-error", type=float, nargs="+", default=[0.02, 0.05])
    options = parser.parse_args()
    everything = [judge(path) for path in options.runs]
    for judged in everything:
        say(f"{judged.name}: {len(judged.sure):,} samples, {judged.wrong.mean():.4f} wrong")
        for share in options.calibration:
            for max_error in options.max_error:
                compare(judged, round(share * len(judged.sure)), max_error, options.resamples)
        drift(judged, everything, options.resamples)


def say(line: str) -> None:
    """A line of the table, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def judge(path: Path) -> Judged:
    """The test split of the run, as it was predicted."""
    run = Run.open(path)
    predictions = read_predictions(path, run.taxonomy)
    rows = np.array([split is Split.TEST for split in predictions.splits])
    scores = predictions.scores[rows]
    chosen = predicted_matrix(scores, run.taxonomy, run.calibration.get("thresholds"))
    gold = gold_matrix([labels for labels, row in zip(predictions.gold, rows, strict=True) if row], run.taxonomy)
    sets = np.unique(chosen, axis=0, return_inverse=True)[1].ravel()
    sure = confidences(scores, chosen, multiple=run.taxonomy.multiple)
    able = chosen.any(axis=1)
    return Judged(path.name, sure[able], (chosen != gold).any(axis=1)[able], sets[able])


def compare(judged: Judged, size: int, max_error: float, resamples: int) -> None:
    """Split again and again into `size` calibration samples and a pool; one line a method."""
    order = np.argsort(-judged.sure, kind="stable")
    rates = np.cumsum(judged.wrong[order]) / np.arange(1, len(order) + 1)
    possible = (np.flatnonzero(rates <= max_error).max(initial=-1) + 1) / len(order)
    say(f"  max_error {max_error:g}, calibration {size:,}: with all labels known, {possible:.3f} could be accepted")
    for name, method in METHODS.items():
        broken, coverages = 0, []
        for seed in range(resamples):
            shuffled = np.random.default_rng(seed).permutation(len(judged.sure))
            given, rest = shuffled[:size], shuffled[size:]
            threshold = method(judged.sure[given], judged.wrong[given], judged.sure[rest], Bound(max_error))
            accepted = judged.sure[rest] >= threshold
            broken += judged.wrong[rest][accepted].sum() > max_error * accepted.sum()
            coverages.append(accepted.mean())
        low, median, high = np.percentile(coverages, [10, 50, 90])
        nothing = sum(coverage == 0 for coverage in coverages)
        say(
            f"    {name:15} broken {broken:3} of {resamples}  coverage median {median:.3f} mean "
            f"{np.mean(coverages):.3f} (10–90 %: {low:.3f}–{high:.3f})  nothing accepted {nothing}"
        )


def gate(sure: Confidences, wrong: BoolArray, pool: Confidences, bound: Bound) -> float:
    """The threshold that the gate takes."""
    best = choose_threshold(sure, wrong, pool, bound).best
    return best.threshold if best else np.inf


def one_start(sure: Confidences, wrong: BoolArray, pool: Confidences, bound: Bound) -> float:
    """Fixed-sequence testing from one start, twice the fewest samples that could pass: no second chance."""
    kept = selective.FIRST_START, selective.LAST_START
    selective.FIRST_START, selective.LAST_START = 2.0, 0.0  # type: ignore[misc]
    selective.FEWEST_START, fewest = 2.0, selective.FEWEST_START  # type: ignore[misc]
    try:
        return gate(sure, wrong, pool, bound)
    finally:
        selective.FIRST_START, selective.LAST_START = kept  # type: ignore[misc]
        selective.FEWEST_START = fewest  # type: ignore[misc]


def binomial_alone(sure: Confidences, wrong: BoolArray, pool: Confidences, bound: Bound) -> float:
    """The gate without regard for the size of the pool: a bound on the chance of an error, not on their share in it."""
    kept = selective.p_value
    selective.p_value = lambda k, n, _, error: binomial_tail(k, n, error) if n else 1.0
    try:
        return gate(sure, wrong, pool, bound)
    finally:
        selective.p_value = kept


def sgr(sure: Confidences, wrong: BoolArray, _: Confidences, bound: Bound) -> float:
    """Selection with guaranteed risk: a binary search, delta split among its steps."""
    order = np.argsort(sure, kind="stable")
    ranked, errors_from = sure[order], np.append(np.cumsum(wrong[order][::-1])[::-1], 0)
    steps = ceil(log2(len(ranked)))
    low, high, threshold = 0, len(ranked) - 1, np.inf
    for _step in range(steps):
        middle = ceil((low + high) / 2)
        held = binomial_tail(int(errors_from[middle]), len(ranked) - middle, bound.max_error) <= bound.delta / steps
        threshold = float(ranked[middle]) if held else threshold
        low, high = (low, middle) if held else (middle, high)
    return threshold


METHODS: dict[str, Method] = {"gate": gate, "one start": one_start, "binomial alone": binomial_alone, "SGR": sgr}


def drift(judged: Judged, everything: list[Judged], resamples: int) -> None:
    """How often halves of the same seem different, and whether others do."""
    alarms = 0
    for seed in range(resamples):
        halves = np.array_split(np.random.default_rng(seed).permutation(len(judged.sure)), 2)
        found = (
            kolmogorov_smirnov(*(judged.sure[half] for half in halves)),
            shares_differ(*(judged.sets[half] for half in halves)),
        )
        alarms += any(each.p_value < ALARM / CHECKS and each.size >= LARGE for each in found)
    say(f"  drift: halves of the same are told as different {alarms} times of {resamples}")
    for other in everything:
        if other is not judged:
            size, p_value = kolmogorov_smirnov(judged.sure, other.sure)
            say(f"  drift: confidences of {other.name}: difference {size:.3f}, p {p_value:.2g}")


if __name__ == "__main__":
    main()
