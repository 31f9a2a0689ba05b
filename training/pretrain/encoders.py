"""Documents → columns of token ids: what each process does that prepares a store."""

from collections.abc import Callable, Sequence
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Engine

from model.errors import BadInput
from model.files import read_json
from model.tokenization import words
from model.tokenization.segment import segment
from training.pretrain.columns import Columns
from training.pretrain.isolated import IsolatedTokens, Tokens
from training.pretrain.sentences import sentences

Segment = Callable[[str], list[str]]


class Encoder(Protocol):
    """What turns documents into numbers.

    unknown_id: the token of what the vocabulary lacks, if it has one. spellings: (vocabulary_size, word_length) the
    characters of every word, of a vocabulary of words.
    """

    vocabulary_size: int
    unknown_id: int | None
    spellings: NDArray[np.int64] | None

    def encode(self, documents: Sequence[list[str]]) -> Columns:
        """The documents, each a list of paragraphs; a sentence without tokens falls away."""
        ...


class SubwordEncoder:
    """Sub-words of `folder`/tokenizer.json. segment: marks where words begin, for masking whole words."""

    spellings: NDArray[np.int64] | None = None

    def __init__(self, folder: Path, *, segment: Segment | None = None) -> None:
        path = folder / "tokenizer.json"
        try:
            self._engine = Engine.from_file(str(path))
        except Exception as error:  # tokenizers raises nothing narrower
            raise BadInput(f"{path} can't be read as a tokenizer: {error}; copy it again") from None
        self._engine.no_truncation()
        self._engine.no_padding()
        self._engine.encode_special_tokens = True  # a text that says [MASK] masks nothing
        self._isolated = IsolatedTokens(self._engine) if IsolatedTokens.serves(self._engine) else None
        self._segment = segment
        self.vocabulary_size: int = max(self._engine.get_vocab().values()) + 1
        unknown = (self._engine.token_to_id(token) for token in ("[UNK]", "<unk>"))
        self.unknown_id: int | None = next((number for number in unknown if number is not None), None)

    def encode(self, documents: Sequence[list[str]]) -> Columns:
        texts = [[text for paragraph in document for text in sentences(paragraph)] for document in documents]
        flat = list(chain.from_iterable(texts))
        tokens = self._isolated.encode(flat) if self._isolated else self._tokens(flat)
        word_starts = _word_starts(tokens.positions, flat, self._segment) if self._segment else None
        return columns(
            tokens.ids.astype(id_type(self.vocabulary_size)), tokens.lengths, texts, flat, word_starts=word_starts
        )

    def _tokens(self, texts: list[str]) -> Tokens:
        encodings = self._engine.encode_batch(texts, add_special_tokens=False)
        lengths = np.fromiter(map(len, encodings), np.int64, len(texts))
        ids = np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int64, lengths.sum())
        starts = (start for encoding in encodings for start, _ in encoding.offsets)
        bases = np.cumsum([0, *(len(text) + 1 for text in texts)])[:-1]
        return Tokens(ids, lengths, np.fromiter(starts, np.int64, len(ids)) + np.repeat(bases, lengths))


class WordEncoder:
    """Words of jieba by `folder`/tokenizer.json; those that its vocabulary lacks are spelled out."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = words.load(folder, max_length=1)  # which cuts texts, not what is stored
        self.vocabulary_size = self._tokenizer.vocabulary_size
        self.unknown_id: int | None = self._tokenizer.unknown_id
        self.spellings: NDArray[np.int64] | None = self._tokenizer.characters_of_words

    def encode(self, documents: Sequence[list[str]]) -> Columns:
        texts = [[text for paragraph in document for text in sentences(paragraph)] for document in documents]
        flat = list(chain.from_iterable(texts))
        found = [words.words_of(text) for text in flat]
        encoded = self._tokenizer.encode_words(list(chain.from_iterable(found)))
        spelled = np.flatnonzero(encoded.ids == self.unknown_id)
        return columns(
            encoded.ids.astype(id_type(self.vocabulary_size)),
            np.fromiter(map(len, found), np.int64, len(found)),
            texts,
            flat,
            spelled=spelled.astype(np.uint32),
            spelling=encoded.characters[spelled].astype(id_type(self._tokenizer.n_characters)),
        )


def encoder_of(folder: Path, *, words_marked: bool) -> Encoder:
    """The encoder that `folder`/tokenizer.json asks for; `words_marked`: tell where words begin.

    Raises:
        BadInput: the file is missing or can't be read.
    """
    if is_of_words(folder):
        return WordEncoder(folder)
    return SubwordEncoder(folder, segment=segment if words_marked else None)


def is_of_words(folder: Path) -> bool:
    """Whether the tokenizer in `folder` knows words, not sub-words.

    Raises:
        BadInput: there is none, or it can't be read.
    """
    path = folder / "tokenizer.json"
    try:
        return bool(read_json(path)["model"]["type"] == words.TYPE)
    except FileNotFoundError:
        raise BadInput(f"{folder} has no tokenizer.json; copy the whole folder again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} can't be read as a tokenizer: {error!r}; copy it again") from None


def columns(
    ids: NDArray[Any],
    lengths: NDArray[np.int64],
    texts: list[list[str]],
    flat: list[str],
    *,
    word_starts: NDArray[np.bool_] | None = None,
    spelled: NDArray[np.uint32] | None = None,
    spelling: NDArray[Any] | None = None,
) -> Columns:
    """Columns of sentences (`texts` a document, `flat` all of them) that have `lengths` tokens each."""
    kept = lengths > 0
    characters = np.fromiter((len(text) - text.count(" ") for text in flat), np.uint32, len(flat))
    bounds = np.concatenate([[0], np.cumsum(kept)])[[0, *accumulate(map(len, texts))]]  # of documents, in sentences
    return Columns(
        ids=ids,
        sentences=np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.uint32),
        documents=np.unique(bounds).astype(np.uint32),  # without documents of which nothing is left
        characters=characters[kept],
        word_starts=word_starts,
        spelled=spelled,
        spelling=spelling,
    )


def id_type(size: int) -> type[np.uint16 | np.uint32]:
    """The smallest type that holds `size` different ids."""
    return np.uint16 if size <= 1 << 16 else np.uint32


def _word_starts(positions: NDArray[np.int64], texts: list[str], segment: Segment) -> NDArray[np.bool_]:
    """Whether each token is in another word than the token before it; `positions` are as in `Tokens`."""
    words_and_breaks = (len(word) for text in texts for word in (*segment(text), "\n"))
    lengths = np.fromiter(words_and_breaks, np.int64)
    word = np.repeat(np.arange(len(lengths)), lengths)[positions]
    starts: NDArray[np.bool_] = np.diff(word, prepend=-1) != 0
    return starts
