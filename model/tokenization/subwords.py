"""Sub-words: WordPiece, unigram or BPE vocabularies in the `tokenizer.json` format of Hugging Face tokenizers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Encoding
from tokenizers import Tokenizer as Engine

from model.errors import BadInput
from model.files import read_json, write_json
from model.tokenization.base import Encoded, share
from model.types import Text

UNKNOWN_TOKENS = ("[UNK]", "<unk>")
PADDING_TOKENS = ("[PAD]", "<pad>", "<|endoftext|>")
# A vocabulary file that was not found leaves a tokenizer with its special tokens only, and no error: every
# character becomes [UNK]. No real vocabulary is this small.
FEWEST_TOKENS = 10

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# The two texts of a pair in the other order, as long as `input_ids`; a text without a pair has only one order.
SWAPPED = "swapped_ids"
# In tokenizer_config.json, which names the inputs where they are not `INPUTS`: tokenizer.json allows no more keys.
INPUTS_KEY = "wenlei_inputs"


@dataclass(frozen=True, slots=True)
class Frame:
    """The special tokens around a text, or around a pair, and what type each token is of.

    special: ids and types of those before the first text, behind it, and behind the second; types: of either text.
    """

    special: tuple[tuple[tuple[int, int], ...], ...]
    types: tuple[int, ...]

    @property
    def n_special(self) -> int:
        """How many tokens the frame adds."""
        return sum(map(len, self.special))

    def around(self, texts: list[list[int]]) -> tuple[list[int], list[int]]:
        """Ids and types of `texts` in the frame: (length,) each."""
        ids, types = map(list, zip(*self.special[0], strict=True)) if self.special[0] else ([], [])
        for text, its_type, behind in zip(texts, self.types, self.special[1:], strict=True):
            ids += [*text, *(token_id for token_id, _ in behind)]
            types += [its_type] * len(text) + [token_type for _, token_type in behind]
        return ids, types


def frames(engine: Engine) -> tuple[Frame, Frame]:
    """What the vocabulary's template puts around one text, and around two: read off what it does with a word."""
    words = engine.get_vocab().keys() - {token.content for token in engine.get_added_tokens_decoder().values()}
    word = next(word for word in words if engine.encode(word, add_special_tokens=False).ids)
    return _frame(engine.encode(word)), _frame(engine.encode(word, word))


def _frame(encoding: Encoding) -> Frame:
    special: list[list[tuple[int, int]]] = [[]]
    types: list[int] = []
    for token_id, token_type, part in zip(encoding.ids, encoding.type_ids, encoding.sequence_ids, strict=True):
        if part is None:
            special[-1].append((token_id, token_type))
        elif part == len(types):  # the first token of the next text
            special.append([])
            types.append(token_type)
    return Frame(tuple(map(tuple, special)), tuple(types))


class SubwordTokenizer:
    """Gives the inputs named `inputs`, of `INPUTS` and `SWAPPED`; safe to call from several threads."""

    def __init__(self, engine: Engine, *, max_length: int, padding_id: int, inputs: Sequence[str] = INPUTS) -> None:
        engine.no_truncation()
        engine.no_padding()
        self._engine = engine
        self._frames = frames(engine)
        self.max_length = max_length
        self.vocabulary_size = _rows(engine)
        self.unknown_id = unknown_id(engine)
        self.padding = {name: padding_id if name in ("input_ids", SWAPPED) else 0 for name in inputs}

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """One encoding a text, special tokens included, cut to the length the tokenizer was loaded with."""
        parts = [part for text in texts for part in (text.text, text.pair) if part is not None]
        # encode_batch_fast leaves out character offsets, and unlike encode it lets other threads run.
        ids = iter(self._engine.encode_batch_fast(parts, add_special_tokens=False))
        return [self._framed(next(ids).ids, None if text.pair is None else next(ids).ids) for text in texts]

    def _framed(self, first: list[int], second: list[int] | None) -> Encoded:
        """The tokens of a text, or of both texts of a pair, cut and between special tokens.

        Not by the engine's own truncation: it also makes every window that was cut away, for pairs every two of them,
        and two texts of 10,000 tokens become gigabytes.
        """
        frame = self._frames[0 if second is None else 1]
        lengths = len(first), len(second or ())
        kept = share(lengths, max(self.max_length - frame.n_special, 0))
        parts = [first[: kept[0]]] if second is None else [first[: kept[0]], second[: kept[1]]]
        ids, types = frame.around(parts)
        values = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": types}
        if SWAPPED in self.padding:
            values[SWAPPED] = frame.around(parts[::-1])[0]
        inputs = {name: np.array(values[name], np.int64) for name in self.padding}
        return Encoded(inputs=inputs, truncated=kept != lengths)

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json` and `tokenizer_config.json`, which `load` and transformers' AutoTokenizer read."""
        self._engine.save(str(folder / "tokenizer.json"))
        settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", INPUTS_KEY: list(self.padding)}
        for name, token_id in (("pad_token", self.padding["input_ids"]), ("unk_token", self.unknown_id)):
            if token_id is not None:
                settings[name] = self._engine.id_to_token(token_id)
        write_json(folder / "tokenizer_config.json", settings)


def load(folder: Path, *, max_length: int) -> SubwordTokenizer:
    """Read `folder`/tokenizer.json; a text and its pair are cut to `max_length` tokens together.

    Raises:
        BadInput: the file can't be read, or its vocabulary holds no words or no padding token.
    """
    return from_engine(read_engine(folder), max_length=max_length, inputs=_read_inputs(folder), source=folder)


def vocabulary_size(folder: Path) -> int:
    """The rows that a table of embeddings needs for the tokens in `folder`/tokenizer.json: the highest id and one.

    Raises:
        BadInput: the file can't be read.
    """
    return _rows(read_engine(folder))


def read_engine(folder: Path) -> Engine:
    """What `folder`/tokenizer.json describes.

    Raises:
        BadInput: it can't be read.
    """
    path = folder / "tokenizer.json"
    try:
        return Engine.from_file(str(path))
    except Exception as error:  # tokenizers raises nothing narrower
        raise BadInput(f"{path} can't be read as a tokenizer: {error}; copy it again") from None


def unknown_id(engine: Engine) -> int | None:
    """The id of what the vocabulary does not know; None where it knows every byte."""
    return next((i for token in UNKNOWN_TOKENS if (i := engine.token_to_id(token)) is not None), None)


def from_engine(engine: Engine, *, max_length: int, inputs: Sequence[str] = INPUTS, source: Path) -> SubwordTokenizer:
    """A tokenizer with the vocabulary and template of `engine`, which was read from the folder `source`.

    Raises:
        BadInput: the vocabulary holds no words or no padding token.
    """
    path = source / "tokenizer.json"
    special = {token.content for token in engine.get_added_tokens_decoder().values() if token.special}
    if (words := len(engine.get_vocab().keys() - special)) < FEWEST_TOKENS:
        raise BadInput(f"{path} knows only {words} tokens, so every text would be unknown to it; export it again")
    padding_id = _padding_id(engine)
    if padding_id is None:
        raise BadInput(f"{path} has no padding token ({', '.join(PADDING_TOKENS)}); add one and export it again")
    return SubwordTokenizer(engine, max_length=max_length, padding_id=padding_id, inputs=inputs)


def _rows(engine: Engine) -> int:
    # not their number: ids may leave gaps
    return max(engine.get_vocab().values(), default=-1) + 1


def _padding_id(engine: Engine) -> int | None:
    if engine.padding:
        return int(engine.padding["pad_id"])
    ids = (engine.token_to_id(token) for token in PADDING_TOKENS)
    return next((token_id for token_id in ids if token_id is not None), None)


def _read_inputs(folder: Path) -> tuple[str, ...]:
    path = folder / "tokenizer_config.json"
    if not path.exists():
        return INPUTS
    try:
        inputs = tuple(read_json(path).get(INPUTS_KEY, INPUTS))
    except (ValueError, AttributeError, TypeError) as error:
        raise BadInput(f"{path} can't be read: {error!r}; copy it again") from None
    if unknown := [name for name in inputs if name not in (*INPUTS, SWAPPED)]:
        raise BadInput(f"{path}: {INPUTS_KEY} names {unknown}; a tokenizer gives {', '.join((*INPUTS, SWAPPED))}")
    return inputs
