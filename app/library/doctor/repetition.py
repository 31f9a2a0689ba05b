"""Near duplicates: how much of a library says the same twice."""

import numpy as np

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind
from app.library.doctor.shares import graded, percent
from model.reports.plots import bars
from model.types import IntArray

# Of all samples, those that a near duplicate makes superfluous. At a fifth, a class's count says little about it.
NOTABLE, SERIOUS = 0.01, 0.2
SIZES = ((2, 2), (3, 3), (4, 4), (5, 9), (10, 99), (100, None))
GROUPS_SHOWN, MEMBERS_SHOWN = 4, 3


def examine_duplicates(census: Census) -> Finding:
    """Groups of near duplicates, and how many samples they hold."""
    sizes = np.bincount(census.near.groups, minlength=len(census))
    groups = np.flatnonzero(sizes > 1)
    grouped = int(sizes[groups].sum())
    superfluous = grouped - len(groups)
    binned = [(_name(low, high), int(np.count_nonzero(_within(sizes, low, high)))) for low, high in SIZES]
    share = percent(superfluous, len(census))
    return Finding(
        kind=Kind.DUPLICATES,
        severity=graded(superfluous / max(len(census), 1), notable=NOTABLE, serious=SERIOUS),
        count=len(groups),
        summary=f"{len(groups):,} 组近似重复，含 {grouped:,} 条样本；每组留一条则 {superfluous:,} 条（{share}）多余",
        summary_en=f"{len(groups):,} groups of near duplicates, {grouped:,} samples; {superfluous:,} ({share}) add "
        "nothing to one of each group",
        figures={
            "groups": len(groups),
            "grouped": grouped,
            "superfluous": superfluous,
            "largest": int(sizes.max(initial=0)),
            "plots": [bars("组的大小", "Sizes of groups", binned)] if len(groups) else [],
        },
        examples=_examples(census, groups[np.argsort(-sizes[groups], kind="stable")][:GROUPS_SHOWN], sizes),
        commands=(f"wenlei library duplicates --library {census.name}",) if len(groups) else (),
    )


def _examples(census: Census, groups: IntArray, sizes: IntArray) -> tuple[Example, ...]:
    """Some members of each group."""
    found = []
    for number, group in enumerate(groups.tolist(), start=1):
        for row in np.flatnonzero(census.near.groups == group)[:MEMBERS_SHOWN].tolist():
            why = f"第 {number} 组，共 {sizes[group]:,} 条 | group {number}, {sizes[group]:,} in all"
            found.append(Example(census.ids[row], census.labels(row), why=why))
    return tuple(found)


def _within(sizes: IntArray, low: int, high: int | None) -> IntArray:
    return np.asarray((sizes >= low) & (sizes <= (high or sizes.max(initial=low))), dtype=np.int64)


def _name(low: int, high: int | None) -> str:
    return f"≥ {low}" if high is None else str(low) if low == high else f"{low}–{high}"
