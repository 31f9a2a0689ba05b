"""Decode logits into predictions: the last step of every classify request.

Softmax or sigmoid follows from the task, never from the number of labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from model.errors import BadLogits
from model.metrics import activate
from model.types import Activation, FloatArray, LabelScore, Prediction, Taxonomy

DEFAULT_THRESHOLD = 0.5  # of a sigmoid score, for labels that no threshold was fitted for


@dataclass(frozen=True, slots=True)
class Decoder:
    """Scores and choice. `temperature` and `thresholds` were fitted on the dev split; 1.0 leaves logits as they are."""

    taxonomy: Taxonomy
    temperature: float = 1.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    abstain_below: float = 0.0

    def scores(self, logits: FloatArray) -> FloatArray:
        """Calibrated scores of `logits`, both of shape (batch, n_labels).

        Raises:
            BadLogits: the width is not the number of labels, or a value is not a number.
        """
        if logits.ndim != 2 or logits.shape[1] != len(self.taxonomy):
            raise BadLogits(f"logits have shape {logits.shape}, the taxonomy has {len(self.taxonomy)} labels")
        if not np.isfinite(logits).all():
            raise BadLogits(f"row {np.argwhere(~np.isfinite(logits))[0][0]} of the logits is not a number")
        return activate(logits / self.temperature, self.taxonomy.activation)

    def decode(
        self, logits: FloatArray, *, top_k: int = 1, truncated: Sequence[bool] | None = None
    ) -> list[Prediction]:
        """One prediction a row of `logits` (batch, n_labels), best label first.

        With one label a text: the `top_k` best. With several: all that reach their thresholds, filled up to `top_k`.

        Raises:
            BadLogits: the width is not the number of labels, or a value is not a number.
        """
        rows = self.scores(logits)
        cut = truncated or [False] * len(rows)
        return [self._prediction(row, top_k, was_cut) for row, was_cut in zip(rows, cut, strict=True)]

    def _prediction(self, scores: FloatArray, top_k: int, truncated: bool) -> Prediction:
        order = np.argsort(-scores, kind="stable")
        labels = [LabelScore(self.taxonomy.labels[index], float(scores[index])) for index in order]
        sure = labels[0].score >= self.abstain_below
        count = top_k
        if self.taxonomy.activation is Activation.SIGMOID:
            accepted = [label for label in labels if label.score >= self.threshold(label.label)]
            rest = [label for label in labels if label not in accepted]
            labels, count, sure = accepted + rest, max(top_k, len(accepted)), sure and bool(accepted)
        return Prediction(labels=tuple(labels[:count]), abstained=not sure, truncated=truncated)

    def threshold(self, label: str) -> float:
        """The score from which `label` is accepted where a text may carry several."""
        return self.thresholds.get(label, DEFAULT_THRESHOLD)
