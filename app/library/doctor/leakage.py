"""Leakage: near duplicates in different splits, so that a model is tested on what it has learnt by heart."""

from typing import Any, NamedTuple

import numpy as np

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind
from app.library.doctor.shares import EXAMPLES, graded, percent
from app.library.splits import SPLITS, UNPROTECTED
from model.reports.plots import bars
from model.types import IntArray, Split

# Of dev or test, the samples that have a near duplicate in train. One in a hundred moves a score by as much as many
# models differ; a single one is worth knowing of.
SERIOUS = 0.01
PAIRS = ((Split.TEST, Split.TRAIN), (Split.DEV, Split.TRAIN), (Split.TEST, Split.DEV))


class _Leaks(NamedTuple):
    """What leaks between the splits that samples stand in. worst: the largest share of a split, 0 to 1."""

    groups: int
    worst: float
    figures: list[dict[str, Any]]
    examples: list[Example]


def examine_leakage(census: Census, snapshot: str | None = None, splits: IntArray | None = None) -> Finding:
    """Groups across the splits that samples were imported in, and across the `splits`, (n,), of a snapshot by its hash.

    In both, what is in no split is `UNPROTECTED`.
    """
    imported = _leaks(census, census.imported_splits, "导入划分 imported")
    frozen = None if splits is None else _leaks(census, splits, "快照 snapshot")
    found = [imported, *([frozen] if frozen else [])]
    has_splits = bool((census.imported_splits != UNPROTECTED).any())
    texts = [_told(imported) if has_splits else ("导入时未带划分", "nothing was imported with a split")]
    if frozen:
        told = _told(frozen)
        texts.append((f"快照 {snapshot}：{told[0]}", f"snapshot {snapshot}: {told[1]}"))
    shown = frozen if frozen and frozen.groups else imported
    names = {(Split.TEST, Split.TRAIN): "test ~ train", (Split.DEV, Split.TRAIN): "dev ~ train"}
    plotted = [
        (names.get((Split(each["of"]), Split(each["in"])), "test ~ dev"), round(100 * each["share"], 2))
        for each in shown.figures
    ]
    groups = sum(each.groups for each in found)
    return Finding(
        kind=Kind.LEAKAGE,
        severity=graded(max(each.worst for each in found), notable=1e-12, serious=SERIOUS),
        count=groups,
        summary="；".join(text for text, _ in texts),
        summary_en="; ".join(text for _, text in texts),
        figures={
            "imported": imported.figures,
            **({"snapshot": frozen.figures} if frozen else {}),
            "plots": [bars("泄漏样本占该划分的比例", "Share of a split that leaks", plotted, unit="%")]
            if groups
            else [],
        },
        examples=tuple(shown.examples[:EXAMPLES]),
        commands=(
            (f"wenlei library snapshot --library {census.name}", f"wenlei library duplicates --library {census.name}")
            if groups
            else ()
        ),
    )


def _leaks(census: Census, splits: IntArray, where: str) -> _Leaks:
    groups = census.near.groups
    here = np.zeros(len(census), dtype=np.int64)  # of every group the splits that it is in, a bit each
    np.bitwise_or.at(here, groups, np.where(splits == UNPROTECTED, 0, 1 << splits))
    across = int(np.count_nonzero(here & (here - 1)))  # more than one bit
    figures, examples, worst = [], [], 0.0
    for one, other in PAIRS:
        first, second = SPLITS.index(one), SPLITS.index(other)
        both = 1 << first | 1 << second
        rows = np.flatnonzero((splits == first) & (here[groups] & both == both))
        share = len(rows) / max(int(np.count_nonzero(splits == first)), 1)
        worst = max(worst, share)
        shared_groups = int(np.count_nonzero(here & both == both))
        figures.append(
            {"of": one.value, "in": other.value, "groups": shared_groups, "samples": len(rows), "share": share}
        )
        for row in rows[: EXAMPLES // 2].tolist():
            twin = int(np.flatnonzero((groups == groups[row]) & (splits == second))[0])
            examples.append(Example(census.ids[row], census.labels(row), why=f"{where}: {one}"))
            examples.append(Example(census.ids[twin], census.labels(twin), why=f"{where}: {other}"))
    return _Leaks(across, worst, figures, examples)


def _told(leaks: _Leaks) -> tuple[str, str]:
    """In Chinese and in English."""
    if not leaks.groups:
        return "近似重复都在同一划分内", "near duplicates stand in one split each"
    parts = [each for each in leaks.figures if each["samples"]]
    chinese = "，".join(
        f"{each['of']} 有 {each['samples']:,} 条（{percent(each['share'], 1)}）与 {each['in']} 近似" for each in parts
    )
    english = ", ".join(
        f"{each['samples']:,} of {each['of']} ({percent(each['share'], 1)}) are near duplicates of {each['in']}"
        for each in parts
    )
    return f"{leaks.groups:,} 组近似重复跨划分：{chinese}", f"{leaks.groups:,} groups cross splits: {english}"
