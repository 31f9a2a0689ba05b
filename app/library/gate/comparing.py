"""Whether the pool is like the calibration samples: the guarantee is about texts like these, and about no others."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from app.library.gate.predicting import Predicted
from app.store.database import connect, reading
from app.store.libraries import get_library
from app.store.pool import sources_of
from model.drift import Difference, kolmogorov_smirnov, shares_differ
from model.metrics import BoolArray

ALARM = 0.05  # how likely a warning may be where pool and calibration samples are of the same kind
CHECKS = 3  # the confidence, the labels, the length: these share the alarm, and so do the parts of the pool
# A large pool makes any trifle more than chance; what is less than this moves the share of errors by little.
LARGE = 0.1
MOST_SOURCES = 20  # the largest, each looked at by itself: a few foreign texts hardly show among many
IDS_AT_ONCE = 10_000


class Drift(NamedTuple):
    """How much texts differ from the calibration samples in three respects, 0 to 1, with its chance.

    confidence, length: Kolmogorov-Smirnov. labels: total variation of the predicted labels, permutation test.
    """

    confidence: Difference
    labels: Difference
    length: Difference

    def found(self, parts: int) -> list[str]:
        """In which respects it is another kind: beyond chance, and by enough to matter. parts: that are looked at."""
        return [
            name
            for name, difference in self._asdict().items()
            if difference.p_value < ALARM / CHECKS / parts and difference.size >= LARGE
        ]


class Compared(NamedTuple):
    """Whether the pool is like the calibration samples: all of it, and the texts of each file that is in it."""

    whole: Drift
    sources: dict[str, Drift]

    @property
    def warnings(self) -> dict[str | None, list[str]]:
        """Which parts are of another kind, and in which respects: None for the whole, else the file's name."""
        parts = 1 + len(self.sources)
        found = {None: self.whole.found(parts)} | {name: drift.found(parts) for name, drift in self.sources.items()}
        return {name: respects for name, respects in found.items() if respects}


def compare(engine: sa.Engine, library: str, calibration: Predicted, pool: Predicted) -> Compared:
    """How the pool differs from the calibration samples, and each file in it where there are several.

    Raises:
        UnknownLibrary: there is no such library.
    """
    names = _sources(engine, library, pool.ids)
    largest = [name for name, _ in Counter(names).most_common(MOST_SOURCES)]
    column = np.array(names, dtype=object)
    parts = {name: _drift(calibration, pool, column == name) for name in largest} if len(largest) > 1 else {}
    return Compared(_drift(calibration, pool, np.ones(len(pool.ids), bool)), parts)


def _drift(calibration: Predicted, pool: Predicted, part: BoolArray) -> Drift:
    return Drift(
        confidence=kolmogorov_smirnov(calibration.sure, pool.sure[part]),
        labels=shares_differ(calibration.sets, pool.sets[part]),
        length=kolmogorov_smirnov(calibration.lengths.astype(float), pool.lengths[part].astype(float)),
    )


def _sources(engine: sa.Engine, library: str, ids: Sequence[str]) -> list[str]:
    """The name of the file that each sample came from."""
    names: dict[str, str] = {}  # the same few names, held once
    found: list[str] = []
    with connect(engine) as connection, reading(connection):
        library_id = get_library(connection, library).id
        for start in range(0, len(ids), IDS_AT_ONCE):
            some = ids[start : start + IDS_AT_ONCE]
            of = sources_of(connection, library_id, some)
            found += [names.setdefault(of[each], of[each]) for each in some]
    return found
