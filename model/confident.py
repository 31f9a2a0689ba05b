"""Confident learning: which labels are probably wrong, by models that have not seen them. Numpy and nothing else.

Northcutt, Jiang, Chuang 2021, "Confident Learning: Estimating Uncertainty in Dataset Labels": how many samples of each
class carry which label is estimated by counting those that a model is as confident of as it usually is of the class.
From there on it is Bayes' rule: the estimate says how often a class is mislabelled as another, so that a label is
judged by the model's scores and by how usual the mistake would be.

Models that learned wrong labels, and whose temperature was fitted on some, are less sure than they could be. How much
sharper their scores should be is fitted together with the mistakes, and they are sharpened half as much: fully, they
come out too sure, and not at all, too unsure. `docs/experiments.md` has the figures, for the rankings, too.
"""

from dataclasses import dataclass

import numpy as np

from model.errors import BadInput
from model.metrics import BoolArray, CountArray, golden_section
from model.types import FloatArray, IntArray

# Of each class, so many samples are imagined beside the real ones, mislabelled as often as all samples are and as any
# other class: a few confusions of a small class are no sign that people mistake it.
IMAGINED = 300.0
REFINEMENTS = 3  # each gains less than the one before; on planted errors the fourth gained nothing
SHARPENED = 0.5  # of the way, in logarithms, to the temperature that makes the given labels likeliest
TEMPERATURES = (0.2, 5.0)
ROWS_FITTED = 20_000  # of which the temperature is fitted, evenly spread: more would not move it
SMALLEST = 1e-12  # of a score: a model that gives 0 is not believed to know that
ROUNDING = 1 - 1e-9  # the mean of scores that are all the same may come out larger than they are


@dataclass(frozen=True, slots=True)
class Judgement:
    """What n labels are worth. given: (n,), the class that each sample is labelled as.

    posterior: (n, n_classes), how probable it is that a class is the true one, by the scores and the given label.
    thresholds: (n_classes,), how confident the model usually is of samples that are labelled so.
    confident: (n_classes, n_classes), samples by their given class, a row each, and their true one, a column each, as
    confident learning estimates it. It counts what the model confuses, too. joint: the same by the posterior, which
    explains away most of that.
    """

    given: IntArray
    posterior: CountArray
    thresholds: CountArray
    confident: CountArray
    joint: CountArray

    @property
    def right(self) -> CountArray:
        """(n,), how probable it is that the given label is right. Ranks best: near 0 it is more exact than `wrong`."""
        column: CountArray = np.take_along_axis(self.posterior, self.given[:, None], axis=1)[:, 0]
        return column

    @property
    def wrong(self) -> CountArray:
        """(n,), how probable it is that the given label is wrong."""
        return 1 - self.right

    @property
    def proposed(self) -> IntArray:
        """(n,), the most probable class other than the given one."""
        best: IntArray = self._others().argmax(axis=1)
        return best

    @property
    def confidence(self) -> CountArray:
        """(n,), how probable it is that the proposed class is the true one."""
        highest: CountArray = self._others().max(axis=1)
        return highest

    def _others(self) -> CountArray:
        others = self.posterior.copy()
        np.put_along_axis(others, self.given[:, None], -1.0, axis=1)
        return others


def judge(scores: FloatArray, given: IntArray) -> Judgement:
    """Judge the labels of texts that carry one each.

    scores: (n, n_classes), 0 to 1, by models that have not seen the sample. given: (n,), positions in the columns;
    every class has samples.

    Raises:
        BadInput: a score is not a number from 0 to 1; there are fewer classes than two, or one without samples; or the
        shapes don't go together.
    """
    _check(scores, given)
    n_classes = scores.shape[1]
    counts = np.bincount(given, minlength=n_classes).astype(np.float64)
    if n_classes < 2 or not counts.all():
        raise BadInput(
            f"{n_classes} classes with {counts.astype(int).tolist()} samples: judge two or more that have some"
        )
    wide = np.maximum(scores.astype(np.float64), SMALLEST)
    thresholds = np.bincount(given, weights=wide[np.arange(len(given)), given], minlength=n_classes) / counts
    confident = joint = _confident_joint(wide, given, thresholds, counts)
    logits = np.log(wide)
    for _ in range(REFINEMENTS + 1):
        mislabelling = _mislabelling(joint, counts)
        posterior = _sharpened(logits, given, mislabelling) * mislabelling[given]
        posterior /= posterior.sum(axis=1, keepdims=True)
        joint = np.zeros_like(confident)
        np.add.at(joint, given, posterior)
    return Judgement(given=given, posterior=posterior, thresholds=thresholds, confident=confident, joint=joint)


def judge_sets(scores: FloatArray, given: BoolArray) -> list[Judgement]:
    """Judge the labels of texts that may carry several, every label by itself (Thyagarajan et al. 2022).

    scores, given: (n, n_labels). The judgement of each label is one of two classes: 0, not given, and 1, given.

    Raises:
        BadInput: as `judge`; a label that all samples have, or none.
    """
    if scores.shape != given.shape:
        raise BadInput(f"scores of shape {scores.shape} can't be of labels of shape {given.shape}")
    return [
        judge(np.stack([1 - column, column], axis=1), labels.astype(np.int64))
        for column, labels in zip(scores.T, given.T, strict=True)
    ]


def _check(scores: FloatArray, given: IntArray) -> None:
    if scores.ndim != 2 or given.shape != scores.shape[:1] or not len(given):
        raise BadInput(f"scores of shape {scores.shape} can't be of {given.shape} labels; give a row for each label")
    if given.min() < 0 or given.max() >= scores.shape[1]:
        raise BadInput(f"labels from {given.min()} to {given.max()} are not among {scores.shape[1]} classes")
    odd = ~((scores >= 0) & (scores <= 1))  # NaN is neither
    if odd.any():
        row, column = np.argwhere(odd)[0]
        raise BadInput(f"row {row} has the score {scores[row, column]} for class {column}, which is not from 0 to 1")


def _confident_joint(scores: CountArray, given: IntArray, thresholds: CountArray, counts: CountArray) -> CountArray:
    """(n_classes, n_classes), estimated samples by given and true class; the rows add up to `counts`.

    A sample counts as of the class with the highest score among those whose threshold it reaches, or not at all.
    """
    reached = np.where(scores >= thresholds * ROUNDING, scores, -1.0)
    best = reached.argmax(axis=1)
    counted = reached.max(axis=1) >= 0
    joint = np.zeros((len(counts), len(counts)))
    np.add.at(joint, (given[counted], best[counted]), 1.0)
    empty = joint.sum(axis=1) == 0
    joint[empty, empty] = 1.0
    calibrated: CountArray = joint / joint.sum(axis=1, keepdims=True) * counts[:, None]
    return calibrated


def _mislabelling(joint: CountArray, counts: CountArray) -> CountArray:
    """(n_classes, n_classes), how often a sample of the class of the column is labelled as the class of the row."""
    total = counts.sum()
    rate = max(total - np.trace(joint), 1.0) / total  # one sample may always be wrong
    imagined = rate * counts[:, None] / (total - counts)[None, :]
    np.fill_diagonal(imagined, 1 - rate)
    shares: CountArray = (joint + IMAGINED * imagined) / (joint.sum(axis=0) + IMAGINED)
    return shares


def _sharpened(logits: CountArray, given: IntArray, mislabelling: CountArray) -> CountArray:
    """(n, n_classes), scores of `logits`, sharpened towards what makes the given labels likeliest."""
    some = slice(None, None, 1 + len(given) // ROWS_FITTED)
    rates, few = mislabelling[given[some]], logits[some]

    def loss(log_temperature: float) -> float:  # with the prior of `fit_temperature`
        likelihood = np.log((_softmax(few / np.exp(log_temperature)) * rates).sum(axis=1)).sum()
        return float(log_temperature**2 - likelihood)

    low, high = np.log(TEMPERATURES)
    return _softmax(logits / np.exp(SHARPENED * golden_section(loss, low, high, tolerance=0.01)))


def _softmax(logits: CountArray) -> CountArray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    scores: CountArray = powers / powers.sum(axis=1, keepdims=True)
    return scores
