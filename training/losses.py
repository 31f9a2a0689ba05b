"""What training minimises; softmax or sigmoid follows from the task, never from the number of labels."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.types import Activation


def classification_loss(logits: Tensor, gold: Tensor, activation: Activation, *, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of `logits` (batch, n_labels) against `gold` 0/1 (batch, n_labels).

    Softmax over the labels of a row where it carries exactly one, else a sigmoid a label. `smoothing` spreads that
    much of the gold mass (Szegedy 2016).
    """
    target = gold.to(torch.float32)
    logits = logits.to(torch.float32)
    if activation is Activation.SOFTMAX:
        return functional.cross_entropy(logits, target, label_smoothing=smoothing)
    return functional.binary_cross_entropy_with_logits(logits, target * (1 - smoothing) + smoothing / 2)


def learns_language(network: nn.Module, lm_weight: float) -> bool:
    """Whether a language model's loss of this weight changes anything; all but the head may be frozen."""
    learning = (name for name, weight in network.named_parameters() if weight.requires_grad)
    return lm_weight > 0 and any(name.startswith("encoder.") for name in learning)
