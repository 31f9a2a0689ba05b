"""What an objective has to know of a vocabulary of sub-words: its special tokens, and what the others stand for."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Engine

from model.errors import BadInput
from training.pretrain.windows import Window

# The code of a character that a vocabulary lacks: one of the 154,998 that Unicode 16 assigns, each as likely.
# Held-out figures add it for every [UNK], which would else be a cheap guess that says nothing of the text.
BITS_TO_SPELL = float(np.log2(154_998))
NAMES = {
    "start": ("[START]",),
    "cls": ("[CLS]", "<s>", "<|endoftext|>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
    "pad": ("[PAD]", "<pad>"),
    "unknown": ("[UNK]", "<unk>"),
}


@dataclass(frozen=True, slots=True, eq=False)
class TokenTable:
    """The tokens of a `tokenizer.json`.

    special: start, cls, sep, mask, pad, unknown → id, of those that there are. ordinary: ids of the tokens that texts
    are made of, without special and [unused] ones. characters: (size,) how many characters each token stands for,
    spaces left out; 1 for the unknown token, 0 for the other special ones.
    """

    path: Path
    size: int
    special: dict[str, int]
    ordinary: NDArray[np.int64]
    characters: NDArray[np.int64]

    @classmethod
    def read(cls, folder: Path) -> "TokenTable":
        """The table of `folder`/tokenizer.json.

        Raises:
            BadInput: it can't be read as a vocabulary of sub-words.
        """
        path = folder / "tokenizer.json"
        try:
            engine = Engine.from_file(str(path))
        except Exception as error:  # tokenizers raises nothing narrower
            raise BadInput(f"{path} can't be read as a tokenizer: {error}; copy it again") from None
        vocabulary = engine.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values()) + 1
        found = {name: next((vocabulary[t] for t in tokens if t in vocabulary), None) for name, tokens in NAMES.items()}
        special = {name: number for name, number in found.items() if number is not None}
        added = {number for number, token in engine.get_added_tokens_decoder().items() if token.special}
        characters = np.zeros(size, np.int64)
        ordinary = []
        for token, number in vocabulary.items():
            if number not in added and number not in special.values() and not token.startswith("[unused"):
                characters[number] = len(token.removeprefix("##").lstrip("▁").removesuffix("</w>"))
                ordinary.append(number)
        if "unknown" in special:
            characters[special["unknown"]] = 1
        return cls(path, size, special, np.sort(np.array(ordinary, np.int64)), characters)

    @classmethod
    def made_up(cls, size: int) -> "TokenTable":
        """A table of `size` tokens of a character each, to try a model out before there is a vocabulary."""
        special = {name: number for number, name in enumerate(NAMES)}
        characters = np.ones(size, np.int64)
        characters[: len(special)] = 0
        return cls(Path(), size, special, np.arange(len(special), size), characters)

    def example(self, length: int) -> Window:
        """A window of `length` ordinary tokens, as good as any to see what a model needs for it."""
        return Window(
            ids=np.resize(self.ordinary, length),
            sentence_starts=np.array([0, length // 2]),
            word_starts=np.ones(length, bool),
            document=0,
            n_characters=length,
        )

    def require(self, *names: str, arch: str) -> None:
        """Refuse the vocabulary if it lacks one of the special tokens `names`.

        Raises:
            BadInput: it does.
        """
        if absent := [NAMES[name][0] for name in names if name not in self.special]:
            raise BadInput(
                f"{self.path}: the vocabulary lacks {', '.join(absent)}, which --arch {arch} needs; "
                "add a line for each to vocab.txt, or leave --vocab out and one is made from the corpus"
            )

    def bits_to_spell(self, ids: NDArray[np.int64]) -> float:
        """What it takes to say which characters the unknown tokens among `ids` are: bits."""
        return BITS_TO_SPELL * float((ids == self.special.get("unknown", -1)).sum())
