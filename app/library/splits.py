"""Splits without leaks: near duplicates always stand in one split."""

import hashlib
from dataclasses import dataclass

import numpy as np

from model.errors import BadInput
from model.text import skeleton
from model.types import IntArray, Split

SPLITS = tuple(Split)
UNPROTECTED = len(SPLITS)  # weaker than any split that an import gives
MOST_OF_A_SPLIT = 0.5
_NAMES = {
    "train": Split.TRAIN,
    "dev": Split.DEV,
    "valid": Split.DEV,
    "validation": Split.DEV,
    "val": Split.DEV,
    "test": Split.TEST,
    "训练集": Split.TRAIN,
    "开发集": Split.DEV,
    "验证集": Split.DEV,
    "测试集": Split.TEST,
}


def named_split(name: str) -> Split | None:
    """The split that people call `name`, if any."""
    return _NAMES.get(name.strip().lower())


def duplicate_group(sample_id: str, text: str, pair: str | None) -> int:
    """The number, 0 to 2^63 - 1, that a sample shares with its near-copies.

    It hashes the letters and digits of the text and its pair, in their compatibility forms and without case; a
    text that has none of them is alone in its group.
    """
    letters = skeleton(text, pair)
    return _hash(letters if letters.strip() else sample_id) >> 1


@dataclass(frozen=True, slots=True)
class Splitter:
    """Which split a group of near duplicates stands in.

    test, dev: fractions of the groups that no import gave a split to.

    Raises:
        BadInput: the fractions are not within 0 and 1 or leave nothing to train on.
    """

    test: float
    dev: float
    seed: int

    def __post_init__(self) -> None:
        if not (0 <= self.test < 1 and 0 <= self.dev < 1 and self.test + self.dev < 1):
            raise BadInput(
                f"--test {self.test:g} --dev {self.dev:g}: give fractions from 0 up to 1 that leave some for training"
            )

    def split(self, group: int, protected: int | None) -> Split:
        """The split of `group`: the imported one if any (its position in `Split`), else by the group's bucket."""
        if protected is not None:
            return SPLITS[protected]
        bucket = _hash(f"{self.seed}:{group}") / 2**64
        if bucket < self.test:
            return Split.TEST
        return Split.DEV if bucket < self.test + self.dev else Split.TRAIN

    def assign(self, exact: IntArray, protected: IntArray, near: IntArray) -> IntArray:
        """The split of each of n samples, as a position in `Split`, the same for all of one near group.

        exact: (n,), numbers of `duplicate_group`, of which the smallest stands for a near group: more samples leave a
        group where it is, unless they bring a smaller one or link two. protected: (n,), positions in `Split`, or
        `UNPROTECTED`; what protects most holds for the group. near: (n,), which near group a sample is of.

        A group that would fill more than half of test or dev by itself goes to train, for neither would be a sample
        of anything else.
        """
        _, member = np.unique(near, return_inverse=True)
        sizes = np.bincount(member)
        smallest = np.full(len(sizes), np.iinfo(np.int64).max)
        np.minimum.at(smallest, member, exact)
        best = np.full(len(sizes), UNPROTECTED)
        np.minimum.at(best, member, protected)
        most = min(filter(None, (self.test, self.dev)), default=0.0) * len(near) * MOST_OF_A_SPLIT
        best[(best == UNPROTECTED) & (sizes > max(most, 1))] = SPLITS.index(Split.TRAIN)
        splits = [
            SPLITS.index(self.split(int(group), None if given == UNPROTECTED else int(given)))
            for group, given in zip(smallest, best, strict=True)
        ]
        return np.array(splits, np.int64)[member]


def _hash(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8])
