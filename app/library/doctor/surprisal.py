"""How surprising a text is to whoever has read the rest of the library: bits a character, by its bigrams.

The bigrams are counted once a text and once a group of near duplicates, so that what is copied a hundred times is no
less odd for that, and a text is judged without what it added to the counts itself.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from app.library.doctor.measures import CODE_POINTS, code_points
from model.metrics import BoolArray

# Bigrams are counted in 2^22 places by a hash. A library has about a million different ones, nearly all of them rare,
# so that one that was never seen is taken for a rare one now and then, in a text that has many others.
_PLACES = 22
_FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
PRIOR = 4.0  # bigrams that the frequency of the single character counts for, beside those that were seen
UNSEEN = 0.02  # a text's share that a character counts for which no text has
ALPHABET = 30_000  # characters that might come
_END = "\n"

Bits = NDArray[np.float64]


class BigramModel:
    """Counts of characters and of their bigrams in texts that were read."""

    def __init__(self) -> None:
        self._pairs = np.zeros(1 << _PLACES, dtype=np.int32)
        self._before = np.zeros(CODE_POINTS, dtype=np.int64)  # in how many bigrams a character comes first
        self._single = np.zeros(CODE_POINTS, dtype=np.int64)

    def read(self, texts: Sequence[str]) -> None:
        """Count what the texts are made of."""
        if not texts:
            return
        rows, first, second = _bigrams(texts)
        keys = np.unique(rows << 42 | first << 21 | second)
        first, second = keys >> 21 & (1 << 21) - 1, keys & (1 << 21) - 1
        np.add.at(self._pairs, _place(first, second), 1)
        self._before += np.bincount(first, minlength=CODE_POINTS)
        characters = np.unique(rows << 21 | _bigrams(texts)[2]) & (1 << 21) - 1
        self._single += np.bincount(characters, minlength=CODE_POINTS)

    def surprisal(self, texts: Sequence[str], is_known: BoolArray) -> Bits:
        """(n,), bits a character of n texts, each followed by its end. is_known: (n,), which of them, or a near
        duplicate, was read."""
        rows, first, second = _bigrams(texts)
        own = is_known[rows].astype(np.int64)
        total = self._single.sum() + UNSEEN * ALPHABET
        alone = (np.maximum(self._single[second] - own, 0) + UNSEEN) / total
        seen = np.maximum(self._pairs[_place(first, second)] - own, 0)
        before = np.maximum(self._before[first] - own, seen)
        bits = -np.log2((seen + PRIOR * alone) / (before + PRIOR))
        lengths = np.bincount(rows, minlength=len(texts))
        return np.asarray(np.bincount(rows, weights=bits, minlength=len(texts)) / np.maximum(lengths, 1))


def _bigrams(texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Of all bigrams the number of their text, their first and their second character; a text begins and ends with
    `_END`."""
    points = _folded(code_points(_END + _END.join(texts) + _END)).astype(np.int64)
    rows = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])
    return rows, points[:-1], points[1:]


def _folded(points: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Digits as 0, and ASCII letters without case: no number is odd, and no shouting."""
    folded = points.copy()
    folded[(points >= ord("0")) & (points <= ord("9"))] = ord("0")
    folded[(points >= ord("A")) & (points <= ord("Z"))] += ord("a") - ord("A")
    return folded


def _place(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    mixed = first.astype(np.uint64) * _FIRST ^ second.astype(np.uint64) * _SECOND
    return (mixed * _FIRST >> np.uint64(64 - _PLACES)).astype(np.int64)
