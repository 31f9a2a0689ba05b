"""Tokenised documents as flat columns of numbers: in memory, and on the disk as files that are mapped, not read."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Consecutive documents.

    ids: (n_tokens,) uint16 or uint32, without special tokens.
    sentences: (n_sentences + 1,) offsets into `ids`; no sentence is empty.
    documents: (n_documents + 1,) offsets into `sentences`; no document is empty.
    characters: (n_sentences,) characters that are no spaces.
    word_starts: (n_tokens,) bool, or None where words were not asked for.
    spelled: (n_spelled,) the tokens, words that the vocabulary lacks, that are spelled out; only in stores of words.
    spelling: (n_spelled, word_length) the ids of their characters.
    """

    ids: NDArray[Any]
    sentences: NDArray[Any]
    documents: NDArray[Any]
    characters: NDArray[Any]
    word_starts: NDArray[np.bool_] | None = None
    spelled: NDArray[Any] | None = None
    spelling: NDArray[Any] | None = None

    @property
    def n_documents(self) -> int:
        """How many documents there are."""
        return len(self.documents) - 1

    def slice(self, first: int, last: int) -> "Columns":
        """The documents from `first` up to, without, `last`."""
        sentences = slice(int(self.documents[first]), int(self.documents[last]))
        tokens = slice(int(self.sentences[sentences.start]), int(self.sentences[sentences.stop]))
        spelling = spelled = None
        if self.spelling is not None and self.spelled is not None:
            inside = slice(*self.spelled.searchsorted(np.array([tokens.start, tokens.stop], self.spelled.dtype)))
            spelled, spelling = self.spelled[inside] - tokens.start, self.spelling[inside]
        return Columns(
            ids=self.ids[tokens],
            sentences=self.sentences[sentences.start : sentences.stop + 1] - self.sentences[sentences.start],
            documents=self.documents[first : last + 1] - self.documents[first],
            characters=self.characters[sentences],
            word_starts=None if self.word_starts is None else self.word_starts[tokens],
            spelled=spelled,
            spelling=spelling,
        )

    def save(self, folder: Path) -> None:
        """Write a file a column."""
        for name, column in self._columns().items():
            np.save(folder / f"{name}.npy", column, allow_pickle=False)

    @classmethod
    def map(cls, folder: Path) -> "Columns":
        """The columns that `save` wrote; bytes are read from the disk when they are looked at.

        Raises:
            OSError, ValueError: a file is missing or damaged.
        """
        columns = {
            field.name: np.load(path, mmap_mode="r", allow_pickle=False).view(np.ndarray)
            for field in fields(cls)
            if (path := folder / f"{field.name}.npy").exists()
        }
        return cls(**columns)

    def _columns(self) -> dict[str, NDArray[Any]]:
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}


def join(parts: Sequence[Columns]) -> Columns:
    """The documents of all `parts`, of one store, as one."""
    tokens = _bases([len(part.ids) for part in parts])
    return Columns(
        ids=np.concatenate([part.ids for part in parts]),
        sentences=_joined_offsets([part.sentences for part in parts]),
        documents=_joined_offsets([part.documents for part in parts]),
        characters=np.concatenate([part.characters for part in parts]),
        word_starts=_joined([part.word_starts for part in parts]),
        spelled=_joined(
            [None if p.spelled is None else p.spelled + base for p, base in zip(parts, tokens, strict=True)]
        ),
        spelling=_joined([part.spelling for part in parts]),
    )


def _joined(columns: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if there else None


def _joined_offsets(offsets: Sequence[NDArray[Any]]) -> NDArray[np.uint32]:
    bases = _bases([int(part[-1]) for part in offsets])
    shifted = [part[1:] + base for part, base in zip(offsets, bases, strict=True)]
    return np.concatenate([np.zeros(1, np.uint32), *shifted])


def _bases(sizes: Sequence[int]) -> list[np.uint32]:
    """How much is before each part, of a type that keeps offsets as small as they are."""
    return [np.uint32(base) for base in accumulate(sizes[:-1], initial=0)]
