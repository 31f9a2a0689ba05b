"""Pairs of classes that are mistaken for each other, by people or by models: their definitions may overlap."""

import shlex
from typing import Any, NamedTuple

import numpy as np

from app.library.doctor.findings import Finding, Kind
from app.library.doctor.label_errors import Verdicts
from app.library.doctor.shares import graded, named, percent
from model.metrics import CountArray
from model.reports.plots import bars
from model.types import IntArray

SHARE = 0.05  # of the samples of both classes: from here on a pair is reported
SERIOUS = 0.15
FEWEST = 5  # samples: less may be chance
MUTUAL = 0.5  # the rarer direction against the other: from here on both classes are taken for each other
SHOWN = 12  # classes in the matrix
PAIRS = 15


class _Pair(NamedTuple):
    """Two classes. samples: estimated, that are labelled as one and seem to be of the other, `forth` and `back`."""

    one: str
    other: str
    forth: float
    back: float
    share: float

    @property
    def mutual(self) -> bool:
        """Whether each is taken for the other."""
        return min(self.forth, self.back) >= MUTUAL * max(self.forth, self.back)


def examine_pairs(verdicts: Verdicts, *, library: str) -> Finding:
    """Pairs of which at least `SHARE` of the samples seem to be of the other class, the worst first."""
    pairs = _pairs(verdicts)
    mutual = sum(pair.mutual for pair in pairs)
    worst = pairs[0].share if pairs else 0.0
    names = [f"{pair.one} ~ {pair.other}" for pair in pairs]
    if pairs:
        summary = f"{len(pairs)} 对类别容易混淆，其中 {mutual} 对互相混淆：{named(names)}"
        summary_en = f"{len(pairs)} pairs of classes are confused, {mutual} of them both ways: {named(names)}"
    else:
        summary = f"没有哪两个类别的样本有 {percent(SHARE, 1)} 以上像是对方的"
        summary_en = f"no two classes have {percent(SHARE, 1)} or more of their samples in common"
    return Finding(
        kind=Kind.AMBIGUOUS_CLASSES,
        severity=graded(worst, notable=SHARE, serious=SERIOUS),
        count=len(pairs),
        summary=summary,
        summary_en=summary_en,
        figures={
            "pairs": [
                {
                    "classes": [pair.one, pair.other],
                    "forth": round(pair.forth, 1),
                    "back": round(pair.back, 1),
                    "share": round(pair.share, 4),
                    "mutual": pair.mutual,
                }
                for pair in pairs
            ],
            "plots": [
                bars(
                    "像是对方的样本，占两类之和",
                    "Samples that seem to be of the other class, of both together",
                    [(name, round(100 * pair.share, 1)) for name, pair in zip(names[:PAIRS], pairs, strict=False)],
                    unit="%",
                ),
                _matrix(verdicts),
            ]
            if pairs
            else [],
        },
        commands=_commands(pairs[0], library) if pairs else (),
    )


def _pairs(verdicts: Verdicts) -> list[_Pair]:
    confused, counts = verdicts.confused, verdicts.counts
    ones, others = np.triu_indices(len(counts), 1)
    forth, back = confused[ones, others], confused[others, ones]
    shares = (forth + back) / np.maximum(counts[ones] + counts[others], 1)
    found = np.flatnonzero((shares >= SHARE) & (forth + back >= FEWEST))
    names = verdicts.classes
    return [
        _Pair(names[ones[at]], names[others[at]], float(forth[at]), float(back[at]), float(shares[at]))
        for at in found[np.argsort(-shares[found], kind="stable")].tolist()
    ]


def _matrix(verdicts: Verdicts) -> dict[str, Any]:
    """The classes that are confused most, labelled so against seeming so, in hundredths of each class."""
    rates: CountArray = 100 * verdicts.confused / np.maximum(verdicts.counts, 1)[:, None]
    off = rates.copy()
    np.fill_diagonal(off, 0)
    worst: IntArray = np.sort(np.argsort(-(off.sum(axis=0) + off.sum(axis=1)), kind="stable")[:SHOWN])
    names = [verdicts.classes[place] for place in worst.tolist()]
    values = [
        [None if row == column else round(float(rates[row, column]), 1) for column in worst.tolist()]
        for row in worst.tolist()
    ]
    return {
        "title": "标为（行）而像是（列），占该类的百分比",
        "title_en": "Labelled as (rows) and seemingly of (columns), % of the class",
        "matrix": {"rows": names, "columns": names, "values": values},
    }


def _commands(pair: _Pair, library: str) -> tuple[str, ...]:
    """Part them by describing both, or make them one; both show what they touch before they do it."""
    one, other = (label if label.isalnum() else shlex.quote(label) for label in (pair.one, pair.other))
    return (
        f"wenlei taxonomy describe {one} --description … --library {library}",
        f"wenlei taxonomy merge {one} {other} --into {other} --library {library}",
    )
