from pathlib import Path

import pytest
import torch
from starts import tiny_start
from torch import Tensor
from torch.nn import functional

from model.architectures.gpt import GptClassifier, GptLanguageModel
from model.tokenization.base import collate
from model.types import Task, Taxonomy, Text
from training.classifying import Classifying, JointlyClassifying
from training.kinds import GptKind
from training.pretrained import resolve

TAXONOMY = Taxonomy(Task.SINGLE, ("好评", "差评"))
GOLD = torch.tensor([[0, 1], [1, 0], [0, 1]])


@pytest.fixture
def network(tmp_path: Path) -> GptClassifier:
    return GptClassifier.start(tiny_start(tmp_path, arch="gpt"), n_labels=2, vocabulary_size=60, dropout=0.0)


@pytest.fixture
def inputs(network: GptClassifier, tmp_path: Path) -> dict[str, Tensor]:
    tokenizer = GptKind().open(resolve(str(tmp_path), cache=tmp_path), max_length=32).tokenizer
    encoded = tokenizer.encode([Text("房间干净。"), Text("早餐很差"), Text("贵")])
    return {name: torch.from_numpy(values) for name, values in collate(encoded, tokenizer.padding).items()}


def test_a_gpt_is_trained_for_the_labels_and_for_the_next_tokens(
    network: GptClassifier, inputs: dict[str, Tensor]
) -> None:
    objective = JointlyClassifying(TAXONOMY, smoothing=0.1, lm_weight=0.3)
    labels = functional.cross_entropy(network(**inputs), GOLD.argmax(1), label_smoothing=0.1)
    language = GptLanguageModel(network.encoder)(**inputs).mean
    torch.testing.assert_close(objective.loss(network, inputs, GOLD), labels + 0.3 * language)


def test_a_language_model_that_can_not_learn_is_not_computed(
    network: GptClassifier, inputs: dict[str, Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "joint", None)
    expected = Classifying(TAXONOMY).loss(network, inputs, GOLD)
    torch.testing.assert_close(JointlyClassifying(TAXONOMY, lm_weight=0.0).loss(network, inputs, GOLD), expected)
    network.freeze_encoder()
    torch.testing.assert_close(JointlyClassifying(TAXONOMY).loss(network, inputs, GOLD), expected)
