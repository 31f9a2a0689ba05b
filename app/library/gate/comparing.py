"""Whether the pool is like the calibration samples: the guarantee is about texts like these, and about no others."""

from typing import NamedTuple

from app.library.gate.predicting import Predicted
from model.drift import Difference, kolmogorov_smirnov, shares_differ

ALARM = 0.05  # how likely a warning may be where pool and calibration samples are of the same kind
CHECKS = 3  # the confidence, the labels, the length: these share the alarm
# A large pool makes any trifle more than chance; what is less than this moves the share of errors by little. Measured
# in docs/experiments.md.
LARGE = 0.1


class Drift(NamedTuple):
    """How much the pool differs from the calibration samples in three respects, 0 to 1, with its chance.

    confidence, length: Kolmogorov-Smirnov. labels: total variation of the predicted labels, permutation test.
    """

    confidence: Difference
    labels: Difference
    length: Difference

    @property
    def found(self) -> list[str]:
        """In which respects the pool is another one: beyond chance, and by enough to matter."""
        return [
            name
            for name, difference in self._asdict().items()
            if difference.p_value < ALARM / CHECKS and difference.size >= LARGE
        ]


def compare(calibration: Predicted, pool: Predicted) -> Drift:
    """How the pool differs from the calibration samples."""
    return Drift(
        confidence=kolmogorov_smirnov(calibration.sure, pool.sure),
        labels=shares_differ(calibration.sets, pool.sets),
        length=kolmogorov_smirnov(calibration.lengths.astype(float), pool.lengths.astype(float)),
    )
