"""Single samples that predictions by folds point at: texts that no class claims, and labels that are in doubt."""

import numpy as np

from app.library.doctor.findings import Example, Finding, Kind
from app.library.doctor.label_errors import PROBABLY, Verdicts
from app.library.doctor.shares import EXAMPLES, graded, percent
from app.library.review.queueing import Reason
from app.store.reviews import Wanted
from model.types import IntArray

# A text is of no class if the best score is less than half of what is usual of that class, and if it is among the
# lowest two in a thousand: where a model is weak, many scores are low, and that says nothing of the texts.
CLAIM = 0.5
RAREST = 0.002
DOUBT = 0.3  # of being wrong: from here to `PROBABLY`, a label is called hard


def examine_off_taxonomy(verdicts: Verdicts, *, by: str, command: str) -> Finding:
    """Labelled texts that no class claims. by: the name of the run; command: the doctor's, with it."""
    places = _unclaimed(verdicts)
    share = percent(len(places), len(verdicts))
    return Finding(
        kind=Kind.OFF_TAXONOMY,
        severity=graded(len(places) / max(len(verdicts), 1), notable=1e-12, serious=1.0),
        count=len(places),
        summary=f"{len(places):,} 条（{share}）有标签，却不像任何一个类别：也许该新增类别，或不该收进库",
        summary_en=f"{len(places):,} ({share}) are labelled and like no class: one is missing, or they don't belong",
        figures={"claim": CLAIM, "rarest": RAREST, "plots": []},
        examples=tuple(
            Example(
                verdicts.ids[place],
                verdicts.given[place],
                score=_unlike(verdicts, place),
                why=f"最像的类别只及平常的 {verdicts.claims[place]:.0%} of what is usual of the best class",
            )
            for place in places[:EXAMPLES].tolist()
        ),
        commands=(f"{command} --to-review off_taxonomy",) if len(places) else (),
        reviews=tuple(
            Wanted(
                verdicts.ids[place],
                Reason.OFF_TAXONOMY,
                value=_unlike(verdicts, place),
                proposed_by=by,
                details={"claim": round(float(verdicts.claims[place]), 3)},
            )
            for place in places.tolist()
        ),
    )


def examine_hard_samples(verdicts: Verdicts, *, by: str, command: str) -> Finding:
    """Labels that are right, as it seems, but not by far."""
    wrong = verdicts.wrong
    places = np.flatnonzero((wrong >= DOUBT) & (wrong <= PROBABLY))
    places = places[np.argsort(-wrong[places], kind="stable")]
    share = percent(len(places), len(verdicts))
    return Finding(
        kind=Kind.HARD_SAMPLES,
        severity=graded(len(places) / max(len(verdicts), 1), notable=0.01, serious=1.0),
        count=len(places),
        summary=f"{len(places):,} 条（{share}）的标签看来没错，但模型拿不准：最值得写进标注规范",
        summary_en=f"{len(places):,} ({share}) seem to be right and are in doubt: worth a line in the guidelines",
        figures={"doubt": DOUBT, "plots": []},
        examples=tuple(
            Example(
                verdicts.ids[place],
                verdicts.given[place],
                proposed=verdicts.proposed[place],
                score=float(wrong[place]),
                why=f"有误的可能 wrong {wrong[place]:.2f}",
            )
            for place in places[:EXAMPLES].tolist()
        ),
        commands=(f"{command} --to-review hard_samples",) if len(places) else (),
        reviews=tuple(
            Wanted(
                verdicts.ids[place],
                Reason.HARD,
                value=float(wrong[place]),
                proposed_by=by,  # nothing: whoever accepts confirms the label, which is probably right
                details={
                    "instead": list(verdicts.proposed[place] or ()),
                    "confidence": round(float(verdicts.confidence[place]), 3),
                },
            )
            for place in places.tolist()
        ),
    )


def _unclaimed(verdicts: Verdicts) -> IntArray:
    """Places of the texts that no class claims, the strangest first."""
    order = np.argsort(verdicts.claims, kind="stable")[: max(int(RAREST * len(verdicts)), 1)]
    return order[verdicts.claims[order] < CLAIM]


def _unlike(verdicts: Verdicts, place: int) -> float:
    """How far a text is from the class that it is most like, 0 to 1."""
    return float(1 - verdicts.claims[place])
