"""What a head's task is made of: how its rows are read and encoded, its network, its objective and its answers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, TypeVar

from torch import Tensor, nn

from model.types import IntArray
from training.device import NumberFormat
from training.loop import Examples


class HeadExamples(Examples, Protocol):
    """Examples that can tell their tokens."""

    def ids(self) -> IntArray:
        """All tokens of all examples, without padding: (n_tokens,)."""
        ...


Row = TypeVar("Row")
HeadSet = TypeVar("HeadSet", bound=HeadExamples)


class Task(Protocol[Row, HeadSet]):
    """A task and all that its training found out; also the `Objective` that `training.loop` minimises."""

    name: ClassVar[str]
    decoder: ClassVar[bool]  # whether its network is one

    @property
    def score(self) -> str: ...

    @property
    def chosen(self) -> dict[str, Any]:
        """What a person has chosen of it."""
        ...

    def learned_from(self, rows: Sequence[Row]) -> Self:
        """The task with what the rows to train on say of it.

        Raises:
            BadInput: nothing can be learned from them.
        """
        ...

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        ...

    def to_json(self) -> dict[str, Any]:
        """What an answer depends on beside the weights."""
        ...

    @staticmethod
    def parse(data: dict[str, Any], *, labelled: bool) -> Row:
        """A row from its JSON object; without its answer, where it isn't `labelled`.

        Raises:
            BadRow: it can't be used.
        """
        ...

    def reader(self, folder: Path, *, max_length: int, stride: int) -> Callable[[Sequence[Row]], HeadSet]:
        """What encodes rows as the network reads them, with the tokenizer in `folder`.

        Raises:
            BadInput: the tokenizer can't be used.
        """
        ...

    def losses(self, examples: HeadSet) -> dict[str, int]:
        """What the tokens of `examples` can't express, in words for a person, Chinese and English, and how often."""
        ...

    def start(self, folder: Path, *, dropout: float) -> nn.Module:
        """A network to train, from pretrained weights."""
        ...

    def load(self, folder: Path) -> nn.Module:
        """A trained network."""
        ...

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """The mean loss of a batch."""
        ...

    def figures(self, network: nn.Module, dev_set: HeadSet, *, precision: NumberFormat) -> dict[str, float]:
        """How good the network is, `score` among it."""
        ...

    def settled(self, network: nn.Module, dev_set: HeadSet, *, precision: NumberFormat) -> Self:
        """The same task with what has to be chosen on dev once the network is trained."""
        ...

    def evaluate(self, network: nn.Module, examples: HeadSet, *, precision: NumberFormat) -> dict[str, Any]:
        """How good the settled task's answers are."""
        ...

    def answers(self, network: nn.Module, examples: HeadSet, *, precision: NumberFormat) -> list[dict[str, Any]]:
        """What the network answers, as rows like those that were read."""
        ...
