"""Windows, vocabularies and tiny models that are made up, for tests of objectives and of their loop."""

from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from training.pretrain.windows import Window

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
N_TOKENS = 65


def vocabulary(folder: Path, *, special: list[str] = SPECIAL) -> Path:
    """A `tokenizer.json` of 60 characters and the special tokens."""
    tokens = [*special, *map(chr, range(0x4E00, 0x4E00 + N_TOKENS - len(SPECIAL)))]
    tokenizer = Tokenizer(models.WordLevel({token: number for number, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(special)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def windows(n: int, *, longest: int = 20, seed: int = 0) -> list[Window]:
    """Texts of one to four sentences, each of a document of its own; the tokens of a text come in a fixed order."""
    random = np.random.default_rng(seed)
    return [window(random, document, int(random.integers(4, longest + 1))) for document in range(n)]


def window(random: np.random.Generator, document: int, length: int) -> Window:
    """One text of `length` tokens: a run of the vocabulary, so that there is something to learn."""
    ids = (random.integers(60) + np.arange(length)) % 60 + 5
    cuts = random.choice(np.arange(1, length), int(random.integers(min(4, length))), replace=False)
    return Window(
        ids=ids.astype(np.int64),
        sentence_starts=np.sort(np.r_[0, cuts]).astype(np.int64),
        word_starts=random.random(length) < 0.6,
        document=document,
        n_characters=length,
    )
