"""Texts as sets of character bigrams, side by side in flat arrays, and how alike two of them are.

A number counts as one character, however long it is: 订单12 and 订单34567 differ in one character. A text, or one of a
pair, with fewer than `SHORTEST` characters is like nothing but itself: in 不好吃 and 好吃 one character is the meaning.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from model.types import IntArray

SHORTEST = 8  # characters, a number counting as one
Codes = NDArray[np.uint64]
Similarities = NDArray[np.float64]

# A code from its low bits up: the second character of the bigram, the first, whether they stand in the second text of
# a pair, whether the code is a short text's hash. The bits above hold the row while some rows are sorted together.
_CHARACTER = 24
_SECOND_TEXT = 1 << 2 * _CHARACTER
_SHORT_TEXT = 2 << 2 * _CHARACTER
_ROW = 2 * _CHARACTER + 2
MOST_ROWS = 1 << 64 - _ROW
_PADDING = np.uint64(2**64 - 1)

_END = ord("\n")
_FIRST_NUMBER = 1 << 21  # above all of Unicode
_NUMBERS = (1 << _CHARACTER) - _FIRST_NUMBER
_COMPARED_AT_ONCE = 1 << 20  # codes


@dataclass(frozen=True, slots=True)
class BigramSets:
    """The bigram sets of n texts.

    codes: (total,), ascending within a text. They are exact, but for numbers of more than six digits.
    offsets: (n + 1,). The set of text i is `codes[offsets[i]:offsets[i + 1]]`; it is empty where the text is short.
    seconds: (n,), how many codes are of the second text of a pair.
    """

    codes: Codes
    offsets: IntArray
    seconds: IntArray

    @property
    def sizes(self) -> IntArray:
        """How many codes each text has: (n,)."""
        return np.diff(self.offsets)

    def similarities(self, left: IntArray, right: IntArray) -> Similarities:
        """The Jaccard similarity of texts `left` and `right`, both (m,) and none empty: (m,).

        Two pairs are as similar as the less similar of their texts.
        """
        widths = self.sizes[left] + self.sizes[right]
        order = np.argsort(-widths, kind="stable")  # texts of like length together, so that little is padded
        found = np.empty(len(order))
        start = 0
        while start < len(order):
            block = order[start : start + max(1, _COMPARED_AT_ONCE // int(widths[order[start]]))]
            found[block] = self._compare(left[block], right[block])
            start += len(block)
        return found

    def _compare(self, left: IntArray, right: IntArray) -> Similarities:
        """What two sets share stands twice in a row of the table once that is sorted."""
        sizes = self.sizes
        total = sizes[left] + sizes[right]
        places = np.arange(int(total.max()))
        in_left = places < sizes[left][:, None]
        table = np.full(in_left.shape, _PADDING)
        table[in_left] = self._flat(left)
        table[~in_left & (places < total[:, None])] = self._flat(right)
        table.sort(axis=1)
        twice = (table[:, 1:] == table[:, :-1]) & (table[:, 1:] != _PADDING)
        shared = np.count_nonzero(twice, axis=1)
        seconds = self.seconds[left] + self.seconds[right]
        if not seconds.any():
            return np.asarray(shared / (total - shared))
        shared_seconds = np.count_nonzero(twice & (table[:, 1:] & np.uint64(_SECOND_TEXT) != 0), axis=1)
        firsts, shared_firsts = total - seconds, shared - shared_seconds
        neither = seconds == 0  # no pairs, these two
        of_firsts: Similarities = shared_firsts / (firsts - shared_firsts)
        of_seconds = np.where(neither, 1.0, shared_seconds / np.where(neither, 1, seconds - shared_seconds))
        return np.minimum(of_firsts, of_seconds)

    def _flat(self, texts: IntArray) -> Codes:
        """The codes of `texts`, one text after the other."""
        sizes = self.sizes[texts]
        before = np.cumsum(sizes) - sizes
        places: IntArray = np.arange(sizes.sum()) + np.repeat(self.offsets[texts] - before, sizes)
        return np.take(self.codes, places)


def bigram_sets(skeletons: Sequence[str]) -> BigramSets:
    """The sets of 1 to `MOST_ROWS` texts, of which only letters and digits are left; a pair's follow a line break."""
    joined = "\n".join(skeletons) + "\n"
    tokens = _tokens(joined)
    is_end = tokens == _END
    ends = np.flatnonzero(is_end)
    lengths = np.diff(ends, prepend=-1) - 1
    rows, is_second = _sides(skeletons)
    is_short = lengths < SHORTEST
    side = np.repeat(np.arange(len(ends)), lengths + 1)[:-1]  # of every token that another one follows
    inside = ~(is_end[:-1] | is_end[1:] | is_short[side])  # no bigram crosses the end of a text
    bigrams = (tokens[:-1] << np.uint64(_CHARACTER) | tokens[1:])[inside]
    # A short text of a pair is one code; where there is no other, there is nothing to compare.
    has_long = np.bincount(rows[~is_short], minlength=len(skeletons)) > 0
    shorts = np.flatnonzero(is_short & has_long[rows])
    parts = joined.split("\n") if len(shorts) else []
    hashes = np.array([_short_text(parts[short]) for short in shorts], dtype=np.uint64)
    sides = np.concatenate((side[inside], shorts))
    keys = np.concatenate((bigrams, hashes)) | np.uint64(_SECOND_TEXT) * is_second[sides].astype(np.uint64)
    keys |= rows[sides].astype(np.uint64) << np.uint64(_ROW)
    return _unique(keys, len(skeletons))


def concatenate(chunks: list[BigramSets]) -> BigramSets:
    """All chunks as one. The list is emptied on the way, so that their codes are never held twice."""
    offsets = np.zeros(1 + sum(len(chunk.seconds) for chunk in chunks), dtype=np.int64)
    offsets[1:] = np.concatenate([np.empty(0, np.int64), *(chunk.sizes for chunk in chunks)]).cumsum()
    seconds = np.concatenate([np.empty(0, np.int64), *(chunk.seconds for chunk in chunks)])
    codes = np.empty(offsets[-1], dtype=np.uint64)
    end = len(codes)
    while chunks:
        chunk = chunks.pop()
        codes[end - len(chunk.codes) : end] = chunk.codes
        end -= len(chunk.codes)
    return BigramSets(codes, offsets, seconds)


def _tokens(text: str) -> Codes:
    """One token a character, and one a number: 11-adic in its digits and 1 to 10 each, so that 007 is not 7."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    is_digit = (points >= ord("0")) & (points <= ord("9"))
    starts = np.flatnonzero(~(is_digit & np.concatenate(([False], is_digit[:-1]))))
    lengths = np.diff(starts, append=len(points))
    if int(lengths.max()) > 1 or is_digit.any():
        place = np.arange(len(points)) - np.repeat(starts, lengths)
        powers = np.cumprod(np.concatenate(([1], np.full(lengths.max(), 11))), dtype=np.uint64)
        points = np.where(is_digit, (points - np.uint64(ord("0") - 1)) * powers[place], points)
        points = np.add.reduceat(points, starts)
        is_number = is_digit[starts]
        points[is_number] = points[is_number] % np.uint64(_NUMBERS) + np.uint64(_FIRST_NUMBER)
    return points


def _sides(skeletons: Sequence[str]) -> tuple[IntArray, NDArray[np.bool_]]:
    """Of every text, alone or in a pair: the row it is of, and whether it is the second of a pair."""
    is_pair = np.array(["\n" in skeleton for skeleton in skeletons])
    rows = np.repeat(np.arange(len(skeletons)), 1 + is_pair)
    return rows, np.concatenate(([False], rows[1:] == rows[:-1]))


def _short_text(letters: str) -> int:
    return int.from_bytes(blake2b(letters.encode(), digest_size=2 * _CHARACTER // 8).digest()) | _SHORT_TEXT


def _unique(keys: Codes, n_rows: int) -> BigramSets:
    """The sets from keys that are rows above codes."""
    keys.sort()
    keys = keys[np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]]
    rows = (keys >> np.uint64(_ROW)).astype(np.int64)
    codes = keys & np.uint64((1 << _ROW) - 1)
    counts = np.bincount(rows, minlength=n_rows)
    seconds = np.bincount(rows[codes & np.uint64(_SECOND_TEXT) != 0], minlength=n_rows)
    return BigramSets(codes, np.concatenate(([0], counts.cumsum())), seconds)
