"""What pretraining reads: windows of consecutive sentences, and the place in the corpus where a run stands."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Consecutive sentences of one document, at most `max_length` tokens of them.

    ids: (length,) int64, token ids without special tokens.
    sentence_starts: (n_sentences,) int64, offsets into `ids`; the first is 0.
    word_starts: (length,) bool, True where a jieba word begins; all True in a store made without words.
    document: number of the document in its shard.
    n_characters: characters of the text that the tokens stand for, so that losses compare a character.
    characters: (length, word_length) int64, the character ids of each word; only in stores of words.
    """

    ids: NDArray[np.int64]
    sentence_starts: NDArray[np.int64]
    word_starts: NDArray[np.bool_]
    document: int
    n_characters: int
    characters: NDArray[np.int64] | None = None

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
