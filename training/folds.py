"""Folds: the train split in parts, so that each sample can be judged by a model that has seen neither it nor its like.

Near duplicates never cross folds. Where a sample goes follows from what there is and from the seed, not from the order.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np

from model.errors import BadInput, BadSnapshot
from model.near import near_groups
from model.types import IntArray, Sample

FEWEST = 2


def near_folds(
    samples: Sequence[Sample], *, n_folds: int, seed: int, on_texts: Callable[[int], None] = lambda _: None
) -> IntArray:
    """The fold of each sample, (n_samples,), 0 to `n_folds` - 1; near duplicates are in one fold.

    `on_texts` hears of texts that have been read, some at a time.

    Raises:
        BadInput: there are fewer folds than two, or more than groups of near duplicates.
        BadSnapshot: all samples are near duplicates of each other.
    """
    near = near_groups(((sample.text, sample.pair) for sample in samples), on_texts=on_texts)
    return make_folds(samples, near.groups, n_folds=n_folds, seed=seed)


def make_folds(samples: Sequence[Sample], groups: IntArray, *, n_folds: int, seed: int) -> IntArray:
    """The fold of each sample, (n_samples,): whole groups, each label spread as evenly as that allows.

    `groups`: (n_samples,), the same number for samples that must stay together.

    Groups are placed one by one, those with the rarest labels and then the largest first (Sechidis 2011, "On the
    stratification of multi-label data"), where their labels are fewest. As long as a fold is empty the next group goes
    there, so that no fold stays empty; and a label that so far stands in a single fold goes to another if it can.

    Raises:
        BadInput, BadSnapshot: as `near_folds`.
    """
    if n_folds < FEWEST:
        raise BadInput(f"--folds {n_folds}: give at least {FEWEST}, one to learn from and one to judge")
    rows_of: dict[int, list[int]] = {}
    for row, group in enumerate(np.asarray(groups).tolist()):
        rows_of.setdefault(group, []).append(row)
    if len(rows_of) < FEWEST:
        raise BadSnapshot(
            f"the {len(samples)} train samples are near duplicates of each other, so nothing is left to judge them by; "
            "import others too"
        )
    if n_folds > len(rows_of):
        raise BadInput(
            f"--folds {n_folds}: the {len(samples)} train samples are {len(rows_of)} groups of near duplicates, which "
            f"stay together; give at most --folds {len(rows_of)}"
        )
    frequency = Counter(label for sample in samples for label in sample.labels)
    rank = {label: place for place, label in enumerate(sorted(frequency, key=lambda label: (frequency[label], label)))}
    counts_of = {group: _counts(samples, rows, rank) for group, rows in rows_of.items()}
    place_of = {group: _place(min(samples[row].id for row in rows), seed) for group, rows in rows_of.items()}
    order = sorted(rows_of, key=lambda group: (next(iter(counts_of[group])), -len(rows_of[group]), place_of[group]))

    held = [[0] * n_folds for _ in rank]  # samples of each label in each fold
    sizes = [0] * n_folds
    folds = np.empty(len(samples), np.int64)
    for group in order:
        counts = counts_of[group]
        only_folds = [_only_fold(held[label]) for label in counts]
        fold = min(
            range(n_folds),
            key=lambda fold: (only_folds.count(fold), [held[label][fold] for label in counts], sizes[fold]),
        )
        for label, count in counts.items():
            held[label][fold] += count
        sizes[fold] += len(rows_of[group])
        folds[rows_of[group]] = fold
    return folds


def in_one_fold(samples: Sequence[Sample], folds: IntArray) -> list[str]:
    """The labels all of whose samples are in a single fold, sorted: of those samples no model has learned them."""
    seen: dict[str, set[int]] = {}
    for sample, fold in zip(samples, folds.tolist(), strict=True):
        for label in sample.labels:
            seen.setdefault(label, set()).add(fold)
    return sorted(label for label, where in seen.items() if len(where) == 1)


def _counts(samples: Sequence[Sample], rows: Sequence[int], rank: dict[str, int]) -> dict[int, int]:
    """Of one group: rank of a label → samples that carry it, the rarest label first."""
    return dict(sorted(Counter(rank[label] for row in rows for label in samples[row].labels).items()))


def _place(smallest_id: str, seed: int) -> bytes:
    """Where a group stands among its equals: as if drawn, but the same for the same seed and content."""
    return blake2b(f"{seed}:{smallest_id}".encode(), digest_size=16).digest()


def _only_fold(counts: Sequence[int]) -> int:
    """The fold that has all samples so far; -1 where there are none, or several have some."""
    filled = [fold for fold, count in enumerate(counts) if count]
    return filled[0] if len(filled) == 1 else -1
