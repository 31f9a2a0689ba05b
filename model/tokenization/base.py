"""What every tokenizer does: encode texts, then collate encodings of like length into one padded batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from model.types import Text


@dataclass(frozen=True, slots=True)
class Encoded:
    """One text as model input: input name → values, (length,) or (length, …). `truncated`: it was cut."""

    inputs: dict[str, NDArray[Any]]
    truncated: bool = False

    @property
    def length(self) -> int:
        """Positions the text takes in a batch."""
        return len(next(iter(self.inputs.values())))


class Tokenizer(Protocol):
    """Turns normalised texts into encodings. Implementations are safe to call from several threads."""

    @property
    def padding(self) -> dict[str, int]:
        """Input name → the value that pads it."""
        ...

    def encode(self, texts: Sequence[Text]) -> list[Encoded]:
        """One encoding a text, each at most as long as the model reads."""
        ...


def share(lengths: tuple[int, int], room: int) -> tuple[int, int]:
    """How much of two texts is kept in `room` tokens: the longer one is cut first, as BERT cuts a pair."""
    if sum(lengths) <= room:
        return lengths
    shorter = min(*lengths, room // 2)
    return (shorter, room - shorter) if lengths[0] <= lengths[1] else (room - shorter, shorter)


def collate(batch: Sequence[Encoded], padding: dict[str, int], *, multiple: int = 1) -> dict[str, NDArray[Any]]:
    """Pad `batch` on the right to its longest, rounded up to a `multiple`: input name → (batch, length, …)."""
    width = math.ceil(max(encoded.length for encoded in batch) / multiple) * multiple
    arrays = {}
    for name, value in padding.items():
        first = batch[0].inputs[name]
        array = np.full((len(batch), width, *first.shape[1:]), value, dtype=first.dtype)
        for row, encoded in zip(array, batch, strict=True):
            row[: encoded.length] = encoded.inputs[name]
        arrays[name] = array
    return arrays
