"""Check the whole: the database's invariants, and every snapshot on record down to its last row."""

import json
from array import array
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from app.library.cataloguing import row_of
from app.library.labels import current_labels, label_positions
from app.library.splits import SPLITS, duplicate_group
from app.store.catalogue import catalogue_rows
from app.store.database import connect, reading
from app.store.events import events_of_all
from app.store.integrity import (
    count_samples,
    damaged_pages,
    dangling,
    dangling_undoes,
    references,
    stated_labels,
    stored_texts,
)
from app.store.libraries import Library, get_library, library_names
from app.store.samples import labelled_samples
from app.store.snapshots import RecordedSnapshot, recorded_snapshots
from model.errors import BadSnapshot
from model.near import NearSettings, near_groups
from model.snapshot import Snapshot, describe_snapshot, open_snapshot
from model.text import sample_id
from model.types import IntArray, Split, Taxonomy

OnRows = Callable[[int], None]


class Problem(NamedTuple):
    """Something that must not be. `place`: where it was found."""

    place: str
    what: str


def verify(engine: sa.Engine, *, library: str | None = None, on_rows: OnRows = lambda _: None) -> Iterator[Problem]:
    """Every problem of the database, of one library or of all, and of their snapshots.

    `on_rows` hears of rows that have been looked at, `rows_to_verify` in all.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        if damage := damaged_pages(connection):
            yield from (Problem("database", f"{what}; restore it from a backup") for what in damage)
            return  # nothing that is read from it can be relied on
        yield from _reference_problems(connection)
        for name in _names(connection, library):
            found = get_library(connection, name)
            yield from _sample_problems(connection, found, on_rows)
            readable = True
            for problem in _label_problems(connection, found, on_rows):
                readable = False
                yield problem
            if readable:
                yield from _catalogue_problems(connection, found, on_rows)
        records = recorded_snapshots(connection, library)
    for record in records:
        yield from _snapshot_problems(record, on_rows)


def rows_to_verify(engine: sa.Engine, library: str | None = None) -> int:
    """How many rows `verify` will look at: each sample thrice, and each row of a snapshot twice.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        libraries = [get_library(connection, name) for name in _names(connection, library)]
        samples = sum(count_samples(connection, found.id) for found in libraries)
        records = recorded_snapshots(connection, library)
    return 3 * samples + 2 * sum(map(_rows, records))


def _names(connection: sa.Connection, library: str | None) -> list[str]:
    return library_names(connection) if library is None else [library]


def _rows(record: RecordedSnapshot) -> int:
    try:
        return int(describe_snapshot(record.path).counts["total"])
    except (BadSnapshot, OSError):
        return 0


def _reference_problems(connection: sa.Connection) -> Iterator[Problem]:
    for reference in references():
        for values in dangling(connection, reference):
            target = reference.targets[0].table.name
            yield Problem(f"{reference} = {', '.join(map(str, values))}", f"there is no such row in {target}")
    for event in dangling_undoes(connection):
        yield Problem(f"label event {event}", "it undoes no earlier event of its sample")


def _sample_problems(connection: sa.Connection, library: Library, on_rows: OnRows) -> Iterator[Problem]:
    for sample in stored_texts(connection, library.id):
        place = f"library {library.definition.name}, sample {sample.id}"
        if sample_id(sample.text, sample.pair) != sample.id:
            yield Problem(place, "its id is not the hash of its text")
        if sample.imported_split not in (None, *range(len(SPLITS))):
            yield Problem(place, f"split {sample.imported_split} is none of {', '.join(SPLITS)}")
        on_rows(1)


def _label_problems(connection: sa.Connection, library: Library, on_rows: OnRows) -> Iterator[Problem]:
    """What events say must be a list of labels; what follows from them must be in the taxonomy."""
    name, taxonomy = library.definition.name, library.definition.taxonomy
    malformed = [stated for stated in stated_labels(connection, library.id) if not _is_label_list(stated.labels)]
    for stated in malformed:
        yield Problem(
            f"library {name}, label event {stated.event}",
            f"{stated.labels[:80]!r} is no sorted list of labels ({stated.events:,} events say so)",
        )
    if malformed:  # they can't be read below
        return
    positions = {label: index for index, label in enumerate(taxonomy.labels)}
    for sample in labelled_samples(connection, library.id):
        place = f"library {name}, sample {sample.id}"
        try:
            current = current_labels(sample.events, positions)
        except KeyError as missing:
            yield Problem(place, f"label {missing} is not in the taxonomy")
        else:
            if current is not None and (what := _misfit(current.labels, taxonomy, positions)):
                yield Problem(place, what)
        on_rows(1)


def _is_label_list(stored: str) -> bool:
    try:
        labels = json.loads(stored)
    except ValueError:
        return False
    return (
        isinstance(labels, list)
        and bool(labels)
        and all(isinstance(label, str) for label in labels)
        and labels == sorted(set(labels))
    )


def _misfit(labels: tuple[str, ...], taxonomy: Taxonomy, positions: dict[str, int]) -> str | None:
    for label in labels:
        if label not in positions:
            return f"label {label!r} is not in the taxonomy"
    return taxonomy.misfit(labels)


def _catalogue_problems(connection: sa.Connection, library: Library, on_rows: OnRows) -> Iterator[Problem]:
    """Every sample must stand in the catalogue, with the labels that follow from its events."""
    if library.catalogue_stale:  # it is made anew before anybody reads it
        return
    positions = label_positions(library.definition.taxonomy)
    place = f"library {library.definition.name}, sample"
    with closing(catalogue_rows(connection, library.id)) as rows:
        row = next(rows, None)
        for sample in events_of_all(connection, library.id):
            while row is not None and row.sample_id < sample.id:
                yield Problem(f"{place} {row.sample_id}", f"it is in the catalogue alone; {_REMAKE}")
                row = next(rows, None)
            if row is None or row.sample_id > sample.id:
                yield Problem(f"{place} {sample.id}", f"it is missing from the catalogue; {_REMAKE}")
                continue
            due = row_of(sample.id, current_labels(sample.events, positions))
            if row != due:
                differ = f"the catalogue says {row.labels}, its events say {due.labels}"
                yield Problem(f"{place} {sample.id}", f"{differ}; {_REMAKE}")
            row = next(rows, None)
            on_rows(1)
        for orphan in rows if row is None else chain([row], rows):
            yield Problem(f"{place} {orphan.sample_id}", f"it is in the catalogue alone; {_REMAKE}")


_REMAKE = "make the catalogue anew with wenlei library reindex"


def _snapshot_problems(record: RecordedSnapshot, on_rows: OnRows) -> Iterator[Problem]:
    place = f"library {record.library}, snapshot {record.hash}"
    if not record.path.is_dir():
        yield Problem(place, f"its folder {record.path} is gone; copy it back")
        return
    try:
        snapshot = open_snapshot(record.path)
    except (BadSnapshot, OSError) as error:
        yield Problem(place, str(error))
        return
    on_rows(snapshot.counts["total"])
    if snapshot.hash != record.hash:
        yield Problem(place, f"its folder {record.path} holds snapshot {snapshot.hash} instead; copy it back")
    threshold = record.parameters.get("near")  # snapshots of an earlier wenlei only kept exact duplicates together
    for problem in _row_problems(snapshot, NearSettings(threshold) if threshold else None, on_rows):
        yield problem._replace(place=f"{place}, {problem.place}")


def _row_problems(snapshot: Snapshot, near: NearSettings | None, on_rows: OnRows) -> Iterator[Problem]:
    groups, splits = array("q"), array("b")
    wrong: list[Problem] = []

    def texts() -> Iterator[tuple[str, str | None]]:
        for sample in snapshot.samples():
            identity = sample_id(sample.text, sample.pair)
            if identity != sample.id:
                wrong.append(Problem(f"sample {sample.id}", "its id is not the hash of its text"))
            groups.append(duplicate_group(identity, sample.text, sample.pair))
            splits.append(SPLITS.index(sample.split))
            on_rows(1)
            yield sample.text, sample.pair

    if near is None:
        for _ in texts():
            pass
        members = np.frombuffer(groups, np.int64)
    else:
        members = near_groups(texts(), near).groups
    yield from wrong
    parted = _parted(members, np.frombuffer(splits, np.int8))
    if parted:
        yield from _parted_problems(snapshot, members, parted)


def _parted(groups: IntArray, splits: IntArray) -> set[int]:
    """The groups that stand in more than one split; groups and splits: (rows,)."""
    order = np.argsort(groups)
    groups, splits = groups[order], splits[order]
    starts = np.flatnonzero(np.diff(groups, prepend=-1))  # no group is negative
    across = np.minimum.reduceat(splits, starts) != np.maximum.reduceat(splits, starts)
    return set(groups[starts[across]].tolist())


def _parted_problems(snapshot: Snapshot, groups: IntArray, parted: set[int]) -> Iterator[Problem]:
    seen: dict[int, tuple[str, Split]] = {}
    for sample, group in zip(snapshot.samples(), groups.tolist(), strict=True):
        if group not in parted:
            continue
        other, split = seen.setdefault(group, (sample.id, sample.split))
        if split != sample.split:
            yield Problem(f"sample {sample.id}", f"it is in {sample.split} and its near duplicate {other} in {split}")
