"""What training minimises; softmax or sigmoid follows from the task, never from the number of labels."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from model.metrics import BoolArray
from model.types import Activation

MOST_WEIGHT = 10.0  # that a rare class gets: a handful of samples must not drown all others


def classification_loss(
    logits: Tensor,
    gold: Tensor,
    activation: Activation,
    *,
    smoothing: float = 0.0,
    focal: float = 0.0,
    weights: Tensor | None = None,
) -> Tensor:
    """Mean cross-entropy of `logits` (batch, n_labels) against `gold` 0/1 (batch, n_labels).

    Softmax over the labels of a row where it carries exactly one, else a sigmoid a label. `smoothing` spreads that
    much of the gold mass (Szegedy 2016). `focal` is γ: what is known well already counts (1 - p)^γ as much (Lin 2017).
    weights: (n_labels,), how much each label counts where it is gold.
    """
    target, logits = gold.to(torch.float32), logits.to(torch.float32)
    if activation is Activation.SOFTMAX:
        spread = target * (1 - smoothing) + smoothing / target.shape[1]
        sure = (logits.softmax(-1) * target).sum(-1)
        losses = -(logits.log_softmax(-1) * spread).sum(-1)
        counted = (target if weights is None else target * weights).sum(-1)
    else:
        spread = target * (1 - smoothing) + smoothing / 2
        scores = logits.sigmoid()
        sure = torch.where(target > 0, scores, 1 - scores)
        losses = functional.binary_cross_entropy_with_logits(logits, spread, reduction="none")
        counted = torch.ones_like(target) if weights is None else torch.where(target > 0, weights, 1.0)
    if focal:
        losses = losses * (1 - sure).clamp(min=0) ** focal
    return (losses * counted).mean()


def class_weights(gold: BoolArray, *, most: float = MOST_WEIGHT) -> Tensor:
    """For each label how much rarer it is than the mean of all, between 1 / `most` and `most`: (n_labels,).

    gold: (n_samples, n_labels). Texts count 1 in the mean, so that the learning rate need not change.
    """
    counts = np.maximum(gold.sum(axis=0), 1)
    rarer = np.clip(counts.mean() / counts, 1 / most, most)
    return torch.from_numpy((rarer / np.average(rarer, weights=counts)).astype(np.float32))


def divergence(one: Tensor, other: Tensor, activation: Activation) -> Tensor:
    """How far two answers to the same texts are apart, logits (batch, n_labels): the mean of both Kullback-Leiblers."""
    one, other = one.to(torch.float32), other.to(torch.float32)
    if activation is Activation.SOFTMAX:
        logs = [each.log_softmax(-1) for each in (one, other)]
        both = (logs[0].exp() - logs[1].exp()) * (logs[0] - logs[1])
        return both.sum(-1).mean() / 2
    return ((one.sigmoid() - other.sigmoid()) * (one - other)).mean() / 2


def learns_language(network: nn.Module, lm_weight: float) -> bool:
    """Whether a language model's loss of this weight changes anything; all but the head may be frozen."""
    learning = (name for name, weight in network.named_parameters() if weight.requires_grad)
    return lm_weight > 0 and any(name.startswith("encoder.") for name in learning)
