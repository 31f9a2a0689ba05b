"""What a model says of samples, as the gate weighs it: a set of labels each, and how sure the model is of just that."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from app.library.scoring import OnTexts, Scored, score_pool
from app.store.texts import SampleText
from model.metrics import BoolArray, predicted_matrix
from model.runtime.base import Classifier
from model.selective import Confidences, confidences
from model.types import FloatArray, IntArray


class Predicted(NamedTuple):
    """What is said of n samples.

    ids: of the samples. sets: (n,), which labels, a position in `Predictor.sets`. sure: (n,), 0 to 1. able: (n,),
    whether it is something that could be accepted at all. lengths: (n,), characters.
    """

    ids: list[str]
    sets: IntArray
    sure: Confidences
    able: BoolArray
    lengths: IntArray


def together(one: Predicted, other: Predicted) -> Predicted:
    """The samples of both, those of `one` first."""
    return Predicted(
        one.ids + other.ids,
        np.concatenate([one.sets, other.sets]),
        np.concatenate([one.sure, other.sure]),
        np.concatenate([one.able, other.able]),
        np.concatenate([one.lengths, other.lengths]),
    )


class Predictor:
    """Predicts sets of labels and numbers them. `sets`: the sets so far, each sorted."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.sets: list[tuple[str, ...]] = []
        self._numbers: dict[bytes, int] = {}
        self._able: list[bool] = []

    def predict(self, samples: Iterable[SampleText], *, on_texts: OnTexts = lambda _: None) -> Predicted:
        """What the model says of `samples`, in flat memory but for some 120 bytes a sample.

        Raises:
            BadText: the bundle's normaliser leaves nothing of a text.
        """
        ids: list[str] = []
        none = Predicted(ids, np.empty(0, np.int64), np.empty(0), np.empty(0, bool), np.empty(0, np.int64))
        parts = [none, *(self._part(some, ids) for some in score_pool(self.classifier, samples, on_texts=on_texts))]
        return Predicted(ids, *(np.concatenate(column) for column in list(zip(*parts, strict=True))[1:]))

    def _part(self, some: Scored, ids: list[str]) -> Predicted:
        taxonomy, decoder = self.classifier.taxonomy, self.classifier.decoder
        chosen = predicted_matrix(some.scores, taxonomy, decoder.thresholds)
        packed = np.packbits(chosen, axis=1)
        sets = np.array([self._number(row.tobytes(), labels) for row, labels in zip(packed, chosen, strict=True)])
        sure = confidences(some.scores, chosen, multiple=taxonomy.multiple)
        able = np.array([self._able[number] for number in sets]) & _sure_enough(some.scores, decoder.abstain_below)
        ids += [sample.id for sample in some.samples]
        lengths = [len(sample.text) + len(sample.pair or "") for sample in some.samples]
        return Predicted([], sets.astype(np.int64), sure, able, np.array(lengths, np.int64))

    def _number(self, key: bytes, chosen: BoolArray) -> int:
        """The number of a set; what a path implies is left out, as libraries do with what persons say."""
        if key not in self._numbers:
            taxonomy = self.classifier.taxonomy
            labels = tuple(sorted(taxonomy.deepest(taxonomy.labels[column] for column in np.flatnonzero(chosen))))
            self._numbers[key] = len(self.sets)
            self.sets.append(labels)
            self._able.append(bool(labels) and taxonomy.misfit(labels) is None)
        return self._numbers[key]


def _sure_enough(scores: FloatArray, abstain_below: float) -> BoolArray:
    enough: BoolArray = scores.max(axis=1) >= abstain_below
    return enough
