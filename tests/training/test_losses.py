import pytest
import torch
from torch.nn import functional

from model.types import Activation
from training.losses import classification_loss

LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]])


def test_one_label_a_text_is_cross_entropy() -> None:
    gold = torch.tensor([[1, 0, 0], [0, 1, 0]])
    expected = functional.cross_entropy(LOGITS, torch.tensor([0, 1]))
    assert classification_loss(LOGITS, gold, Activation.SOFTMAX).item() == pytest.approx(expected.item())


def test_several_labels_a_text_are_a_sigmoid_each() -> None:
    gold = torch.tensor([[1.0, 0, 1.0], [0, 0, 0]])
    scores = LOGITS.sigmoid()
    expected = -(gold * scores.log() + (1 - gold) * (1 - scores).log()).mean()
    assert classification_loss(LOGITS, gold, Activation.SIGMOID).item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("activation", Activation)
def test_smoothing_punishes_certainty(activation: Activation) -> None:
    certain, gold = torch.tensor([[20.0, -20.0]]), torch.tensor([[1, 0]])
    plain = classification_loss(certain, gold, activation)
    assert classification_loss(certain, gold, activation, smoothing=0.1) > plain + 0.5
