"""Snapshot: an immutable folder of labelled samples whose name is its content hash.

`samples.parquet` holds the rows, sorted by id; `manifest.json` says what they are. The hash covers the task,
the taxonomy and the sorted rows (id, text, pair, labels, split), and nothing else: neither time nor parent
nor the order of import changes it.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from model.errors import BadInput, BadSnapshot
from model.files import canonical_json, is_sealed, publish, read_json, staging_folder, write_sealed
from model.text import Normaliser
from model.types import Sample, Split, Taxonomy

SCHEMA_VERSION = 1
ROWS_AT_ONCE = 20_000
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("pair", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("split", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An opened snapshot. `counts` holds `total`, and per split and label how many samples there are."""

    path: Path
    hash: str
    taxonomy: Taxonomy
    normaliser: Normaliser
    counts: dict[str, Any]
    parent: str | None

    def samples(self, split: Split | None = None) -> Iterator[Sample]:
        """The samples, sorted by id; of one split or of all, read in flat memory."""
        file = pq.ParquetFile(self.path / "samples.parquet")
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
            for row in batch.to_pylist():
                if split is None or row["split"] == split:
                    yield Sample(
                        id=row["id"],
                        text=row["text"],
                        pair=row["pair"],
                        labels=tuple(row["labels"]),
                        split=Split(row["split"]),
                    )


def write_snapshot(
    samples: Iterable[Sample],
    *,
    taxonomy: Taxonomy,
    normaliser: Normaliser,
    folder: Path,
    parent: str | None = None,
    provenance: dict[str, Any] | None = None,
) -> Snapshot:
    """Freeze `samples`, which come sorted by id, as `folder`/<hash>; one that is there already is kept.

    Raises:
        BadSnapshot: samples are not sorted, stand twice, or carry labels outside the taxonomy; or there are none.
    """
    content, counts = ContentHash(taxonomy), Counts(taxonomy)
    with staging_folder(folder / "snapshot") as staging:
        with pq.ParquetWriter(staging / "samples.parquet", SCHEMA, compression="zstd") as writer:
            rows = iter(samples)
            while batch := list(islice(rows, ROWS_AT_ONCE)):
                for sample in batch:
                    content.add(sample)
                    counts.add(sample)
                writer.write_table(pa.Table.from_pylist([_row(sample) for sample in batch], SCHEMA))
        if not counts.total:
            raise BadSnapshot("there are no labelled samples to freeze; import some first")
        manifest = {
            "schema_version": SCHEMA_VERSION,
            "hash": content.hexdigest(),
            "taxonomy": taxonomy.to_json(),
            "normaliser": normaliser.to_json(),
            "counts": counts.to_json(),
            "parent": parent if parent != content.hexdigest() else None,  # the same content, frozen once more
            "provenance": provenance or {},
        }
        write_sealed(staging / "manifest.json", manifest)
        path = folder / content.hexdigest()
        if not path.exists():
            with suppress(BadInput):  # somebody else was faster, with the same content
                publish(staging, path)
    return open_snapshot(path)


def open_snapshot(path: Path) -> Snapshot:
    """Open the snapshot at `path` after hashing every row of it.

    Raises:
        BadSnapshot: there is none, a newer wenlei wrote it, or its content is not what its name says.
    """
    snapshot = describe_snapshot(path)
    content, counts = ContentHash(snapshot.taxonomy), Counts(snapshot.taxonomy)
    try:
        for sample in snapshot.samples():
            content.add(sample)
            counts.add(sample)
    except BadSnapshot as error:
        raise BadSnapshot(f"{path} has been changed: {error}") from None
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise BadSnapshot(f"{path}/samples.parquet can't be read: {error}") from None
    if content.hexdigest() != snapshot.hash:
        raise BadSnapshot(f"{path} has been changed: its content hashes to {content.hexdigest()}, not {snapshot.hash}")
    if counts.to_json() != snapshot.counts:
        raise BadSnapshot(f"{path}/manifest.json has been changed: its counts are not those of the samples")
    return snapshot


def describe_snapshot(path: Path) -> Snapshot:
    """The snapshot at `path` by its sealed manifest alone: in no time, and no row of it has been looked at.

    Raises:
        BadSnapshot: there is none, a newer wenlei wrote it, or its manifest has been changed.
    """
    try:
        manifest = read_json(path / "manifest.json")
    except (FileNotFoundError, NotADirectoryError):
        raise BadSnapshot(
            f"{path} is not a snapshot: no manifest.json in it; make one with wenlei library snapshot"
        ) from None
    except ValueError as error:
        raise BadSnapshot(f"{path}/manifest.json can't be read: {error}") from None
    snapshot = _snapshot(path, manifest)
    if not is_sealed(path / "manifest.json"):
        raise BadSnapshot(f"{path}/manifest.json has been changed; copy the snapshot again, or freeze the library anew")
    return snapshot


class ContentHash:
    """The identity of a snapshot, taken row by row in the order of ids."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._known = set(taxonomy.labels)
        self._taxonomy = taxonomy
        self._last_id = ""
        self._digest = hashlib.sha256(canonical_json(taxonomy.to_json()))

    def add(self, sample: Sample) -> None:
        """Take one more row into the hash.

        Raises:
            BadSnapshot: its id is not greater than the last one's, or its labels are outside the taxonomy.
        """
        if sample.id <= self._last_id:
            raise BadSnapshot(f"sample {sample.id} comes after {self._last_id}: samples must be sorted and unique")
        if not sample.labels or not self._known.issuperset(sample.labels):
            raise BadSnapshot(f"sample {sample.id} has labels {sample.labels}, not all of them in the taxonomy")
        if len(sample.labels) > 1 and (misfit := self._taxonomy.misfit(sample.labels)):
            raise BadSnapshot(f"sample {sample.id}: {misfit}")
        self._last_id = sample.id
        row = [sample.id, sample.text, sample.pair, sorted(sample.labels), sample.split.value]
        self._digest.update(canonical_json(row) + b"\n")

    def hexdigest(self) -> str:
        """32 hex digits over the rows so far."""
        return self._digest.hexdigest()[:32]


class Counts:
    """How many samples there are, in all, per split, and per split and label."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.total = 0
        self._splits = Counter[str]()
        self._labels = {split.value: dict.fromkeys(taxonomy.labels, 0) for split in Split}

    def add(self, sample: Sample) -> None:
        """Count one more row."""
        self.total += 1
        self._splits[sample.split.value] += 1
        for label in sample.labels:
            self._labels[sample.split.value][label] += 1

    def to_json(self) -> dict[str, Any]:
        """`{"total", "test", "dev", "train", "labels": {split: {label: count}}}`."""
        splits = {split.value: self._splits[split.value] for split in Split}
        return {"total": self.total, **splits, "labels": self._labels}


def _snapshot(path: Path, manifest: dict[str, Any]) -> Snapshot:
    try:
        if manifest["schema_version"] > SCHEMA_VERSION:
            raise BadSnapshot(
                f"{path} has schema {manifest['schema_version']}, this wenlei reads {SCHEMA_VERSION}; update it"
            )
        return Snapshot(
            path=path,
            hash=manifest["hash"],
            taxonomy=Taxonomy.from_json(manifest["taxonomy"]),
            normaliser=Normaliser.from_json(manifest["normaliser"]),
            counts=manifest["counts"],
            parent=manifest["parent"],
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadSnapshot(f"{path}/manifest.json can't be understood ({error!r}); make the snapshot again") from None


def _row(sample: Sample) -> dict[str, Any]:
    return {
        "id": sample.id,
        "text": sample.text,
        "pair": sample.pair,
        "labels": sorted(sample.labels),
        "split": sample.split.value,
    }
