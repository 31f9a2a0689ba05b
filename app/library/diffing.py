"""What changed between two snapshots: one walk along both in the order of ids, in flat memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from model.errors import BadSnapshot
from model.snapshot import Snapshot
from model.types import Sample, Split, Taxonomy


class ChangeKind(StrEnum):
    """How a sample can differ; one that was both relabelled and moved counts as both."""

    ADDED = "added"
    REMOVED = "removed"
    RELABELLED = "relabelled"
    MOVED = "moved"


class Change(NamedTuple):
    """A sample in both snapshots: `before` is None where it was added, `after` where it was removed.

    sample: the one of the two that is there, the newer of both.
    """

    sample: Sample
    before: Sample | None
    after: Sample | None


@dataclass(frozen=True, slots=True)
class TaxonomyDiff:
    """`reordered`: the labels that both have stand in another order. A pair holds the values before and after."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    reordered: bool
    level_sep: tuple[str | None, str | None] | None
    multiple: tuple[bool, bool] | None


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences of one snapshot from another.

    counts: samples of each kind. unchanged: samples that are in both, alike. label_changes: (from, to) → samples;
    None where a label was lost and none came for it, or came and none was lost. split_changes: (from, to) → samples.
    examples: the first few of each kind.
    """

    taxonomy: TaxonomyDiff
    counts: dict[ChangeKind, int]
    unchanged: int
    label_changes: Counter[tuple[str | None, str | None]]
    split_changes: Counter[tuple[Split, Split]]
    examples: dict[ChangeKind, list[Change]]


def diff_snapshots(
    before: Snapshot, after: Snapshot, *, examples: int = 0, on_sample: Callable[[int], None] = lambda _: None
) -> Diff:
    """Compare two snapshots of one task; `on_sample` hears of the rows read, of both together.

    examples: how many changes of each kind are kept whole.

    Raises:
        BadSnapshot: their tasks differ.
    """
    if before.taxonomy.task != after.taxonomy.task:
        raise BadSnapshot(
            f"snapshot {before.hash} holds task {before.taxonomy.task} and {after.hash} holds {after.taxonomy.task}; "
            "only snapshots of one task can be compared"
        )
    counts = dict.fromkeys(ChangeKind, 0)
    shown: dict[ChangeKind, list[Change]] = {kind: [] for kind in ChangeKind}
    label_changes: Counter[tuple[str | None, str | None]] = Counter()
    split_changes: Counter[tuple[Split, Split]] = Counter()
    unchanged = 0
    for change in _side_by_side(before.samples(), after.samples()):
        on_sample(1 if change.before is None or change.after is None else 2)
        kinds = _kinds(change)
        unchanged += not kinds
        for kind in kinds:
            counts[kind] += 1
            if len(shown[kind]) < examples:
                shown[kind].append(change)
        if change.before and change.after and kinds:
            label_changes.update(_label_changes(change.before, change.after))
            if ChangeKind.MOVED in kinds:
                split_changes[change.before.split, change.after.split] += 1
    return Diff(
        taxonomy=_taxonomy_diff(before.taxonomy, after.taxonomy),
        counts=counts,
        unchanged=unchanged,
        label_changes=label_changes,
        split_changes=split_changes,
        examples=shown,
    )


def _side_by_side(before: Iterator[Sample], after: Iterator[Sample]) -> Iterator[Change]:
    """Every sample of either side once; both sides come sorted by id."""
    old, new = next(before, None), next(after, None)
    while old or new:
        if old and (new is None or old.id < new.id):
            yield Change(old, old, None)
            old = next(before, None)
        elif new and (old is None or new.id < old.id):
            yield Change(new, None, new)
            new = next(after, None)
        elif old and new:
            yield Change(new, old, new)
            old, new = next(before, None), next(after, None)


def _kinds(change: Change) -> list[ChangeKind]:
    old, new = change.before, change.after
    if old is None:
        return [ChangeKind.ADDED]
    if new is None:
        return [ChangeKind.REMOVED]
    relabelled = [ChangeKind.RELABELLED] if set(old.labels) != set(new.labels) else []
    return relabelled + ([ChangeKind.MOVED] if old.split != new.split else [])


def _label_changes(old: Sample, new: Sample) -> Iterator[tuple[str | None, str | None]]:
    """Each label that was lost with each that came; a label with no counterpart stands beside None."""
    lost: list[str | None] = [label for label in old.labels if label not in new.labels]
    gained: list[str | None] = [label for label in new.labels if label not in old.labels]
    if lost or gained:
        yield from product(lost or [None], gained or [None])


def _taxonomy_diff(before: Taxonomy, after: Taxonomy) -> TaxonomyDiff:
    old, new = set(before.labels), set(after.labels)
    return TaxonomyDiff(
        added=tuple(label for label in after.labels if label not in old),
        removed=tuple(label for label in before.labels if label not in new),
        reordered=[label for label in before.labels if label in new]
        != [label for label in after.labels if label in old],
        level_sep=(before.level_sep, after.level_sep) if before.level_sep != after.level_sep else None,
        multiple=(before.multiple, after.multiple) if before.multiple != after.multiple else None,
    )
