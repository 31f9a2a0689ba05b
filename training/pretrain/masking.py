"""Masked language modelling (Devlin 2018): which tokens of a row are to be guessed, and what the model sees of them.

Of 15 % of the tokens that are chosen, 80 % are shown as [MASK], 10 % as some other token, 10 % as they are. Everything
follows from one stream of random numbers a row, so that it is the same in whichever process a row is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHOSEN = 0.15  # of the ordinary tokens
MASKED, REPLACED = 0.8, 0.1  # of the chosen ones; the others are shown as they are
IGNORED = -100  # the label of a token that is not to be guessed; torch's cross-entropy leaves it out


class RowRandom:
    """The random numbers of every row of every step of a run: streams that share nothing.

    There is one generator, which `at` sets to a row's stream: Philox counts, so that this costs little where a new
    generator would cost more than the masking. Draw all that a row needs before asking for the next.
    """

    def __init__(self, seed: int) -> None:
        self._stream = np.random.Philox(key=[seed, 0])
        self._generator = np.random.Generator(self._stream)
        self._state = self._stream.state

    def at(self, step: int, row: int) -> np.random.Generator:
        """The generator, at the beginning of the stream of `row` of `step`."""
        self._state["state"]["counter"][:] = 0, 0, row, step
        self._state["buffer_pos"] = len(self._state["buffer"])  # nothing is left over from the row before
        self._state["has_uint32"] = 0
        self._stream.state = self._state
        return self._generator


@dataclass(frozen=True, slots=True)
class Row:
    """The ordinary tokens of one row, and its share of chance.

    ids: (length,) token ids. word_starts: (length,) where words begin. lots: (length, 3) and mark: from 0 to 1; what
    `draw` gave for it.
    """

    ids: NDArray[np.int64]
    word_starts: NDArray[np.bool_]
    lots: NDArray[np.float64]
    mark: float

    @classmethod
    def draw(cls, ids: NDArray[np.int64], word_starts: NDArray[np.bool_], generator: np.random.Generator) -> "Row":
        """The row, with random numbers from its generator."""
        return cls(ids, word_starts, generator.random((len(ids), 3)), generator.random())


@dataclass(frozen=True, slots=True)
class Masking:
    """How the tokens of one vocabulary are masked.

    mask_id: the id of [MASK]. ordinary_ids: those that are no special tokens; replacements are drawn from them.
    whole_words: choose words instead of tokens (whole-word masking); all tokens of a word are then treated alike.
    """

    mask_id: int
    ordinary_ids: NDArray[np.int64]
    whole_words: bool = False

    def __call__(self, rows: Sequence[Row]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """What the model sees of all rows, one after another (n_tokens,), and which tokens it is to guess."""
        lots = np.concatenate([row.lots for row in rows])
        begins = np.ones(len(lots), bool)
        if self.whole_words:
            begins = np.concatenate([row.word_starts for row in rows])
        chosen, treatment = self._choose(rows, begins, lots)
        masked = chosen & (treatment < MASKED)
        replaced = chosen & (treatment >= MASKED) & (treatment < MASKED + REPLACED)
        others = self.ordinary_ids[(lots[:, 2] * len(self.ordinary_ids)).astype(np.int64)]
        ids = np.concatenate([row.ids for row in rows])
        return np.where(masked, self.mask_id, np.where(replaced, others, ids)), chosen

    def _choose(
        self, rows: Sequence[Row], begins: NDArray[np.bool_], lots: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which tokens are chosen, and the number that says how each is treated: both (n_tokens,).

        The words of a row are put in random order and chosen until 15 % of the row's tokens are. The word that
        crosses the mark is chosen by lot, with the share of it that lies before the mark as its chance: 15 % are
        then exact in the mean, for short rows too. Without whole words, every token is a word.
        """
        lengths = np.array([len(row.ids) for row in rows])
        row_starts = np.cumsum(lengths) - lengths
        begins[row_starts[lengths > 0]] = True  # a row may begin amid a word
        first_tokens = np.flatnonzero(begins)
        sizes = np.diff(first_tokens, append=len(begins))
        rows_of_words = np.repeat(np.arange(len(rows)), lengths)[first_tokens]
        order = np.argsort(rows_of_words + lots[first_tokens, 0], kind="stable")  # row after row, by lot within one
        begin = np.cumsum(sizes[order]) - sizes[order]
        limit = (row_starts + CHOSEN * lengths)[rows_of_words]
        marks = np.array([row.mark for row in rows])[rows_of_words]
        chosen = np.empty(len(first_tokens), bool)
        chosen[order] = begin + marks * sizes[order] < limit
        return np.repeat(chosen, sizes), np.repeat(lots[first_tokens, 1], sizes)
