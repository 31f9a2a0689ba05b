"""Classes: which have too few samples, and how evenly the samples are spread over them."""

from collections import Counter
from collections.abc import Mapping
from shlex import quote
from typing import NamedTuple

import numpy as np

from app.library.doctor.census import UNLABELLED, Census
from app.library.doctor.findings import Example, Finding, Kind, Severity
from app.library.doctor.shares import EXAMPLES, named
from model.reports.plots import bars
from model.types import Taxonomy

# With a tenth for dev, a class of n samples has none there with a chance of 0.9^n: at 30 that is 4 %.
FEW = 30
# Largest class to smallest. At 10, a model that always names the large classes looks good by its accuracy; at 100, the
# smallest are hardly learnt.
UNEVEN, VERY_UNEVEN = 10, 100
CLASSES_SHOWN = 40


def class_counts(census: Census) -> dict[str, int]:
    """Every class → how many samples it has. In a hierarchy a class has those of the classes below it too."""
    taxonomy = census.library.definition.taxonomy
    counts: Counter[str] = Counter()
    of_list = np.bincount(census.codes[census.codes != UNLABELLED], minlength=len(census.label_lists))
    for labels, count in zip(census.label_lists, of_list.tolist(), strict=True):
        counts.update(dict.fromkeys({each for label in labels for each in _with_ancestors(taxonomy, label)}, count))
    return {label: counts[label] for label in dict.fromkeys((*taxonomy.labels, *sorted(counts)))}


def examine_sparse_classes(census: Census) -> Finding:
    """Classes with no sample, with one, with few."""
    taxonomy = census.library.definition.taxonomy
    counts = {label: count for label, count in class_counts(census).items() if label in set(taxonomy.labels)}
    by_count = sorted(counts, key=lambda label: counts[label])
    empty = [label for label in by_count if counts[label] == 0]
    single = [label for label in by_count if counts[label] == 1]
    few = [label for label in by_count if 1 < counts[label] < FEW]
    sparse = [*empty, *single, *few]
    parts = [
        (f"{len(empty)} 个类别没有样本（{named(empty)}）", f"{len(empty)} classes have no sample ({named(empty)})"),
        (f"{len(single)} 个只有一条（{named(single)}）", f"{len(single)} have one ({named(single)})"),
        (f"{len(few)} 个不足 {FEW} 条（{named(few)}）", f"{len(few)} have fewer than {FEW} ({named(few)})"),
    ]
    told = [part for part, labels in zip(parts, (empty, single, few), strict=True) if labels]
    if not told:
        told = [(f"{len(counts)} 个类别都有至少 {FEW} 条样本", f"all {len(counts)} classes have {FEW} samples or more")]
    return Finding(
        kind=Kind.SPARSE_CLASSES,
        severity=Severity.SERIOUS if empty or single else Severity.NOTABLE if few else Severity.FINE,
        count=len(sparse),
        summary="；".join(chinese for chinese, _ in told),
        summary_en="; ".join(english for _, english in told),
        figures={
            "few": FEW,
            "classes": {label: counts[label] for label in sparse},
            "plots": [
                bars(
                    "样本最少的类别", "The smallest classes", [(each, counts[each]) for each in sparse[:CLASSES_SHOWN]]
                )
            ]
            if sparse
            else [],
        },
        examples=_of_classes(census, [*single, *few]),
        commands=_ways_out(census, sparse),
    )


def examine_balance(census: Census) -> Finding:
    """How unlike the classes are in size; in a hierarchy at each level."""
    taxonomy = census.library.definition.taxonomy
    levels: dict[int, dict[str, int]] = {}
    for label, count in class_counts(census).items():
        levels.setdefault(len(taxonomy.levels(label)), {})[label] = count
    spreads = [_spread(level, levels[level]) for level in sorted(levels)]
    worst = max(spreads, key=lambda each: each.ratio, default=None)
    if worst is None or not worst.most:
        return Finding(Kind.BALANCE, Severity.FINE, 0, "没有带标签的样本", "no sample has a label")
    uneven = Severity.NOTABLE if worst.ratio >= UNEVEN else Severity.FINE
    severity = Severity.SERIOUS if worst.ratio >= VERY_UNEVEN else uneven
    where = (f"第 {worst.level} 层：", f"level {worst.level}: ") if len(spreads) > 1 else ("", "")
    return Finding(
        kind=Kind.BALANCE,
        severity=severity,
        count=worst.classes,
        summary=f"{where[0]}{worst.classes} 个类别；最大「{worst.largest}」{worst.most:,} 条，是最小"
        f"「{worst.smallest}」{worst.least:,} 条的 {worst.ratio:.1f} 倍；均匀度 {worst.evenness:.2f}（1 为完全均匀）",
        summary_en=f"{where[1]}{worst.classes} classes; the largest, {worst.largest} with {worst.most:,}, has "
        f"{worst.ratio:.1f} times the samples of the smallest, {worst.smallest} with {worst.least:,}; evenness "
        f"{worst.evenness:.2f} (1: all alike)",
        figures={
            "levels": [spread._asdict() for spread in spreads],
            "plots": [
                bars(
                    "各类样本数" if len(spreads) == 1 else f"第 {level} 层各类样本数",
                    "Samples a class" if len(spreads) == 1 else f"Samples a class, level {level}",
                    _largest_and_smallest(levels[level]),
                )
                for level in sorted(levels)
            ],
        },
        commands=(
            f"wenlei taxonomy show --library {census.name}",
            f"wenlei library samples --library {census.name} --label {quote(worst.smallest)}",
        )
        if severity is not Severity.FINE
        else (),
    )


class _Spread(NamedTuple):
    """The classes of one level. ratio: of the largest to the smallest that has samples, which have `most` and `least`.

    evenness: the entropy of the classes' shares by that of equal ones, 0 to 1.
    """

    level: int
    classes: int
    largest: str
    smallest: str
    most: int
    least: int
    ratio: float
    evenness: float


def _spread(level: int, counts: Mapping[str, int]) -> _Spread:
    there = {label: count for label, count in counts.items() if count}
    if not there:
        return _Spread(level, len(counts), "", "", 0, 0, 0.0, 0.0)
    largest, smallest = max(there, key=lambda each: there[each]), min(there, key=lambda each: there[each])
    shares = np.array(list(there.values())) / sum(there.values())
    entropy = float(-(shares * np.log(shares)).sum())
    return _Spread(
        level=level,
        classes=len(counts),
        largest=largest,
        smallest=smallest,
        most=there[largest],
        least=there[smallest],
        ratio=there[largest] / there[smallest],
        evenness=entropy / float(np.log(len(counts))) if len(counts) > 1 else 1.0,
    )


def _largest_and_smallest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """All classes, the largest first; of very many both ends."""
    ordered = sorted(counts.items(), key=lambda each: -each[1])
    if len(ordered) <= CLASSES_SHOWN:
        return ordered
    half = CLASSES_SHOWN // 2
    return [*ordered[:half], *ordered[-half:]]


def _of_classes(census: Census, labels: list[str]) -> tuple[Example, ...]:
    """A sample of each of these classes."""
    taxonomy = census.library.definition.taxonomy
    examples = []
    for label in labels[:EXAMPLES]:
        codes = [
            code
            for code, each in enumerate(census.label_lists)
            if any(label in _with_ancestors(taxonomy, its) for its in each)
        ]
        rows = np.flatnonzero(np.isin(census.codes, codes))
        if len(rows):
            examples.append(Example(census.ids[rows[0]], census.labels(int(rows[0])), why=f"{label}: {len(rows)}"))
    return tuple(examples)


def _ways_out(census: Census, sparse: list[str]) -> tuple[str, ...]:
    if not sparse:
        return ()
    first = quote(sparse[0])
    has_unlabelled = bool((census.codes == UNLABELLED).any())
    return (
        f"wenlei library samples --library {census.name} --label {first}",
        *([f"wenlei library samples --library {census.name} --unlabelled"] if has_unlabelled else []),
        f"wenlei taxonomy merge {first} --into CLASS --library {census.name}",
    )


def _with_ancestors(taxonomy: Taxonomy, label: str) -> list[str]:
    path = taxonomy.levels(label)
    return [(taxonomy.level_sep or "").join(path[:depth]) for depth in range(1, len(path) + 1)]
