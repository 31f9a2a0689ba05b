"""Parts of the texts on which candidates are looked at one by one: short and long ones, those of rare classes."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from model.metrics import BoolArray
from model.types import Split
from training.comparison.candidates import Contest

FEWEST = 20  # texts of a slice, below which its accuracy says nothing
PARTS = 4  # that texts are cut into by their length, and classes by their size


class Slice(NamedTuple):
    """rows: (n,), which texts it has."""

    kind: str
    name: str
    rows: BoolArray


def slices(contest: Contest) -> list[Slice]:
    """All that have enough texts."""
    found = [*_by_length(contest), *_by_class_size(contest)]
    return [each for each in found if each.rows.sum() >= FEWEST]


def _by_length(contest: Contest) -> Iterator[Slice]:
    lengths = np.array([len(sample.text) + len(sample.pair or "") for sample in contest.samples])
    for low, high in _ranges(lengths):
        yield Slice("字数 length", _span(low, high), (lengths >= low) & (lengths <= high))


def _by_class_size(contest: Contest) -> Iterator[Slice]:
    """By the rarest class of each text, as it occurs in train."""
    counts = contest.snapshot.counts["labels"][Split.TRAIN.value]
    sizes = np.array([min(counts[label] for label in sample.labels) for sample in contest.samples])
    for low, high in _ranges(sizes):
        yield Slice("类别样本数 class size", _span(low, high), (sizes >= low) & (sizes <= high))


def _ranges(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """Parts of `values` with about as many in each, as their least and greatest value; one part is none."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, PARTS + 1)).astype(int))
    if len(edges) < 3:
        return
    for number, (low, high) in enumerate(pairwise(edges)):
        yield int(low), int(high if number == len(edges) - 2 else high - 1)


def _span(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"
