"""Judge the labels of a library by predictions of models that had not seen them, whatever the task.

A text with one label, flat or a path, is judged by all classes at once; one that may carry several, label by label.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.library.doctor.census import Census
from model.confident import Judgement, judge, judge_sets
from model.metrics import BoolArray, CountArray, gold_matrix
from model.predictions import NO_FOLD, Predictions
from model.types import IntArray, Split, Taxonomy

FEWEST = 5  # samples that a class needs to be judged: with fewer, what is usual of it can't be told
PROBABLY = 0.5  # from here on a label is more probably wrong than right

Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the labels of n samples are worth.

    right: (n,), how probable it is that the given labels are right. proposed: those that fit best instead; None where
    none would, or the taxonomy does not allow them together. confidence: (n,), how probable each change to them is, the
    least of several; 0 without a proposal. claims: (n,), the highest score of a class, 1 where it is what is usual of
    that class.

    classes: the k that were judged. counts: (k,), samples that are labelled so. false: (k,), about how many of these
    are wrong. missing: (k,), about how many samples lack the label. confused: (k, k), samples of the class of the row
    that seem to be of the class of the column, be it people or models who confuse them. unjudged: classes with fewer
    than `FEWEST` samples, or with all in one fold; left_out: samples that were not judged for that.
    """

    taxonomy: Taxonomy
    ids: list[str]
    splits: list[Split]
    given: list[Labels]
    proposed: list[Labels | None]
    right: CountArray
    confidence: CountArray
    claims: CountArray
    classes: Labels
    counts: IntArray
    false: CountArray
    missing: CountArray
    confused: CountArray
    unjudged: Labels
    left_out: int

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def wrong(self) -> CountArray:
        """(n,), how probable it is that the given labels are wrong. Their sum is about how many are."""
        return 1 - self.right

    def errors(self) -> IntArray:
        """Places of the samples whose labels are more probably wrong than right, the surest first."""
        order = np.argsort(self.right, kind="stable")
        return order[self.wrong[order] > PROBABLY]


def still_standing(census: Census, predictions: Predictions) -> IntArray:
    """Places of the predictions whose samples are in the library and have the labels that the models knew them by."""
    places = {sample_id: place for place, sample_id in enumerate(census.ids)}
    rows = [places.get(sample_id) for sample_id in predictions.ids]
    stands = [
        row is not None and frozenset(census.labels(row) or ()) == frozenset(gold)
        for row, gold in zip(rows, predictions.gold, strict=True)
    ]
    return np.flatnonzero(stands)


def judge_labels(predictions: Predictions, taxonomy: Taxonomy, which: IntArray) -> Verdicts:
    """Judge the labels of the predictions at the places `which`; columns of scores are in the order of the taxonomy.

    Raises:
        UnknownLabel: a label is not in the taxonomy.
    """
    gold = gold_matrix([predictions.gold[place] for place in which], taxonomy)
    judged = _judged_labels(gold, predictions.folds[which])
    unjudged = tuple(np.array(taxonomy.labels, object)[gold.any(axis=0) & ~judged])
    columns = np.flatnonzero(judged)
    if len(columns) < 2:
        columns = columns[:0]
    # of a text that may carry several labels, those that can't be judged are left as they are
    is_judged = np.full(len(which), len(columns) > 0) & (gold[:, columns].any(axis=1) | taxonomy.multiple)
    rows = which[is_judged]
    subject = _Subject(
        taxonomy=taxonomy,
        classes=tuple(taxonomy.labels[column] for column in columns),
        given=[predictions.gold[place] for place in rows],
        gold=gold[np.ix_(is_judged, columns)],
    )
    scores = predictions.scores[np.ix_(rows, columns)]
    found = _nothing() if not len(rows) else subject.sets(scores) if taxonomy.multiple else subject.single(scores)
    return Verdicts(
        taxonomy=taxonomy,
        ids=[predictions.ids[place] for place in rows],
        splits=[predictions.splits[place] for place in rows],
        given=subject.given,
        proposed=found.proposed,
        right=found.right,
        confidence=found.confidence,
        claims=found.claims,
        classes=subject.classes,
        counts=subject.gold.sum(axis=0),
        false=found.false,
        missing=found.missing,
        confused=found.confused,
        unjudged=unjudged,
        left_out=len(which) - len(rows),
    )


def _judged_labels(gold: BoolArray, folds: IntArray) -> BoolArray:
    """(n_labels,), which of them enough samples have, and enough have not, and not in one fold of train alone."""
    counts = gold.sum(axis=0)
    judged = (counts >= FEWEST) & (len(gold) - counts >= FEWEST)
    numbers = np.unique(folds[folds != NO_FOLD])
    if len(numbers):
        held = np.stack([gold[folds == fold].any(axis=0) for fold in numbers]).sum(axis=0)
        judged &= held != 1
    result: BoolArray = judged
    return result


@dataclass(frozen=True, slots=True)
class _Found:
    """The part of `Verdicts` that depends on how labels are judged."""

    proposed: list[Labels | None]
    right: CountArray
    confidence: CountArray
    claims: CountArray
    false: CountArray
    missing: CountArray
    confused: CountArray


def _nothing() -> _Found:
    none = np.zeros(0)
    return _Found([], none, none, none, none, none, np.zeros((0, 0)))


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is judged. given: of n samples. gold: (n, k), the same in the columns of the k judged classes."""

    taxonomy: Taxonomy
    classes: Labels
    given: list[Labels]
    gold: BoolArray

    def single(self, scores: np.ndarray) -> _Found:
        """Judge by all classes at once."""
        found = judge(scores, self.gold.argmax(axis=1))
        off = found.joint.copy()
        np.fill_diagonal(off, 0)
        return _Found(
            proposed=[(self.classes[place],) for place in found.proposed],
            right=found.right,
            confidence=found.confidence,
            claims=(scores / found.thresholds).max(axis=1),
            false=off.sum(axis=1),
            missing=off.sum(axis=0),
            confused=found.confident,
        )

    def sets(self, scores: np.ndarray) -> _Found:
        """Judge label by label. A sample is as wrong as the label of it that is most probably wrong."""
        found = judge_sets(scores, self.gold)
        wrong = np.stack([one.wrong for one in found], axis=1)
        changes = wrong > PROBABLY
        worst = wrong.argmax(axis=1)
        changes[np.arange(len(wrong)), worst] = True
        proposed = [self._changed(place, changes[place]) for place in range(len(wrong))]
        least = np.where(changes, wrong, 1.0).min(axis=1)
        false, missing = np.where(self.gold, wrong, 0.0), np.where(self.gold, 0.0, wrong)
        return _Found(
            proposed=proposed,
            right=np.stack([one.right for one in found], axis=1).min(axis=1),
            confidence=np.where([labels is None for labels in proposed], 0.0, least),
            claims=(scores / _usual(found)).max(axis=1),
            false=false.sum(axis=0),
            missing=missing.sum(axis=0),
            confused=false.T @ missing,
        )

    def _changed(self, place: int, changes: BoolArray) -> Labels | None:
        """The labels of a sample after changes to those of the k classes; None where it can't have these."""
        labels = set(self.given[place]) ^ {self.classes[column] for column in np.flatnonzero(changes)}
        labels = self.taxonomy.deepest(labels)
        if not labels or labels == set(self.given[place]) or self.taxonomy.misfit(labels):
            return None
        return tuple(sorted(labels))


def _usual(found: Sequence[Judgement]) -> CountArray:
    """(k,), the score that is usual of samples with each label."""
    return np.array([one.thresholds[1] for one in found])
