"""Freeze a library: its labelled samples, each in its split, as an immutable snapshot."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

import sqlalchemy as sa

from app.library.labels import current_labels, label_positions
from app.library.splits import Splitter
from app.store.database import connect, reading, writing
from app.store.libraries import Library, get_library, nobody_writing
from app.store.rollbacks import last_event
from app.store.samples import labelled_samples
from app.store.snapshots import last_snapshot, record_snapshot
from model.errors import BadSnapshot
from model.snapshot import Snapshot, write_snapshot
from model.types import Sample, preview


class Conflicts(StrEnum):
    """What becomes of samples on whose label persons disagree, or the imports, with no person to decide."""

    KEEP = "keep"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Frozen:
    """A snapshot, and how many of the library's labelled samples are in conflict, kept or dropped."""

    snapshot: Snapshot
    conflicts: int


def freeze(
    engine: sa.Engine, *, library: str, folder: Path, splitter: Splitter, conflicts: Conflicts = Conflicts.KEEP
) -> Frozen:
    """Write a snapshot of `library` as `folder`/<hash> and remember it; the same content gives the same hash.

    Raises:
        UnknownLibrary: there is no such library. BadSnapshot: it holds no labelled samples.
    """
    parameters = {**asdict(splitter), "conflicts": conflicts.value}
    with connect(engine) as connection:
        with reading(connection):
            with nobody_writing(engine, library):
                source, newest = get_library(connection, library), last_event(connection)
            rows = _LabelledRows(connection, source, splitter=splitter, conflicts=conflicts)
            try:
                snapshot = write_snapshot(
                    rows,
                    taxonomy=source.definition.taxonomy,
                    normaliser=source.definition.normaliser,
                    folder=folder,
                    parent=last_snapshot(connection, source.id),
                    provenance={"library": library, **parameters},
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
            )
    return Frozen(snapshot=snapshot, conflicts=rows.conflicting)


class _LabelledRows:
    """The rows of a snapshot, in order; `conflicting` is known once they have been read."""

    def __init__(
        self, connection: sa.Connection, library: Library, *, splitter: Splitter, conflicts: Conflicts
    ) -> None:
        self._samples = labelled_samples(connection, library.id)
        self._positions = label_positions(library.definition.taxonomy)
        self._splitter = splitter
        self._drop = conflicts is Conflicts.DROP
        self.conflicting = 0

    def __iter__(self) -> Iterator[Sample]:
        for stored in self._samples:
            current = current_labels(stored.events, self._positions)
            if current is None:
                continue
            self.conflicting += current.conflict
            if current.conflict and self._drop:
                continue
            yield Sample(
                id=stored.id,
                text=stored.text,
                pair=stored.pair,
                labels=current.labels,
                split=self._splitter.split(stored.duplicate_group, stored.protected_split),
            )


def gaps(snapshot: Snapshot) -> list[str]:
    """What a training on `snapshot` would miss: empty splits, classes that train lacks."""
    counts = snapshot.counts
    found = [f"split {split} is empty" for split in ("train", "dev", "test") if not counts[split]]
    lacking = [label for label, count in counts["labels"]["train"].items() if not count]
    if lacking and counts["train"]:
        found.append(f"train has no sample of {len(lacking)} classes: {preview(lacking)}")
    return found
