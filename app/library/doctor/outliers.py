"""Outliers: texts unlike all others: mojibake, garbage, other languages, another subject."""

import numpy as np
from numpy.typing import NDArray

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind, Severity
from app.library.doctor.measures import Measures
from app.library.doctor.shares import EXAMPLES, graded, percent
from app.library.review.queueing import Reason
from app.store.reviews import Wanted
from model.reports.plots import histogram

# Robust z-score from which on a text is one. Of 11,956 news titles none had 5, of 9,092 reviews 21 had, mojibake and
# traditional Chinese among them; if surprisal were normally distributed, one text in three million would.
FAR = 5.0
SERIOUS = 0.01  # of all texts
FEWEST = 100  # fewer texts make no measure
# A short text is judged as if so many ordinary characters followed it, so that one rare name makes no oddity.
ORDINARY = 8
LEAST_DEVIATION = 0.5  # bits: in a library of a few templates, whatever is no template would be far from them
NORMAL = 1.4826  # median absolute deviations in a standard deviation of the normal distribution


def examine_outliers(census: Census, measures: Measures) -> Finding:
    """Texts that surprise whoever has read the others."""
    if len(census) < FEWEST:
        return Finding(
            Kind.OUTLIERS,
            Severity.FINE,
            0,
            f"样本不足 {FEWEST} 条，看不出什么算异常",
            f"fewer than {FEWEST} samples: too few to tell what is unlike them",
        )
    bits = smoothed(measures)
    middle = float(np.median(bits))
    deviation = max(NORMAL * float(np.median(np.abs(bits - middle))), LEAST_DEVIATION)
    far = (bits - middle) / deviation
    rows = np.flatnonzero(far >= FAR)
    rows = rows[np.argsort(-far[rows], kind="stable")]
    share = percent(len(rows), len(census))
    wanted = [
        Wanted(census.ids[row], Reason.OUTLIER, value=oddity(far[row]), details={"z": round(float(far[row]), 2)})
        for row in rows.tolist()
    ]
    return Finding(
        kind=Kind.OUTLIERS,
        severity=graded(len(rows) / len(census), notable=1e-12, serious=SERIOUS),
        count=len(rows),
        summary=f"{len(rows):,} 条（{share}）与其余文本很不相像：乱码、外语、别的文体或话题",
        summary_en=f"{len(rows):,} ({share}) are unlike the others: mojibake, other languages, styles or subjects",
        figures={
            "median_bits": round(middle, 3),
            "far": FAR,
            "bits_at_far": round(middle + FAR * deviation, 3),
            "plots": [
                histogram(
                    "每字的惊异度",
                    "Surprisal of a character",
                    bits,
                    x="比特 bits",
                    mark=round(middle + FAR * deviation, 2),
                    mark_name=f"z = {FAR:g}",
                    whole=False,
                )
            ],
        },
        examples=tuple(
            Example(
                census.ids[row],
                census.labels(row),
                score=oddity(far[row]),
                why=f"z {far[row]:.1f}, {measures.surprisal[row]:.1f} 比特/字 bits a character",
            )
            for row in rows[:EXAMPLES].tolist()
        ),
        commands=(f"wenlei library doctor --library {census.name} --to-review outliers",) if len(rows) else (),
        reviews=tuple(wanted),
    )


def smoothed(measures: Measures) -> NDArray[np.float64]:
    """(n,), bits a character, pulled to the median where a text is short."""
    counts = measures.lengths + 1  # its end is one too
    middle = float(np.median(measures.surprisal))
    return np.asarray((measures.surprisal * counts + ORDINARY * middle) / (counts + ORDINARY), dtype=np.float64)


def oddity(far: float) -> float:
    """From 0.5, just far enough, towards 1."""
    return float(1 - FAR / (2 * max(far, FAR)))
