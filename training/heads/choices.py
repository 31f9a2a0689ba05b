"""Multiple choice: which of several texts goes with a text. `{"text": …, "choices": [… , …], "answer": 1}`

Each choice stands with the text in a sequence of its own; the scores of a row's sequences meet in a softmax (Devlin
2018, section 4.4). Rows may have different numbers of choices.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.gpt import GptMultipleChoice
from model.architectures.heads import ChoiceClassifier
from model.tokenization import gpt_frame, subwords
from model.tokenization.base import Encoded, collate
from model.tokenization.subwords import SubwordTokenizer
from model.types import FloatArray, IntArray, Text
from training.data import LENGTH_MULTIPLE
from training.device import NumberFormat
from training.heads.data import BadRow, checked_text, number_of, text_of
from training.heads.predicting import outputs
from training.losses import learns_language

FEW = 8  # tokens; where a tokenizer is read for its vocabulary, how long texts may be doesn't matter


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A text, its choices and the right one's number from 0, -1 where it isn't known; `source` said so."""

    text: str
    choices: tuple[str, ...]
    answer: int
    source: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChoiceSet:
    """Rows, each with an encoding for every choice."""

    rows: Sequence[ChoiceRow]
    encoded: Sequence[Sequence[Encoded]]
    padding: dict[str, int]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of all sequences of a row: (n_rows,)."""
        return np.array([len(each) * max(one.length for one in each) for each in self.encoded], np.int64)

    def batch(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The padded inputs of `rows`: name → (batch, n_choices, length)."""
        width = max(len(self.encoded[row]) for row in rows)
        sequences = []
        for row in rows:
            own = self.encoded[row]
            # one token is left to see: attention over none at all is not a number
            filler = Encoded({name: values[:1] for name, values in own[0].inputs.items()})
            sequences += [*own, *[filler] * (width - len(own))]
        flat = collate(sequences, self.padding, multiple=LENGTH_MULTIPLE)
        return {name: values.reshape(len(rows), width, -1) for name, values in flat.items()}

    def targets(self, rows: Sequence[int]) -> NDArray[Any]:
        """The right choice, and how many choices there are: (batch, 2)."""
        return np.array([[self.rows[row].answer, len(self.rows[row].choices)] for row in rows], np.int64)

    def ids(self) -> IntArray:
        """All tokens of all sequences: (n_tokens,)."""
        return np.concatenate([one.inputs["input_ids"] for each in self.encoded for one in each])


@dataclass(frozen=True, slots=True)
class MultipleChoice:
    """Judged by accuracy."""

    name: ClassVar[str] = "choice"
    decoder: ClassVar[bool] = False
    score: ClassVar[str] = "accuracy"

    @property
    def chosen(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def learned_from(self, rows: Sequence[ChoiceRow]) -> Self:  # noqa: ARG002  rows bring all they need
        """The same task."""
        return self

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:  # noqa: ARG003  there is nothing in it
        """The inverse of `to_json`."""
        return cls()

    def to_json(self) -> dict[str, Any]:
        """Nothing: rows bring their choices."""
        return {}

    @staticmethod
    def parse(data: dict[str, Any], *, labelled: bool) -> ChoiceRow:
        """A text with its choices.

        Raises:
            BadRow: a key is missing or of another type, or there is no such choice.
        """
        text, choices = text_of(data, "text"), data.get("choices")
        if not isinstance(choices, list) or len(choices) < 2:
            raise BadRow('it has no list of at least two "choices"')
        texts = tuple(checked_text(each, f"choices[{place}]") for place, each in enumerate(choices))
        if not labelled:
            return ChoiceRow(text, texts, -1, data)
        if not 0 <= (answer := number_of(data, "answer")) < len(texts):
            raise BadRow(f'"answer" is {answer}, but the {len(texts)} choices count from 0 to {len(texts) - 1}')
        return ChoiceRow(text, texts, answer, data)

    def reader(self, folder: Path, *, max_length: int, stride: int) -> Callable[[Sequence[ChoiceRow]], ChoiceSet]:  # noqa: ARG002  one window is all that a choice has
        """What encodes each choice behind its text, both cut to `max_length` tokens together."""
        tokenizer = self.tokenizer(folder, max_length=max_length)

        def encode(rows: Sequence[ChoiceRow]) -> ChoiceSet:
            flat = iter(tokenizer.encode([Text(row.text, choice) for row in rows for choice in row.choices]))
            return ChoiceSet(rows, [[next(flat) for _ in row.choices] for row in rows], tokenizer.padding)

        return encode

    def tokenizer(self, folder: Path, *, max_length: int) -> SubwordTokenizer:
        """What encodes a text with one choice."""
        return subwords.load(folder, max_length=max_length)

    def losses(self, examples: ChoiceSet) -> dict[str, int]:
        """Texts that were cut."""
        cut = sum(any(one.truncated for one in each) for each in examples.encoded)
        return {"条连同选项超过 --max-length，已截断 | texts with their choices are longer than it, and were cut": cut}

    def start(self, folder: Path, *, dropout: float) -> nn.Module:
        """A pretrained encoder under a new head."""
        return ChoiceClassifier.start(folder, dropout=dropout)

    def load(self, folder: Path) -> nn.Module:
        """A trained network."""
        return ChoiceClassifier.load(folder)

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Cross-entropy over the choices of a row, the mean over a batch; targets: (batch, 2)."""
        return choice_loss(network(**inputs), targets)

    def figures(self, network: nn.Module, dev_set: ChoiceSet, *, precision: NumberFormat) -> dict[str, float]:
        """Accuracy."""
        scores = self._scores(network, dev_set, precision)
        right = [each.argmax() == row.answer for each, row in zip(scores, dev_set.rows, strict=True)]
        return {"accuracy": float(np.mean(right))}

    def settled(self, network: nn.Module, dev_set: ChoiceSet, *, precision: NumberFormat) -> Self:  # noqa: ARG002
        """The same: nothing is chosen on dev."""
        return self

    def evaluate(self, network: nn.Module, examples: ChoiceSet, *, precision: NumberFormat) -> dict[str, Any]:
        """Accuracy."""
        return self.figures(network, examples, precision=precision)

    def answers(self, network: nn.Module, examples: ChoiceSet, *, precision: NumberFormat) -> list[dict[str, Any]]:
        """The rows with the number of the best choice, and the probability of each."""
        answers = []
        for row, scores in zip(examples.rows, self._scores(network, examples, precision), strict=True):
            shares = np.exp(scores - scores.max())
            probabilities = [round(float(share), 4) for share in shares / shares.sum()]
            answers.append({**row.source, "answer": int(scores.argmax()), "scores": probabilities})
        return answers

    @staticmethod
    def _scores(network: nn.Module, examples: ChoiceSet, precision: NumberFormat) -> list[FloatArray]:
        """The scores of each row's own choices: (n_choices,) each."""
        found = outputs(network, examples, precision=precision)
        return [scores[: len(row.choices)] for scores, row in zip(found, examples.rows, strict=True)]


@dataclass(frozen=True, slots=True)
class GptChoice(MultipleChoice):
    """The same for a decoder: in GPT's frame, with `lm_weight` of the language model's loss added (Radford 2018)."""

    lm_weight: float = 0.5
    decoder: ClassVar[bool] = True

    @property
    def chosen(self) -> dict[str, Any]:
        """The weight of the language model."""
        return self.to_json()

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(lm_weight=float(data["lm_weight"]))

    def to_json(self) -> dict[str, Any]:
        """The weight of the language model."""
        return {"lm_weight": self.lm_weight}

    def tokenizer(self, folder: Path, *, max_length: int) -> SubwordTokenizer:
        """What puts a text and a choice between start, delimiter and extract tokens."""
        return gpt_frame.load(folder, max_length=max_length)

    def start(self, folder: Path, *, dropout: float) -> nn.Module:
        """A pretrained decoder under a new head, with embeddings for the tokens of the frame."""
        size = self.tokenizer(folder, max_length=FEW).vocabulary_size
        return GptMultipleChoice.start(folder, vocabulary_size=size, dropout=dropout)

    def load(self, folder: Path) -> nn.Module:
        """A trained network."""
        return GptMultipleChoice.load(folder)

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """L2 + λ·L1: of the right choice, and of every next token."""
        if not learns_language(network, self.lm_weight):
            return choice_loss(network(**inputs), targets)
        joint = cast(GptMultipleChoice, network).joint(**inputs)
        return choice_loss(joint.logits, targets) + self.lm_weight * joint.language_model_loss


def choice_loss(scores: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy over each row's own choices, the mean: scores (batch, n_choices), targets (batch, 2)."""
    answers, n_choices = targets.T
    filler = torch.arange(scores.shape[1], device=scores.device) >= n_choices.unsqueeze(1)
    return functional.cross_entropy(scores.float().masked_fill(filler, -float("inf")), answers)
