"""What pretraining reads: windows of consecutive sentences, in batches, and the place in a corpus where a run is."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from training.pretrain.columns import Columns


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Consecutive sentences of one document, at most `max_length` tokens of them.

    ids: (length,) int64, token ids without special tokens.
    sentence_starts: (n_sentences,) int64, offsets into `ids`; the first is 0.
    word_starts: (length,) bool, True where a jieba word begins; all True in a store made without words.
    document: number of the document in its store.
    n_characters: characters of the text that the tokens stand for, so that losses compare a character.
    characters: (length, word_length) int64, the character ids of each word; only in stores of words.
    place: characters of the document that stand before it.
    """

    ids: NDArray[np.int64]
    sentence_starts: NDArray[np.int64]
    word_starts: NDArray[np.bool_]
    document: int
    n_characters: int
    characters: NDArray[np.int64] | None = None
    place: int = 0

    @property
    def length(self) -> int:
        """Tokens in the window."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Position:
    """The place after a batch; batches that start there go on as if nothing had come between.

    epoch: passes over the train part before this one. shard: shards of the epoch's order that are behind.
    batch: batches of the current shard that are behind.
    """

    epoch: int = 0
    shard: int = 0
    batch: int = 0

    def to_json(self) -> dict[str, Any]:
        """The form in which checkpoints carry it."""
        return {"epoch": self.epoch, "shard": self.shard, "batch": self.batch}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Position":
        """The inverse of `to_json`."""
        return cls(epoch=data["epoch"], shard=data["shard"], batch=data["batch"])


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The windows of a shard: where each begins and ends, in tokens.

    starts, ends, documents, characters, places: (n_windows,), as in `Window`. first, last: (n_windows,) the sentences
    that begin inside a window, behind its first token, as a range of `shard.sentences`. spellings: (vocabulary_size,
    word_length) the characters of every word of the vocabulary, in stores of words.
    """

    shard: Columns
    spellings: NDArray[np.int64] | None
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    documents: NDArray[np.int64]
    characters: NDArray[np.int64]
    places: NDArray[np.int64]

    def windows(self, rows: NDArray[np.int64]) -> list[Window]:
        """The windows of these rows."""
        bounds = (self.starts, self.ends, self.first, self.last, self.documents, self.characters, self.places)
        return [
            _window(self.shard, self.spellings, *row)
            for row in zip(*(column[rows].tolist() for column in bounds), strict=True)
        ]


def plan(
    shard: Columns, numbers: NDArray[np.int64], max_length: int, spellings: NDArray[np.int64] | None = None
) -> Plan:
    """Cut the documents of `shard`, whose numbers in the store are `numbers`, into windows of whole sentences.

    A window takes sentences as long as they fit; a sentence of more than `max_length` tokens is cut.
    """
    sentences = shard.sentences.tolist()
    bounds = shard.documents.tolist()
    starts: list[int] = []
    ends: list[int] = []
    counts = np.empty(len(numbers), np.int64)  # windows of each document
    for number, (first, last) in enumerate(pairwise(bounds)):
        before = len(starts)
        start, end = sentences[first], sentences[last]
        while start < end:
            stop = end
            if end - start > max_length:
                whole = sentences[bisect_right(sentences, start + max_length, first, last) - 1]
                stop = whole if whole > start else start + max_length
            starts.append(start)
            ends.append(stop)
            start = stop
        counts[number] = len(starts) - before
    bounds_of_windows = np.array(starts, np.int64), np.array(ends, np.int64)
    begins = np.array([sentences[first] for first in bounds[:-1]], np.int64)  # of documents, in tokens
    return _planned(shard, spellings, *bounds_of_windows, np.repeat(numbers, counts), np.repeat(begins, counts))


def batched(plan: Plan, batch_tokens: int, shuffle: np.random.Generator | None) -> list[NDArray[np.int64]]:
    """Rows of windows of like length, at most `batch_tokens` tokens a batch when padded; in random order, or longest
    first without `shuffle`."""
    lengths = plan.ends - plan.starts
    mixed = np.arange(len(lengths)) if shuffle is None else shuffle.permutation(len(lengths))
    order = mixed[np.argsort(-lengths[mixed], kind="stable")]
    batches, start = [], 0
    while start < len(order):
        stop = start + batch_tokens // int(lengths[order[start]])
        batches.append(order[start:stop])
        start = stop
    return batches if shuffle is None else [batches[number] for number in shuffle.permutation(len(batches))]


def window_at(
    columns: Columns,
    document: int,
    sentence: int,
    *,
    number: int,
    max_tokens: int,
    spellings: NDArray[np.int64] | None = None,
) -> Window:
    """The window of `document` that begins at its sentence `sentence`, with all that fit, or the first tokens of it.

    number: what the document is called in its store.
    """
    one = columns.slice(document, document + 1)
    start, end = int(one.sentences[sentence]), len(one.ids)
    stop = start + max_tokens
    if stop >= end:
        stop = end
    else:
        whole = int(one.sentences[np.searchsorted(one.sentences, stop, side="right") - 1])
        stop = whole if whole > start else stop
    plan = _planned(one, spellings, np.array([start]), np.array([stop]), np.array([number]), np.array([0]))
    return plan.windows(np.array([0]))[0]


def _planned(
    shard: Columns,
    spellings: NDArray[np.int64] | None,
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    documents: NDArray[np.int64],
    begins: NDArray[np.int64],
) -> Plan:
    before = _characters_before(shard, starts)
    return Plan(
        spellings=spellings,
        shard=shard,
        starts=starts,
        ends=ends,
        first=np.searchsorted(shard.sentences, starts, side="right"),
        last=np.searchsorted(shard.sentences, ends, side="left"),
        documents=documents,
        characters=_characters_before(shard, ends) - before,
        places=before - _characters_before(shard, begins),
    )


def _characters_before(shard: Columns, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Characters before each of these tokens; those of a sentence that is cut are shared out among its tokens."""
    offsets, characters = shard.sentences.astype(np.int64), shard.characters.astype(np.int64)
    sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(characters)])
    sentence = np.minimum(np.searchsorted(offsets, tokens, side="right") - 1, len(characters) - 1)
    begun = (tokens - offsets[sentence]) * characters[sentence] // (offsets[sentence + 1] - offsets[sentence])
    before: NDArray[np.int64] = sums[sentence] + begun
    return before


def _window(
    shard: Columns,
    spellings: NDArray[np.int64] | None,
    start: int,
    end: int,
    first: int,
    last: int,
    document: int,
    n_characters: int,
    place: int,
) -> Window:
    ids = shard.ids[start:end].astype(np.int64)
    sentence_starts = np.zeros(last - first + 1, np.int64)
    sentence_starts[1:] = shard.sentences[first:last]
    sentence_starts[1:] -= start
    characters = None
    if spellings is not None and shard.spelled is not None and shard.spelling is not None:
        characters = spellings.take(ids, axis=0)
        # bounds of the column's own type, or all of it would be cast for every window
        inside = slice(*shard.spelled.searchsorted(np.array([start, end], shard.spelled.dtype)))
        characters[shard.spelled[inside].astype(np.int64) - start] = shard.spelling[inside]
    return Window(
        ids=ids,
        sentence_starts=sentence_starts,
        word_starts=np.ones(end - start, np.bool_) if shard.word_starts is None else shard.word_starts[start:end],
        document=document,
        n_characters=n_characters,
        characters=characters,
        place=place,
    )
