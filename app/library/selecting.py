"""Which texts to label next: active learning's choice of a batch, from the uncertainty of a model and from the texts.

Lewis and Gale (1994), "A sequential algorithm for training text classifiers": label what the model is unsure of. The
most uncertain texts of a pool resemble each other, so a batch can also be spread out: Sener and Savarese (2018),
"Active learning for convolutional neural networks: a core-set approach".
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from model.metrics import DEFAULT_THRESHOLD
from model.near import near_groups
from model.types import FloatArray, IntArray, Taxonomy, Text

BREADTH = 10  # candidates for each text of a spread batch: the more, the less uncertain they are
WIDTH = 256  # of the space that texts are spread out in
ROWS_AT_ONCE = 2048
_POINT = np.uint64(21)  # bits that a character takes


class Strategy(StrEnum):
    """How a batch is chosen."""

    MARGIN = "margin"  # the best label is hardly better than the second, or a label hardly reaches its threshold
    ENTROPY = "entropy"  # the scores are spread over the labels
    DIVERSITY = "diversity"  # uncertain by margin, and unlike each other
    RANDOM = "random"  # by lot: what the others have to beat


TextsOf = Callable[[IntArray], Sequence[Text]]


def uncertainty(
    scores: FloatArray, taxonomy: Taxonomy, *, thresholds: Mapping[str, float], strategy: Strategy
) -> FloatArray:
    """How unsure a model is of texts with `scores` (n, n_labels), from 0, certain, to 1: (n,).

    By entropy: of the labels, or the mean over labels that are each there or not. Otherwise by margin: one minus what
    the best label is ahead of the second, or how near a label comes to its threshold from either side.
    """
    if strategy is Strategy.ENTROPY:
        return _entropy(scores, multiple=taxonomy.multiple)
    if not taxonomy.multiple:
        if scores.shape[1] == 1:
            return np.zeros(len(scores), np.float32)  # there is nothing else that it could be
        best = np.partition(scores, -2, axis=1)
        lead: FloatArray = best[:, -1] - best[:, -2]
        return 1 - lead
    limits = np.array([thresholds.get(label, DEFAULT_THRESHOLD) for label in taxonomy.labels], np.float32)
    room = np.where(scores < limits, limits, 1 - limits)  # how far from its threshold a score can be on its side
    near = 1 - np.abs(scores - limits) / np.maximum(room, np.finfo(np.float32).tiny)
    nearest: FloatArray = near.max(axis=1)
    return np.clip(nearest, 0, 1)


def lots(ids: Sequence[str], seed: int) -> FloatArray:
    """A number from 0 to 1 for each id, (n,), that follows from it and the seed alone: an order by lot."""
    hashes = b"".join(blake2b(f"{seed}:{each}".encode(), digest_size=4).digest() for each in ids)
    return (np.frombuffer(hashes, np.uint32) / 2**32).astype(np.float32)


def choose(
    worth: FloatArray, ids: Sequence[str], texts_of: TextsOf, *, count: int, strategy: Strategy, judged: bool
) -> IntArray:
    """Positions of at most `count` texts of a pool of n to label next, in the order in which they were chosen.

    worth: (n,), what labelling a text is worth, equal ones by id; or, if not `judged` by a model, lots that say only
    which come first. texts_of: the texts at positions; only the best candidates are asked for. Of near duplicates
    (`model.near`) there is one at most, so a pool that holds little else gives fewer than `count`. The choice does not
    depend on the order of the pool.
    """
    ranked = np.lexsort((np.array(ids, dtype=np.bytes_), -worth))
    wanted = count * BREADTH
    while True:
        candidates = ranked[:wanted]
        texts = texts_of(candidates)
        first = np.flatnonzero(near_groups(texts).groups == np.arange(len(texts)))
        if len(first) >= count or wanted >= len(ranked):
            break
        wanted *= 4  # much of it is the same
    candidates = candidates[first]
    if strategy is not Strategy.DIVERSITY or len(first) <= count:
        return candidates[:count]
    features = text_features([texts[place] for place in first.tolist()])
    weights = worth[candidates] if judged else np.ones(len(candidates), np.float32)
    return candidates[spread(features, weights, count=count)]


def spread(features: FloatArray, worth: FloatArray, *, count: int) -> IntArray:
    """`count` rows of `features` (n, width), vectors of length 1, n or fewer: far from each other and worth something.

    Farthest first, from the row that is worth most: always the one whose distance to the nearest of those chosen, times
    what it is worth (`worth`: (n,), 0 to 1), is the largest.
    """
    chosen = np.empty(count, np.int64)
    chosen[0] = worth.argmax()
    is_left = np.ones(len(features), dtype=bool)
    nearest = np.full(len(features), -1, dtype=np.float32)  # inner products with those chosen, 1 at most
    for number in range(1, count):
        last = chosen[number - 1]
        is_left[last] = False
        np.maximum(nearest, features @ features[last], out=nearest)
        chosen[number] = np.where(is_left, (1 - nearest) * worth, -np.inf).argmax()
    return chosen


def text_features(texts: Sequence[Text]) -> FloatArray:
    """n texts as vectors of length 1, (n, `WIDTH`): their characters and pairs of these, rare ones weighing more.

    Weinberger et al. (2009), "Feature hashing for large scale multitask learning": each goes to a column and a sign by
    its hash, which keeps inner products near what they are.
    """
    keys = [_ngrams(texts[start : start + ROWS_AT_ONCE], start) for start in range(0, len(texts), ROWS_AT_ONCE)]
    rows = np.concatenate([chunk[0] for chunk in keys])
    hashes = np.concatenate([chunk[1] for chunk in keys])
    _, which, in_texts = np.unique(hashes, return_inverse=True, return_counts=True)
    weights = np.log((1 + len(texts)) / in_texts)[which] * np.where(hashes >> np.uint64(63), 1, -1)
    columns = (hashes % np.uint64(WIDTH)).astype(np.int64)
    flat = np.bincount(rows * WIDTH + columns, weights=weights, minlength=len(texts) * WIDTH)
    features = flat.reshape(len(texts), WIDTH).astype(np.float32)
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    features /= np.where(lengths > 0, lengths, 1)
    return features


def _ngrams(texts: Sequence[Text], start: int) -> tuple[IntArray, NDArray[np.uint64]]:
    """The different characters and bigrams of each text, as numbers of rows, from `start` on, and hashes."""
    joined = "\n".join(text.text if text.pair is None else f"{text.text}\r{text.pair}" for text in texts) + "\n"
    points = np.frombuffer(joined.encode("utf-32-le"), np.uint32).astype(np.uint64)
    is_end = points == ord("\n")
    rows = np.cumsum(is_end) - is_end
    inside = ~is_end[:-1] & ~is_end[1:]
    codes = np.concatenate((points[~is_end], (points[:-1] + np.uint64(1) << _POINT | points[1:])[inside]))
    rows = np.concatenate((rows[~is_end], rows[:-1][inside]))
    order = np.lexsort((codes, rows))
    codes, rows = codes[order], rows[order]
    new = np.concatenate(([True], (codes[1:] != codes[:-1]) | (rows[1:] != rows[:-1])))[: len(codes)]
    return rows[new] + start, _mix(codes[new])


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of a value moves all others."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)


def _entropy(scores: FloatArray, *, multiple: bool) -> FloatArray:
    """Of the labels, as a share of the most that it can be; where each is there or not, the mean of theirs."""
    wide = scores.astype(np.float64)
    if multiple:
        found = (_surprise(wide) + _surprise(1 - wide)).mean(axis=1) / np.log(2)
    else:
        found = _surprise(wide).sum(axis=1) / np.log(max(2, scores.shape[1]))
    share: FloatArray = np.clip(found, 0, 1).astype(np.float32)
    return share


def _surprise(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(-shares * np.log(np.where(shares > 0, shares, 1)))
