"""What a model is pretrained for: windows of text become inputs, inputs become losses that add up exactly.

Losses are sums, and what they are divided by is known before: so the gradients of micro-batches and of processes add
up to those of the whole batch, whichever way it was cut.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from training.pretrain.windows import Window

RandomOf = Callable[[int], np.random.Generator]
"""Number of a window in its batch → its own generator; draw all before asking for the next."""

OtherText = Callable[[np.random.Generator, Window, int], Window | None]
"""A text of at most so many tokens from another document than that of the window, or None if there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Windows as inputs of a model.

    inputs: name → array. counts: part of the loss → how many predictions it sums over. tokens: real tokens, special
    ones included, padding left out. places: padding included. characters: those that the predictions of the judged
    parts stand for. spelling: bits that it takes beside the predictions to say what the unknown tokens among them are.
    """

    inputs: dict[str, NDArray[Any]]
    counts: dict[str, int]
    tokens: int
    places: int
    characters: float
    spelling: float


class Objective(Protocol):
    """What a model is trained for. `model` holds every weight that is trained.

    parts: names of the losses; their means are added up. judged: those of them that the held-out figure is made of, in
    bits a character that they stand for. framing: special tokens that are
    put around a window. figure: what the held-out figure is called, bits a character of one kind or another.
    """

    @property
    def model(self) -> nn.Module: ...

    @property
    def parts(self) -> tuple[str, ...]: ...

    @property
    def judged(self) -> tuple[str, ...]: ...

    @property
    def framing(self) -> int: ...

    @property
    def figure(self) -> str: ...

    def collate(self, windows: Sequence[Window], random: RandomOf, other_text: OtherText) -> Batch:
        """The inputs of `windows`; whatever is drawn for a window comes from its own generator."""
        ...

    def example(self, length: int) -> Window:
        """A window of `length` tokens of any kind."""
        ...

    def losses(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Part → the sum of its negative log-likelihoods: nats, a scalar in float32."""
        ...

    def save(self, folder: Path) -> None:
        """Write the weights, heads included, and their configuration as a start."""
        ...
