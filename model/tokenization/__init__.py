"""Text to model input: sub-words, words or character n-grams, read from a bundle's or run's `tokenizer.json`."""

from pathlib import Path

from model.errors import BadInput
from model.files import read_json
from model.tokenization import ngrams, subwords, words
from model.tokenization.base import Tokenizer


def load_tokenizer(folder: Path, *, max_length: int) -> Tokenizer:
    """The tokenizer that `folder`/tokenizer.json describes; texts longer than `max_length` tokens are cut.

    Raises:
        BadInput: the file is missing, can't be read, or its vocabulary is none.
    """
    path = folder / "tokenizer.json"
    try:
        kind = read_json(path)["model"]["type"]
    except FileNotFoundError:
        raise BadInput(f"{folder} has no tokenizer.json; copy the whole folder again") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} can't be read as a tokenizer: {error!r}; copy it again") from None
    if kind == ngrams.TYPE:
        return ngrams.load(folder)
    if kind == words.TYPE:
        return words.load(folder, max_length=max_length)
    return subwords.load(folder, max_length=max_length)
