"""Sub-words: WordPiece, unigram or BPE vocabularies in the `tokenizer.json` format of Hugging Face tokenizers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer as Engine

from model.errors import BadInput
from model.tokenization.base import Encoded
from model.types import Text

UNKNOWN_TOKENS = ("[UNK]", "<unk>")
PADDING_TOKENS = ("[PAD]", "<pad>", "<|endoftext|>")
# A vocabulary file that was not found leaves a tokenizer with its special tokens only, and no error: every
# character becomes [UNK]. No real vocabulary is this small.
FEWEST_TOKENS = 10


class SubwordTokenizer:
    """Gives `input_ids`, `attention_mask` and `token_type_ids`; safe to call from several threads."""

    def __init__(self, engine: Engine, *, padding_id: int) -> None:
        self._engine = engine
        self.vocabulary_size = engine.get_vocab_size()
        self.unknown_id = next((i for token in UNKNOWN_TOKENS if (i := engine.token_to_id(token)) is not None), None)
        self.padding = {"input_ids": padding_id, "attention_mask": 0, "token_type_ids": 0}

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """One encoding a text, special tokens included, cut to the length the tokenizer was loaded with."""
        # encode_batch_fast leaves out character offsets, and unlike encode it lets other threads run.
        inputs = [text.text if text.pair is None else (text.text, text.pair) for text in texts]
        return [
            Encoded(
                inputs={
                    "input_ids": np.array(encoding.ids, np.int64),
                    "attention_mask": np.array(encoding.attention_mask, np.int64),
                    "token_type_ids": np.array(encoding.type_ids, np.int64),
                },
                truncated=bool(encoding.overflowing),
            )
            for encoding in self._engine.encode_batch_fast(inputs)
        ]


def load(folder: Path, *, max_length: int) -> SubwordTokenizer:
    """Read `folder`/tokenizer.json; a text and its pair are cut to `max_length` tokens together.

    Raises:
        BadInput: the file can't be read, or its vocabulary holds no words or no padding token.
    """
    path = folder / "tokenizer.json"
    try:
        engine = Engine.from_file(str(path))
        engine.enable_truncation(max_length)
    except Exception as error:  # tokenizers raises nothing narrower
        raise BadInput(f"{path} can't be read as a tokenizer: {error}; copy it again") from None
    special = {token.content for token in engine.get_added_tokens_decoder().values() if token.special}
    if (words := len(engine.get_vocab().keys() - special)) < FEWEST_TOKENS:
        raise BadInput(f"{path} knows only {words} tokens, so every text would be unknown to it; export it again")
    padding_id = _padding_id(engine)
    if padding_id is None:
        raise BadInput(f"{path} has no padding token ({', '.join(PADDING_TOKENS)}); add one and export it again")
    engine.no_padding()
    return SubwordTokenizer(engine, padding_id=padding_id)


def _padding_id(engine: Engine) -> int | None:
    if engine.padding:
        return int(engine.padding["pad_id"])
    ids = (engine.token_to_id(token) for token in PADDING_TOKENS)
    return next((token_id for token_id in ids if token_id is not None), None)
