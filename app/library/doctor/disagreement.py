"""Conflicts: persons or imports disagree on a text, or on texts that are almost the same."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from app.library.doctor.census import UNLABELLED, Census
from app.library.doctor.findings import Example, Finding, Kind
from app.library.doctor.shares import EXAMPLES, graded, percent
from app.library.review.queueing import Reason
from app.store.reviews import Wanted
from model.reports.plots import bars
from model.types import IntArray

# Of the labelled samples. At one in twenty, as many labels are in doubt as good models get wrong.
NOTABLE, SERIOUS = 1e-12, 0.05
EVEN = 0.5  # the chance that the label changes, where two words stand against each other
NEAR_SHOWN = 3
DOCTOR = "doctor"


def examine_conflicts(census: Census) -> Finding:
    """Samples whose own labels are in conflict, and near duplicates whose labels differ."""
    conflicting = np.flatnonzero(census.conflict)
    differing = _groups_that_differ(census)
    reviews = {wanted.sample_id: wanted for group in differing for wanted in _odd_members(census, group)}
    in_groups = len(reviews)
    for row in conflicting.tolist():
        known = reviews.get(census.ids[row])
        if known is None or known.value <= EVEN:
            reviews[census.ids[row]] = Wanted(census.ids[row], Reason.CONFLICT, EVEN)
    wanted = sorted(reviews.values(), key=lambda each: (-each.value, each.sample_id))
    labelled = int(np.count_nonzero(census.codes != UNLABELLED))
    name = census.name
    return Finding(
        kind=Kind.CONFLICTS,
        severity=graded(len(wanted) / max(labelled, 1), notable=NOTABLE, serious=SERIOUS),
        count=len(wanted),
        summary=f"{len(conflicting):,} 条样本的标签有分歧；{len(differing):,} 组近似重复标签不一致；"
        f"共 {len(wanted):,} 条（{percent(len(wanted), labelled)}）待复核",
        summary_en=f"{len(conflicting):,} samples are in conflict; labels differ in {len(differing):,} groups of near "
        f"duplicates; {len(wanted):,} samples ({percent(len(wanted), labelled)}) to review",
        figures={
            "conflicting": len(conflicting),
            "groups": len(differing),
            "in_groups": in_groups,
            "plots": [
                bars(
                    "近似重复中最常不一致的标签对",
                    "Labels that near duplicates disagree on most",
                    _disputed_pairs(census, differing),
                )
            ]
            if differing
            else [],
        },
        examples=tuple(_example(census, each) for each in wanted[:EXAMPLES]),
        commands=(
            f"wenlei library doctor --library {name} --to-review conflicts",
            *([f"wenlei library conflicts --library {name}"] if len(conflicting) else []),
            *([f"wenlei library duplicates --library {name} --conflicting"] if differing else []),
        )
        if wanted
        else (),
        reviews=tuple(wanted),
    )


def _groups_that_differ(census: Census) -> list[IntArray]:
    """The labelled members of each group in which labels differ, (size,)."""
    groups, codes = census.near.groups, census.codes
    labelled = np.flatnonzero(codes != UNLABELLED)
    order = labelled[np.argsort(groups[labelled], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    lowest, highest = (
        (kind.reduceat(codes[order], starts) for kind in (np.minimum, np.maximum)) if len(order) else (starts, starts)
    )
    ends = np.append(starts[1:], len(order))
    return [order[starts[place] : ends[place]] for place in np.flatnonzero(lowest != highest).tolist()]


def _odd_members(census: Census, rows: IntArray) -> Iterator[Wanted]:
    """The members of a group that are not of its majority, and what that says, if there is one."""
    counts = Counter(census.codes[rows].tolist())
    ((most, votes),) = counts.most_common(1)
    majority = census.label_lists[most] if 2 * votes > len(rows) else None
    ids = [census.ids[row] for row in rows[: NEAR_SHOWN + 1].tolist()]
    for row in rows.tolist():
        own = int(census.codes[row])
        if own == most and majority is not None:
            continue
        yield Wanted(
            sample_id=census.ids[row],
            reason=Reason.DUPLICATE,
            value=1 - counts[own] / len(rows),
            proposed=majority,
            proposed_by=None if majority is None else DOCTOR,
            confidence=None if majority is None else votes / len(rows),
            details={
                "near": [each for each in ids if each != census.ids[row]][:NEAR_SHOWN],
                "group_size": len(rows),
                "labels": {" + ".join(census.label_lists[code]): count for code, count in counts.most_common(5)},
            },
        )


def _disputed_pairs(census: Census, groups: list[IntArray]) -> list[tuple[str, int]]:
    """Pairs of labels by the number of groups that have both."""
    pairs: Counter[tuple[str, str]] = Counter()
    for rows in groups:
        names = sorted({" + ".join(census.label_lists[code]) for code in census.codes[rows].tolist()})[:EXAMPLES]
        pairs.update((one, other) for place, one in enumerate(names) for other in names[place + 1 :])
    return [(f"{one} ↔ {other}", count) for (one, other), count in pairs.most_common(EXAMPLES)]


def _example(census: Census, wanted: Wanted) -> Example:
    row = int(np.searchsorted(census.ids, wanted.sample_id))  # sorted
    if wanted.reason == Reason.CONFLICT:
        why = "自身有分歧 | in conflict"
    else:
        others = ", ".join(f"{labels} ×{count}" for labels, count in wanted.details["labels"].items())
        why = f"近似样本 near duplicates: {others}"
    return Example(wanted.sample_id, census.labels(row), proposed=wanted.proposed, score=wanted.value, why=why)
