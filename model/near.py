"""Near duplicates: which texts are almost the same, in time that grows with their number and not with its square.

Broder (1997), "On the resemblance and containment of documents": texts are sets of character bigrams, MinHash makes
candidates of those that may be alike, and each candidate is compared exactly, so that no false pair is ever reported.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from rensa import RMinHash

from model.bigram_sets import BigramSets, Codes, Similarities, bigram_sets, concatenate
from model.errors import BadInput
from model.text import skeleton
from model.types import IntArray

PERMUTATIONS = 128
SEED = 0
RECALL = 0.99  # of two texts that are just as similar as the threshold asks: the chance of being compared
ROWS_AT_ONCE = 2048
CHARACTERS_AT_ONCE = 1 << 20
LEADERS = 4  # members of a bucket that all others are compared with: in buckets of up to five, everybody with everybody


@dataclass(frozen=True, slots=True)
class NearSettings:
    """What counts as near. threshold: the Jaccard similarity of the bigrams, from 0.5 to 1.

    Raises:
        BadInput: the threshold is outside that: below it, texts have little in common.
    """

    threshold: float = 0.8

    def __post_init__(self) -> None:
        if not 0.5 <= self.threshold <= 1:
            raise BadInput(f"--threshold {self.threshold:g}: give a similarity from 0.5 to 1")

    @property
    def band(self) -> int:
        """How many of the permutations make a band: as many as reach `RECALL`, for they part what is not similar."""
        rows = range(1, PERMUTATIONS + 1)
        return max(r for r in rows if 1 - (1 - self.threshold**r) ** (PERMUTATIONS // r) >= RECALL)


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """Which of n texts belong together.

    groups: (n,), for each text the position of the first text of its group; alone, its own.
    pairs: (m, 2), positions of texts that were found to be near, the smaller first, sorted. They link every group, but
    not everybody with everybody.
    similarities: (m,), the Jaccard similarity of each pair, from the threshold to 1; 1 between exact duplicates.
    """

    groups: IntArray
    pairs: IntArray
    similarities: Similarities


def near_groups(
    texts: Iterable[tuple[str, str | None]],
    settings: NearSettings = NearSettings(),
    *,
    on_texts: Callable[[int], None] = lambda _: None,
) -> NearDuplicates:
    """Group texts, or pairs of texts, that are near each other or have near ones between them.

    The groups follow from the set of texts alone, not from their order. Texts of one `duplicate_group` are always in
    one group. `on_texts` hears of texts that have been read, some at a time. Memory: 8 bytes a character and about 500
    a text.
    """
    hashes, sets, bands = _sketch(texts, settings.band, on_texts)
    # From here on texts are ranks among the distinct hashes, so that nothing depends on the order in which they came.
    _, first, rank = np.unique(hashes, return_index=True, return_inverse=True)
    links = _Links(sets, first, settings.threshold)
    comparable = np.flatnonzero(sets.sizes[first])
    for keys in bands:
        _link(*_shared(keys[first], comparable), links)
    smallest = np.full(len(first), len(hashes))
    np.minimum.at(smallest, links.root, first)
    copies = np.flatnonzero(first[rank] != np.arange(len(hashes)))
    pairs = np.concatenate((*links.pairs, np.column_stack((first[rank[copies]], copies))))
    similarities = np.concatenate((*links.similarities, np.ones(len(copies))))
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return NearDuplicates(smallest[links.root[rank]], pairs[order], similarities[order])


class _Links:
    """What was found to be near so far. `root`: the smallest rank that a text is linked to."""

    def __init__(self, sets: BigramSets, first: IntArray, threshold: float) -> None:
        self.root = np.arange(len(first))
        self.pairs = [np.empty((0, 2), np.int64)]
        self.similarities: list[Similarities] = [np.empty(0)]
        self._sets, self._first, self._threshold = sets, first, threshold
        self._sizes = sets.sizes[first]

    def compare(self, left: IntArray, right: IntArray) -> None:
        """Link texts `left` to texts `right`, both (m,), where they are similar enough."""
        sizes = self._sizes[left], self._sizes[right]
        able = np.minimum(*sizes) / np.maximum(*sizes) >= self._threshold
        positions = np.column_stack((self._first[left[able]], self._first[right[able]]))
        similarities = self._sets.similarities(positions[:, 0], positions[:, 1])
        near = similarities >= self._threshold
        self.pairs.append(np.sort(positions[near], axis=1))
        self.similarities.append(similarities[near])
        self._join(left[able][near], right[able][near])

    def _join(self, left: IntArray, right: IntArray) -> None:
        """Hang the larger root of each pair under the smaller, until both are the same."""
        root = self.root
        while (apart := root[left] != root[right]).any():
            left, right = left[apart], right[apart]
            ends = root[left], root[right]
            np.minimum.at(root, np.maximum(*ends), np.minimum(*ends))
            while ((shorter := root[root]) != root).any():
                root[:] = shorter


def _shared(keys: Codes, comparable: IntArray) -> tuple[IntArray, IntArray]:
    """The comparable ranks whose key others have too, bucket by bucket, and the number of the bucket of each."""
    ranks = comparable[np.argsort(keys[comparable], kind="stable")]
    _, buckets, sizes = np.unique(keys[ranks], return_inverse=True, return_counts=True)
    several = sizes[buckets] > 1
    return ranks[several], buckets[several]


def _link(members: IntArray, buckets: IntArray, links: _Links) -> None:
    """Compare the members of each bucket with its leaders: the first, then the next that is linked to none of these.

    A template repeated ten thousand times costs one comparison a text, and the most crowded bucket `LEADERS`.
    """
    is_settled = np.zeros(len(members), dtype=np.bool_)
    for _ in range(LEADERS):
        unsettled = np.flatnonzero(~is_settled)
        if not len(unsettled):
            return
        leader_of = np.full(buckets[-1] + 1, -1)
        leader_of[buckets[unsettled[::-1]]] = members[unsettled[::-1]]  # the first is written last
        leaders = leader_of[buckets]
        goes_on = leaders >= 0
        members, buckets, leaders, is_settled = (
            members[goes_on],
            buckets[goes_on],
            leaders[goes_on],
            is_settled[goes_on],
        )
        apart = links.root[members] != links.root[leaders]
        links.compare(leaders[apart], members[apart])
        is_settled |= links.root[members] == links.root[leaders]


def _sketch(
    texts: Iterable[tuple[str, str | None]], band: int, on_texts: Callable[[int], None]
) -> tuple[Codes, BigramSets, Codes]:
    """Of n texts the hashes of their skeletons, (n,), their bigrams, and the keys of every band, (bands, n)."""
    hashes, sets, keys = [], [], []
    for chunk in _chunks(texts):
        skeletons = [skeleton(*text) for text in chunk]
        hashes.append(np.array([_hash(*each) for each in zip(skeletons, chunk, strict=True)], dtype=np.uint64))
        sets.append(bigram_sets(skeletons))
        keys.append(_band_keys(sets[-1], band))
        on_texts(len(chunk))
    total = sum(map(len, hashes))
    bands = np.empty((PERMUTATIONS // band, total), dtype=np.uint64)
    end = total
    while keys:  # from the last to the first, so that they are never held twice
        columns = keys.pop()
        bands[:, end - columns.shape[1] : end] = columns
        end -= columns.shape[1]
    return np.concatenate([np.empty(0, np.uint64), *hashes]), concatenate(sets), bands


def _chunks(texts: Iterable[tuple[str, str | None]]) -> Iterator[list[tuple[str, str | None]]]:
    """Some texts at a time, fewer where they are long."""
    chunk: list[tuple[str, str | None]] = []
    characters = 0
    for text, pair in texts:
        chunk.append((text, pair))
        characters += len(text) + len(pair or "")
        if len(chunk) == ROWS_AT_ONCE or characters >= CHARACTERS_AT_ONCE:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _hash(letters: str, text: tuple[str, str | None]) -> int:
    """Equal for the same `duplicate_group`: texts without letters are known by what else they have."""
    key = letters if letters.strip() else f"\n{text}"
    return int.from_bytes(blake2b(key.encode(), digest_size=8).digest())


def _band_keys(sets: BigramSets, band: int) -> Codes:
    """For every band of the signatures and every text a key, (bands, n): equal where the band is."""
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(
        _mix(sets.codes), sets.offsets.astype(np.uint64), PERMUTATIONS, SEED
    )
    signatures = np.array(matrix.to_rows(), dtype=np.uint64)
    keys = np.zeros((PERMUTATIONS // band, len(signatures)), dtype=np.uint64)
    for column in range(keys.shape[0] * band):
        keys[column // band] = _mix(keys[column // band] ^ signatures[:, column])
    return keys


def _mix(values: Codes) -> Codes:
    """The finaliser of splitmix64 (Steele, Lea, Flood 2014), a bijection: every bit of a value moves all others."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return values ^ values >> np.uint64(31)
