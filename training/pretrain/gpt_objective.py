"""GPT's task (Radford 2018): every token from those before it.

A window stands behind a begin token, so that its first token is foretold too. Where a vocabulary of another maker has
no token to begin with, the first one is given.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from torch import Tensor

from model.architectures.gpt import GptLanguageModel
from training.pretrain.objectives import Batch, OtherText, RandomOf
from training.pretrain.tokens import TokenTable
from training.pretrain.windows import Window

NEXT_TOKEN = "next_token"  # noqa: S105  no secret


class GptObjective:
    """Next-token prediction. tokens: of the decoder's vocabulary."""

    parts = judged = (NEXT_TOKEN,)
    figure = "bits_per_character"

    def __init__(self, *, model: GptLanguageModel, tokens: TokenTable) -> None:
        self.model = model
        self.tokens = tokens
        self.begin = next((tokens.special[name] for name in ("start", "cls") if name in tokens.special), None)
        self.framing = 0 if self.begin is None else 1

    def collate(self, windows: Sequence[Window], random: RandomOf, other_text: OtherText) -> Batch:  # noqa: ARG002
        """input_ids, attention_mask: (batch, length)."""
        lengths = np.array([window.length + self.framing for window in windows])
        width = int(lengths.max())
        attention_mask = (np.arange(width) < lengths[:, None]).astype(np.int64)
        ids = np.concatenate([window.ids for window in windows])
        input_ids = np.full(attention_mask.shape, self.tokens.special.get("pad", 0), np.int64)
        inside = attention_mask.astype(bool)
        if self.begin is not None:
            input_ids[:, 0] = self.begin
            inside[:, 0] = False
        input_ids[inside] = ids
        given = ids[:0] if self.framing else input_ids[:, 0]
        n_characters = sum(window.n_characters for window in windows) - int(self.tokens.characters[given].sum())
        return Batch(
            inputs={"input_ids": input_ids, "attention_mask": attention_mask},
            counts={NEXT_TOKEN: int(lengths.sum()) - len(windows)},
            tokens=int(lengths.sum()),
            places=input_ids.size,
            characters=float(n_characters),
            spelling=self.tokens.bits_to_spell(ids) - self.tokens.bits_to_spell(given),
        )

    def example(self, length: int) -> Window:
        """A window of `length` ordinary tokens."""
        return self.tokens.example(length)

    def losses(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The sum over all tokens that have one before them."""
        return {NEXT_TOKEN: self.model(inputs["input_ids"], inputs["attention_mask"]).total}

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        self.model.save(folder)
