"""The near duplicates of a library: groups of samples that are almost the same, and whether their labels agree."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from app.library.labels import current_labels, label_positions
from app.store.database import connect, reading
from app.store.integrity import count_samples
from app.store.libraries import Library, get_library
from app.store.samples import labelled_samples
from app.store.texts import SampleText, texts_by_id, texts_of
from model.near import NearDuplicates, NearSettings, near_groups
from model.types import IntArray

OnSamples = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Member:
    """A sample of a group, and its current labels, if it has any."""

    sample: SampleText
    labels: tuple[str, ...] | None


class NearPair(NamedTuple):
    """The ids of two samples that are near, how similar they are, and whether both have labels that differ."""

    left: str
    right: str
    similarity: float
    conflict: bool


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """Samples that are near each other, or have near ones between them.

    size: of the whole group. conflict: some of its labels differ.
    members, pairs: those shown, what conflicts first, then the most similar.
    """

    size: int
    conflict: bool
    members: tuple[Member, ...]
    pairs: tuple[NearPair, ...]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Some groups of a library, the largest first, and how much there is in all.

    samples: in the library. groups, grouped: groups of two or more, and the samples in them.
    conflicting: groups in which labels differ.
    """

    samples: int
    groups: int
    grouped: int
    conflicting: int
    page: tuple[DuplicateGroup, ...]


def find_duplicates(
    engine: sa.Engine,
    *,
    library: str,
    settings: NearSettings,
    only_conflicting: bool = False,
    limit: int,
    offset: int = 0,
    members: int,
    on_samples: OnSamples = lambda _: None,
) -> Duplicates:
    """At most `limit` groups after the first `offset`, each with at most `members` of its members.

    `on_samples` hears of samples that have been read, `samples_to_read` in all.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        ids: list[str] = []
        near = near_groups(_texts(connection, source, ids), settings, on_texts=on_samples)
        labels = _current_labels(connection, source, ids, on_samples)
        sizes = np.bincount(near.groups, minlength=len(ids))
        several = np.flatnonzero(sizes > 1)
        conflicting = _groups_that_differ(near.groups, labels.codes)
        listed = conflicting if only_conflicting else several
        listed = listed[np.argsort(-sizes[listed], kind="stable")][offset : offset + limit]
        shown = [_shown(pairs, labels.codes, members) for pairs in _pairs_of(near, listed)]
        texts = texts_of(connection, source.id, [ids[position] for group in shown for position in group.members])
    page = [
        DuplicateGroup(
            size=int(sizes[number]),
            conflict=bool(np.isin(number, conflicting)),
            members=tuple(Member(texts[ids[position]], labels.of(position)) for position in group.members),
            pairs=tuple(
                NearPair(ids[pair.left], ids[pair.right], pair.similarity, _differ(labels.codes, pair))
                for pair in group.pairs
            ),
        )
        for number, group in zip(listed, shown, strict=True)
    ]
    return Duplicates(
        samples=len(ids),
        groups=len(several),
        grouped=int(sizes[several].sum()),
        conflicting=len(conflicting),
        page=tuple(page),
    )


def samples_to_read(engine: sa.Engine, library: str) -> int:
    """How many samples `find_duplicates` will read: each for its text, and for its labels.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        return 2 * count_samples(connection, get_library(connection, library).id)


class _Labels(NamedTuple):
    """The current labels of n samples. `codes`: (n,), positions in `values`, or -1 where there are none."""

    codes: IntArray
    values: list[tuple[str, ...]]

    def of(self, position: int) -> tuple[str, ...] | None:
        return self.values[self.codes[position]] if self.codes[position] >= 0 else None


class _Pair(NamedTuple):
    """The positions of two samples, and how similar they are."""

    left: int
    right: int
    similarity: float


class _Shown(NamedTuple):
    """The part of a group that is shown."""

    members: list[int]
    pairs: list[_Pair]


def _texts(connection: sa.Connection, library: Library, ids: list[str]) -> Iterator[tuple[str, str | None]]:
    """The texts of all samples by id; `ids` learns whose they are."""
    for sample in texts_by_id(connection, library.id):
        ids.append(sample.id)
        yield sample.text, sample.pair


def _current_labels(connection: sa.Connection, library: Library, ids: list[str], on_samples: OnSamples) -> _Labels:
    order = label_positions(library.definition.taxonomy)
    codes = np.full(len(ids), -1)
    known: dict[tuple[str, ...], int] = {}
    position = 0
    for sample in labelled_samples(connection, library.id):  # in the order of `ids`, and maybe fewer
        before = position
        while ids[position] != sample.id:
            position += 1
        if current := current_labels(sample.events, order):
            codes[position] = known.setdefault(current.labels, len(known))
        on_samples(position - before)
    on_samples(len(ids) - position)
    return _Labels(codes, list(known))


def _groups_that_differ(groups: IntArray, codes: IntArray) -> IntArray:
    """The numbers of the groups whose labelled members don't have all the same labels."""
    labelled = codes >= 0
    highest = np.full(len(groups), -1)
    np.maximum.at(highest, groups[labelled], codes[labelled])
    lowest = highest.copy()
    np.minimum.at(lowest, groups[labelled], codes[labelled])
    return np.flatnonzero(lowest != highest)


def _pairs_of(near: NearDuplicates, groups: IntArray) -> Iterator[list[_Pair]]:
    """The pairs within each of the groups."""
    group_of = near.groups[near.pairs[:, 0]]
    order = np.argsort(group_of, kind="stable")
    starts, ends = (np.searchsorted(group_of, groups, side=side, sorter=order) for side in ("left", "right"))
    for start, end in zip(starts, ends, strict=True):
        rows = order[start:end]
        yield [
            _Pair(left, right, similarity)
            for (left, right), similarity in zip(
                near.pairs[rows].tolist(), near.similarities[rows].tolist(), strict=True
            )
        ]


def _shown(pairs: list[_Pair], codes: IntArray, most: int) -> _Shown:
    """At most `most` members, with the pairs between them: what conflicts first, then the most similar."""
    pairs = sorted(pairs, key=lambda pair: (not _differ(codes, pair), -pair.similarity, pair))
    members = list(dict.fromkeys(position for pair in pairs for position in (pair.left, pair.right)))[:most]
    among = set(members)
    return _Shown(members, [pair for pair in pairs if {pair.left, pair.right} <= among])


def _differ(codes: IntArray, pair: _Pair) -> bool:
    left, right = codes[[pair.left, pair.right]]
    return bool(left != right and min(left, right) >= 0)
