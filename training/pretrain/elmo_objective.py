"""ELMo's task (Peters 2018): every word from those before it, and every word from those after it.

A window stands between a begin and an end of text, which are foretold as well: the end by the forward direction, the
begin by the backward one.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from model.architectures.elmo import ElmoLanguageModel
from model.tokenization import words
from training.pretrain.objectives import Batch, OtherText, RandomOf
from training.pretrain.tokens import BITS_TO_SPELL
from training.pretrain.windows import Window

FORWARD, BACKWARD = "forward", "backward"


class ElmoObjective:
    """Forward and backward language model, trained together."""

    parts = judged = (FORWARD, BACKWARD)
    framing = 2
    figure = "bits_per_character"

    def __init__(self, *, model: ElmoLanguageModel) -> None:
        self.model = model
        self.spellings: NDArray[np.int32] = model.encoder.word_characters.numpy()
        # A character of an unknown word: one of the vocabulary, or the word's end, each as likely.
        self.bits_a_character = float(np.log2(model.config.n_characters))

    def collate(self, windows: Sequence[Window], random: RandomOf, other_text: OtherText) -> Batch:  # noqa: ARG002
        """word_ids, attention_mask: (batch, length); char_ids: (batch, length, word_length)."""
        lengths = np.array([window.length + 2 for window in windows])
        width = int(lengths.max())
        attention_mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
        word_ids = np.full(attention_mask.shape, words.PADDING, np.int64)
        char_ids = np.full((*word_ids.shape, self.spellings.shape[1]), words.CHARACTER_PADDING, np.int64)
        inside = attention_mask.astype(bool)
        word_ids[:, 0], char_ids[:, 0] = words.BEGIN_TEXT, self.spellings[words.BEGIN_TEXT]
        rows = np.arange(len(windows))
        word_ids[rows, lengths - 1], char_ids[rows, lengths - 1] = words.END_TEXT, self.spellings[words.END_TEXT]
        inside[:, 0] = inside[rows, lengths - 1] = False
        ids = np.concatenate([window.ids for window in windows])
        characters = np.concatenate([_characters(window) for window in windows])
        word_ids[inside], char_ids[inside] = ids, characters
        n_predictions = int(lengths.sum()) - len(windows)
        return Batch(
            inputs={"word_ids": word_ids, "char_ids": char_ids, "attention_mask": attention_mask},
            counts={FORWARD: n_predictions, BACKWARD: n_predictions},
            tokens=int(lengths.sum()),
            places=word_ids.size,
            characters=2.0 * sum(window.n_characters for window in windows),
            spelling=2 * self._bits_to_spell(characters[ids == words.UNKNOWN]),
        )

    def example(self, length: int) -> Window:
        """A window of the first words of the vocabulary, and an unknown one."""
        ids = np.resize(np.arange(len(words.SPECIAL_WORDS), len(self.spellings)), length)
        ids[0] = words.UNKNOWN
        return Window(
            ids=ids,
            sentence_starts=np.zeros(1, np.int64),
            word_starts=np.ones(length, bool),
            document=0,
            n_characters=length,
            characters=self.spellings[ids].astype(np.int64),
        )

    def _bits_to_spell(self, characters: NDArray[np.int64]) -> float:
        """What it takes to say which words are meant, each spelled by a row of (n_unknown, word_length)."""
        spelled = (characters == words.UNKNOWN_CHARACTER) | (characters >= words.FIRST_CHARACTER)
        n_ends, n_unknown = len(characters), int((characters == words.UNKNOWN_CHARACTER).sum())
        return self.bits_a_character * (int(spelled.sum()) + n_ends) + BITS_TO_SPELL * n_unknown

    def losses(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The sums of both directions: by the sampled softmax in training, by the full one in `eval()`."""
        loss = self.model.loss(inputs["word_ids"], inputs["char_ids"], inputs["attention_mask"])
        return {FORWARD: loss.forward, BACKWARD: loss.backward}

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        self.model.save(folder)


def _characters(window: Window) -> NDArray[np.int64]:
    if window.characters is None:
        raise ValueError("a window without characters is of no store of words")
    return window.characters
