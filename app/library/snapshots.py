"""Freeze a library: its labelled samples, each in its split, as an immutable snapshot."""

from array import array
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from app.library.labels import CurrentLabels, current_labels, label_positions
from app.library.splits import SPLITS, UNPROTECTED, Splitter
from app.store.database import connect, reading, writing
from app.store.libraries import Library, get_library, nobody_writing
from app.store.rollbacks import last_event, last_rollback
from app.store.samples import StoredSample, labelled_samples
from app.store.snapshots import last_snapshot, record_snapshot
from model.errors import BadSnapshot
from model.near import NearSettings, near_groups
from model.snapshot import Snapshot, write_snapshot
from model.types import IntArray, Sample, preview

SAMPLES_AT_ONCE = 1000


class Conflicts(StrEnum):
    """What becomes of samples on whose label persons disagree, or the imports, with no person to decide."""

    KEEP = "keep"
    DROP = "drop"


SOURCES = ("person", "import", "model")  # of current labels


@dataclass(frozen=True, slots=True)
class Frozen:
    """A snapshot, and how many of the library's labelled samples are in conflict, kept or dropped.

    sources: split → whose labels they are (person, import, model) → samples.
    """

    snapshot: Snapshot
    conflicts: int
    sources: dict[str, dict[str, int]]


def freeze(
    engine: sa.Engine,
    *,
    library: str,
    folder: Path,
    splitter: Splitter,
    conflicts: Conflicts = Conflicts.KEEP,
    near: NearSettings = NearSettings(),
    on_samples: Callable[[int], None] = lambda _: None,
) -> Frozen:
    """Write a snapshot of `library` as `folder`/<hash> and remember it; the same content gives the same hash.

    near: which samples are near duplicates, and so stand in one split. `on_samples` hears of samples that were read,
    each twice: the near duplicates have to be known before the first row is written.

    Raises:
        UnknownLibrary: there is no such library. BadSnapshot: it holds no labelled samples.
    """
    parameters = {**asdict(splitter), "conflicts": conflicts.value, "near": near.threshold}
    with connect(engine) as connection:
        with reading(connection):
            with nobody_writing(engine, library):
                source, newest = get_library(connection, library), last_event(connection)
            rolled = last_rollback(connection, source.id)
            rows = _LabelledRows(connection, source, conflicts=conflicts, on_samples=on_samples)
            splits = rows.splits(splitter, near)
            sources = rows.sources(splits)
            try:
                snapshot = write_snapshot(
                    rows.samples(splits),
                    taxonomy=source.definition.taxonomy,
                    normaliser=source.definition.normaliser,
                    folder=folder,
                    parent=last_snapshot(connection, source.id),
                    provenance={"library": library, **parameters, "sources": sources},
                )
            except BadSnapshot as error:
                raise BadSnapshot(f"library {library!r}: {error}") from None
        with writing(connection):
            record_snapshot(
                connection,
                source.id,
                snapshot,
                parameters=parameters,
                last_event=newest,
                taxonomy_version=source.version,
                last_rollback=rolled,
            )
    return Frozen(snapshot=snapshot, conflicts=rows.conflicting, sources=sources)


class _LabelledRows:
    """The labelled samples of a library, in order. `conflicting`: how many of them are in conflict, kept or dropped."""

    def __init__(
        self, connection: sa.Connection, library: Library, *, conflicts: Conflicts, on_samples: Callable[[int], None]
    ) -> None:
        self._connection, self._library, self._on_samples = connection, library, on_samples
        self._positions = label_positions(library.definition.taxonomy)
        self._drop = conflicts is Conflicts.DROP
        self.conflicting = 0
        self._kinds = array("b")

    def splits(self, splitter: Splitter, near: NearSettings) -> IntArray:
        """(n,), the split of each sample, as a position in `Split`."""
        groups, protected = array("q"), array("b")

        def texts() -> Iterator[tuple[str, str | None]]:
            for stored, current in self._rows():
                self.conflicting += current.conflict
                if current.conflict and self._drop:
                    continue
                groups.append(stored.duplicate_group)
                protected.append(UNPROTECTED if stored.protected_split is None else stored.protected_split)
                kind = next(event.actor_kind for event in stored.events if event.id == current.event)
                self._kinds.append(SOURCES.index(kind))
                yield stored.text, stored.pair

        found = near_groups(texts(), near).groups
        return splitter.assign(np.frombuffer(groups, np.int64), np.frombuffer(protected, np.int8), found)

    def sources(self, splits: IntArray) -> dict[str, dict[str, int]]:
        """Split → source → how many labels come from it; `splits`, (n,), are known by then."""
        kinds = np.frombuffer(self._kinds, np.int8)
        return {
            split.value: {
                source: int(((splits == place) & (kinds == kind)).sum()) for kind, source in enumerate(SOURCES)
            }
            for place, split in enumerate(SPLITS)
        }

    def samples(self, splits: IntArray) -> Iterator[Sample]:
        """The samples with their splits, (n,)."""
        kept = ((stored, current) for stored, current in self._rows() if not (current.conflict and self._drop))
        for (stored, current), split in zip(kept, splits, strict=True):
            yield Sample(
                id=stored.id, text=stored.text, pair=stored.pair, labels=current.labels, split=SPLITS[int(split)]
            )

    def _rows(self) -> Iterator[tuple[StoredSample, CurrentLabels]]:
        for number, stored in enumerate(labelled_samples(self._connection, self._library.id), 1):
            if number % SAMPLES_AT_ONCE == 0:
                self._on_samples(SAMPLES_AT_ONCE)
            current = current_labels(stored.events, self._positions)
            if current is not None:
                yield stored, current


def gaps(frozen: Frozen) -> list[str]:
    """What a training on the snapshot would miss, `中文 | English`: empty splits, classes train lacks, honest tests."""
    counts = frozen.snapshot.counts
    found = [f"{split} 没有样本 | split {split} is empty" for split in ("train", "dev", "test") if not counts[split]]
    lacking = [label for label, count in counts["labels"]["train"].items() if not count]
    if lacking and counts["train"]:
        named = preview(lacking)
        found.append(f"train 缺 {len(lacking)} 个类别 | train has no sample of {len(lacking)} classes: {named}")
    found += [
        f"{split} 的 {counts[split]:,} 条标签中有 {machine:,} 条出自机器，同类模型的分数会偏高 | {machine:,} of "
        f"{counts[split]:,} {split} labels come from a machine, and figures flatter its like"
        for split in ("dev", "test")
        if (machine := frozen.sources[split]["model"])
    ]
    return found
