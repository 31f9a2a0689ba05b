"""The answers of teachers, and the training by which a student comes to give them too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from model.types import FloatArray, Taxonomy, Text
from training.classifying import Classifying
from training.data import Dataset, EncodedTexts
from training.device import NumberFormat
from training.distillation.cache import Cache
from training.distillation.losses import prediction_loss
from training.distillation.teacher import Teacher


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredTexts(EncodedTexts):
    """Texts with what the teachers answer. answers: logits (n_texts, n_labels)."""

    answers: FloatArray

    def targets(self, rows: Sequence[int]) -> NDArray[np.float32]:
        """The answers to `rows`: (batch, n_labels)."""
        return self.answers[rows]


def ask_answers(teachers: Sequence[Teacher], texts: Sequence[Text], cache: Path) -> FloatArray:
    """What `teachers` answer in the mean, by their own tokenizers, kept in `cache`: logits (n_texts, n_labels).

    Raises:
        BadRun: the disk has no room for it.
    """
    answers = []
    for teacher in teachers:
        key = ["answers", teacher.key, teacher.config["max_length"], teacher.temperature]
        size = 4 * len(texts) * len(teacher.taxonomy)
        parts = Cache(cache, key).ask(
            texts, teacher.answerer(texts), size=size, what="教师的回答 the teacher's answers"
        )
        answers.append(np.concatenate([part["answers"] for part in parts]))
    mean: FloatArray = np.mean(answers, axis=0, dtype=np.float32)
    return mean


@dataclass(frozen=True, slots=True)
class Answering:
    """To answer as the teachers do, at a temperature; judged by the labels of dev."""

    taxonomy: Taxonomy
    temperature: float = 1.0

    @property
    def score(self) -> str:
        return Classifying.score

    def loss(self, network: nn.Module, inputs: Mapping[str, Tensor], targets: Tensor) -> Tensor:
        """The mean over a batch; targets: the teachers' logits (batch, n_labels)."""
        return prediction_loss(network(**inputs), targets, self.taxonomy.activation, temperature=self.temperature)

    def figures(self, network: nn.Module, dev_set: Dataset, *, precision: NumberFormat) -> dict[str, float]:
        """Accuracy and macro-F1 on dev."""
        return Classifying(self.taxonomy).figures(network, dev_set, precision=precision)
