"""Decode logits into predictions: the last step of every classify request.

Softmax or sigmoid follows from the task, never from the number of labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from model.errors import BadLogits
from model.metrics import activate, predicted_matrix
from model.types import Activation, FloatArray, LabelScore, Prediction, Taxonomy


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
        scores = self.scores(logits)
        if self.taxonomy.activation is Activation.SIGMOID:
            accepted = predicted_matrix(scores, self.taxonomy, self.thresholds)
            order = np.lexsort((-scores, ~accepted))  # the accepted first, each part by score
            counts = np.maximum(accepted.sum(axis=1), top_k).tolist()
            sure = accepted.any(axis=1)
        else:
            order = np.argsort(-scores, axis=1, kind="stable")[:, :top_k]
            counts = [top_k] * len(scores)
            sure = np.ones(len(scores), dtype=bool)
        sure &= scores.max(axis=1) >= self.abstain_below
        cut = truncated or [False] * len(scores)
        return [
            Prediction(labels=self._best(row, indices[:count]), abstained=not is_sure, truncated=was_cut)
            for row, indices, count, is_sure, was_cut in zip(
                scores, order.tolist(), counts, sure.tolist(), cut, strict=True
            )
        ]

    def _best(self, scores: FloatArray, indices: Sequence[int]) -> tuple[LabelScore, ...]:
        return tuple(LabelScore(self.taxonomy.labels[index], float(scores[index])) for index in indices)
