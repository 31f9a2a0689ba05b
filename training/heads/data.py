"""Rows of JSON lines, and their texts as windows of tokens that know which characters they stand for."""

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding
from tokenizers import Tokenizer as Engine

from model.errors import BadInput
from model.tokenization import subwords
from model.tokenization.base import Encoded, collate
from model.types import IntArray
from training.data import LENGTH_MULTIPLE

Row = TypeVar("Row")

TOKENISED_TOGETHER = 1000  # an engine's encodings are large; so many at a time are in memory
WORD_START = "▁"  # how unigram vocabularies spell a space; alone it stands for no character
IGNORED = -100  # the target of positions that have none; cross-entropy leaves it out


class BadRow(ValueError):
    """A row can't be used; the message says why, the reader adds where."""


def read_rows(path: Path, parse: Callable[[dict[str, Any]], Row]) -> list[Row]:
    """What `parse` makes of every line of `path` but empty ones.

    Raises:
        BadInput: the file can't be read or holds no rows, or a line is no JSON object, or `parse` refuses it.
    """
    rows = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if content := line.removeprefix(codecs.BOM_UTF8).strip():
                    rows.append(_row(content, parse, where=f"{path}, line {number}"))
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}") from None
    if not rows:
        raise BadInput(f"{path} holds no rows; it takes one JSON object a line")
    return rows


def _row(content: bytes, parse: Callable[[dict[str, Any]], Row], *, where: str) -> Row:
    try:
        data = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{where}: byte 0x{content[error.start]:02x} is not UTF-8; save the file as UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} is not JSON ({error}); it takes one JSON object a line") from None
    if not isinstance(data, dict):
        raise BadInput(f"{where} is a JSON {type(data).__name__}; it takes one object a line")
    try:
        return parse(data)
    except BadRow as error:
        raise BadInput(f"{where}: {error}") from None


def text_of(data: dict[str, Any], key: str) -> str:
    """The text under `key`.

    Raises:
        BadRow: there is none, or it is empty or no text.
    """
    if key not in data:
        raise BadRow(f'it has no "{key}"')
    return checked_text(data[key], key)


def checked_text(value: Any, name: str) -> str:
    """`value`, if it is a text that a tokenizer can read.

    Raises:
        BadRow: it is none.
    """
    if not isinstance(value, str):
        raise BadRow(f'"{name}" is {value!r:.60}; it has to be a text')
    if not value.strip():
        raise BadRow(f'"{name}" is empty')
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRow(f'"{name}" has half a character (a lone surrogate) at {error.start}') from None
    return value


def number_of(data: dict[str, Any], key: str) -> int:
    """The whole number under `key`.

    Raises:
        BadRow: there is none.
    """
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRow(f'"{key}" is {value!r:.60}; it has to be a whole number')
    return value


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the tokens of row number `row`, in the frame that the encoder reads.

    Its tokens from `at` on, `count` of them, are those of the row from `first` on.
    """

    row: int
    at: int
    first: int
    count: int
    encoded: Encoded


@dataclass(frozen=True, slots=True)
class Tokenised:
    """One text: where each of its tokens begins and ends in it, (n_tokens, 2), and the windows over them.

    A token that stands for no character (a space, say) begins where it ends.
    """

    offsets: IntArray
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True)
class WindowSet:
    """Windows to fit or judge a network by: the half of `training.loop.Examples` that tasks share."""

    texts: Sequence[Tokenised]
    windows: Sequence[Window]
    padding: dict[str, int]

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens a window: (n_windows,)."""
        return np.array([window.encoded.length for window in self.windows], np.int64)

    def batch(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The padded inputs of the windows `rows`: name → (batch, length)."""
        return collate([self.windows[row].encoded for row in rows], self.padding, multiple=LENGTH_MULTIPLE)

    def ids(self) -> IntArray:
        """All tokens of all windows: (n_tokens,)."""
        return np.concatenate([window.encoded.inputs["input_ids"] for window in self.windows])


class WindowTokenizer:
    """Cuts texts of any length into windows of at most `max_length` tokens, each `stride` tokens after the last.

    Windows overlap by what `stride` leaves of them, so that most tokens have context on both sides in one of them
    (doc_stride in Devlin 2018). A question before the text is in every window, cut to half of it where it is longer.
    `by_character`: a token of several characters, of a unigram vocabulary say, becomes one token a character.
    """

    def __init__(
        self, engine: Engine, *, padding_id: int, max_length: int, stride: int, by_character: bool = False
    ) -> None:
        self._engine = engine
        self._by_character = by_character
        self._added = engine.get_added_tokens_decoder().keys()  # [UNK] is one, and no word of five characters
        self.max_length = max_length
        self.stride = stride
        self.padding = {"input_ids": padding_id, "attention_mask": 0, "token_type_ids": 0}

    @classmethod
    def load(cls, folder: Path, *, max_length: int, stride: int, by_character: bool = False) -> "WindowTokenizer":
        """Read `folder`/tokenizer.json.

        Raises:
            BadInput: it can't be read, or is not one that `model.tokenization` takes.
        """
        known = subwords.load(folder, max_length=max_length)  # which checks the file
        engine = Engine.from_file(str(folder / "tokenizer.json"))
        engine.no_truncation()
        engine.no_padding()
        padding_id = known.padding["input_ids"]
        return cls(engine, padding_id=padding_id, max_length=max_length, stride=stride, by_character=by_character)

    def read(self, texts: Sequence[str], questions: Sequence[str] | None = None) -> list[Tokenised]:
        """Tokens and windows of each text, or of each text behind its question.

        Raises:
            BadInput: the tokenizer has no token like [CLS] before a text, and a question asks for one.
        """
        pairs: Iterator[Any] = iter(texts) if questions is None else zip(questions, texts, strict=True)
        found: list[Tokenised] = []
        while some := list(islice(pairs, TOKENISED_TOGETHER)):
            for encoding in self._engine.encode_batch(some):
                row = len(found)
                found.append(self._windows(encoding, row, texts[row], part=0 if questions is None else 1))
        return found

    def _windows(self, encoding: Encoding, row: int, text: str, *, part: int) -> Tokenised:
        columns = (encoding.ids, encoding.type_ids, encoding.tokens, encoding.sequence_ids, encoding.offsets)
        pieces = [
            _Piece(token_id, type_id, token, of, *_trimmed(text, *place, token) if of == part else place)
            for token_id, type_id, token, of, place in zip(*columns, strict=True)
        ]
        if self._by_character:
            pieces = [each for piece in pieces for each in self._characters(piece, part)]
        if part and pieces[0].part is not None:
            raise BadInput("the start's tokenizer puts no token like [CLS] before a text; take another --init")
        own = [index for index, piece in enumerate(pieces) if piece.part == part]
        asked = [index for index, piece in enumerate(pieces) if piece.part == 0 and part]
        framing = len(pieces) - len(own) - len(asked)
        too_many = max(0, len(asked) - (self.max_length - framing) // 2)
        cut = set(asked[len(asked) - too_many :])
        begin, end = (own[0], own[-1] + 1) if own else (len(pieces) - 1, len(pieces) - 1)
        before = [index for index in range(begin) if index not in cut]
        after = list(range(end, len(pieces)))
        room = self.max_length - len(before) - len(after)
        ids = np.array([piece.id for piece in pieces], np.int64)
        types = np.array([piece.type_id for piece in pieces], np.int64)
        windows = []
        for first in _starts(len(own), room, min(self.stride, room)):
            inside = own[first : first + room]
            chosen = [*before, *inside, *after]
            inputs = {
                "input_ids": ids[chosen],
                "attention_mask": np.ones(len(chosen), np.int64),
                "token_type_ids": types[chosen],
            }
            windows.append(Window(row, len(before), first, len(inside), Encoded(inputs, truncated=bool(too_many))))
        offsets = np.array([(pieces[index].begin, pieces[index].end) for index in own], np.int64)
        return Tokenised(offsets.reshape(-1, 2), tuple(windows))

    def _characters(self, piece: "_Piece", part: int) -> list["_Piece"]:
        """The piece as one piece a character, where the vocabulary has them all; ASCII words and numbers stay whole."""
        letters = piece.token.removeprefix(WORD_START)
        whole = piece.part != part or piece.id in self._added or (letters.isascii() and letters.isalnum())
        if whole or len(letters) < 2 or len(letters) != piece.end - piece.begin:
            return [piece]
        ids = [token_id for letter in letters if (token_id := self._engine.token_to_id(letter)) is not None]
        if len(ids) < len(letters):
            return [piece]
        places = range(piece.begin, piece.end)
        return [
            replace(piece, token=letter, id=token_id, begin=place, end=place + 1)
            for letter, token_id, place in zip(letters, ids, places, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token in its text: `part` is None for special tokens, 0 for the first text of two, 1 for the second."""

    id: int
    type_id: int
    token: str
    part: int | None
    begin: int
    end: int


def _starts(n_tokens: int, room: int, stride: int) -> range:
    """Where windows of `room` tokens begin; the last one reaches the end."""
    return range(0, max(1, n_tokens - room + stride), stride)


def _trimmed(text: str, start: int, end: int, token: str) -> tuple[int, int]:
    """The token's place without spaces at its edges; some vocabularies put them into the token behind them."""
    if token == WORD_START:
        return start, start
    while start < end and text[start].isspace():
        start += 1
    while start < end and text[end - 1].isspace():
        end -= 1
    return start, end


def overlapping(offsets: IntArray, start: int, end: int) -> IntArray:
    """Numbers of the tokens that share a character with text[start:end], in order."""
    begins, ends = offsets[:, 0], offsets[:, 1]
    return np.flatnonzero((begins < end) & (ends > start) & (begins < ends))
