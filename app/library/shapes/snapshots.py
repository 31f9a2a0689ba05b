"""Snapshots and what changed between them, as commands print them and HTTP answers them.

Where a snapshot's folder is, only commands tell, beside these.
"""

from dataclasses import asdict
from typing import Any, Literal

from typing_extensions import TypedDict

from app.library.diffing import Change, Diff
from app.library.snapshots import Frozen
from app.store.snapshots import RecordedSnapshot
from model.errors import BadSnapshot
from model.snapshot import Snapshot, describe_snapshot
from model.types import Sample

State = Literal["present", "gone", "damaged"]


class SplitCounts(TypedDict):
    """Samples in all and in each split."""

    total: int
    train: int
    dev: int
    test: int


class SnapshotShape(TypedDict):
    """A snapshot on record. `counts`: null where its manifest can't be read, and `state` says why."""

    library: str
    snapshot: str
    created_at: str
    parent: str | None
    counts: SplitCounts | None
    state: State


class SnapshotList(TypedDict):
    """Oldest first."""

    snapshots: list[SnapshotShape]


class FrozenCounts(SplitCounts):
    """labels: split → label → samples. conflicts: labelled samples in conflict, kept or dropped."""

    labels: dict[str, dict[str, int]]
    conflicts: int


class FrozenShape(TypedDict):
    """A snapshot that was just frozen. sources: split → whose labels (person, import, model) → samples.

    warnings: what a training on it would miss.
    """

    snapshot: str
    counts: FrozenCounts
    sources: dict[str, dict[str, int]]
    warnings: list[str]


class SnapshotDetails(SnapshotShape):
    """A snapshot on record. `labels`: split → label → samples; `taxonomy`: its task and classes."""

    labels: dict[str, dict[str, int]] | None
    taxonomy: dict[str, Any] | None


class TaxonomyChanges(TypedDict):
    """What is new in the taxonomy, gone from it, or otherwise; a pair holds the values before and after."""

    added: list[str]
    removed: list[str]
    reordered: bool
    level_sep: list[str | None] | None
    multiple: list[bool] | None


class SampleState(TypedDict):
    """What a snapshot says of a sample."""

    labels: list[str]
    split: str


class ChangeShape(TypedDict):
    """A sample that differs; `before` is null where it was added, `after` where it was removed."""

    id: str
    text: str
    pair: str | None
    before: SampleState | None
    after: SampleState | None


# Samples that went from one label or split to another; null where none was lost, or none came. `from` is a keyword, so
# no class could name its field so.
Moved = TypedDict("Moved", {"from": str | None, "to": str | None, "count": int})


class DiffShape(TypedDict):
    """Samples of each kind; one that was both relabelled and moved counts as both. examples: kind → the first few."""

    before: str
    after: str
    added: int
    removed: int
    relabelled: int
    moved: int
    unchanged: int
    label_changes: list[Moved]
    split_changes: list[Moved]
    taxonomy: TaxonomyChanges
    examples: dict[str, list[ChangeShape]]


def snapshot_shape(record: RecordedSnapshot) -> SnapshotShape:
    """A snapshot on record; of its folder only the manifest is read."""
    return _listed(record, *_described(record))


def snapshot_details(record: RecordedSnapshot) -> SnapshotDetails:
    """A snapshot on record with its classes."""
    described, state = _described(record)
    return {
        **_listed(record, described, state),
        "labels": described.counts["labels"] if described else None,
        "taxonomy": described.taxonomy.to_json() if described else None,
    }


def frozen_shape(frozen: Frozen, warnings: list[str]) -> FrozenShape:
    """A snapshot that was just frozen."""
    counts: Any = {**frozen.snapshot.counts, "conflicts": frozen.conflicts}
    return {"snapshot": frozen.snapshot.hash, "counts": counts, "sources": frozen.sources, "warnings": warnings}


def diff_shape(before: Snapshot, after: Snapshot, found: Diff) -> DiffShape:
    """What changed from one snapshot to another."""
    counts = {kind.value: count for kind, count in found.counts.items()}
    taxonomy: Any = {name: _listed_pair(value) for name, value in asdict(found.taxonomy).items()}
    return {
        "before": before.hash,
        "after": after.hash,
        "added": counts["added"],
        "removed": counts["removed"],
        "relabelled": counts["relabelled"],
        "moved": counts["moved"],
        "unchanged": found.unchanged,
        "label_changes": [
            {"from": old, "to": new, "count": count} for (old, new), count in found.label_changes.most_common()
        ],
        "split_changes": [
            {"from": old.value, "to": new.value, "count": count}
            for (old, new), count in found.split_changes.most_common()
        ],
        "taxonomy": taxonomy,
        "examples": {kind.value: [_change(change) for change in found.examples[kind]] for kind in found.examples},
    }


def _described(record: RecordedSnapshot) -> tuple[Snapshot | None, State]:
    try:
        return describe_snapshot(record.path), "present"
    except (BadSnapshot, OSError):
        return None, "damaged" if record.path.is_dir() else "gone"


def _listed(record: RecordedSnapshot, described: Snapshot | None, state: State) -> SnapshotShape:
    counts: SplitCounts | None = None
    if described:
        held = described.counts
        counts = {"total": held["total"], "train": held["train"], "dev": held["dev"], "test": held["test"]}
    return {
        "library": record.library,
        "snapshot": record.hash,
        "created_at": record.created_at,
        "parent": record.parent,
        "counts": counts,
        "state": state,
    }


def _listed_pair(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _change(change: Change) -> ChangeShape:
    sample = change.sample
    return {
        "id": sample.id,
        "text": sample.text,
        "pair": sample.pair,
        "before": _state(change.before),
        "after": _state(change.after),
    }


def _state(sample: Sample | None) -> SampleState | None:
    return None if sample is None else {"labels": list(sample.labels), "split": sample.split.value}
