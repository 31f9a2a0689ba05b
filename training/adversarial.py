"""Adversarial training: every batch a second time, its words moved a little to where the loss grows fastest.

FGM (Miyato 2017): the table of word vectors is moved by epsilon along its own gradient, and the gradients of both
passes add up.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


@contextmanager
def moved_words(network: nn.Module, epsilon: float) -> Iterator[None]:
    """Inside of the block the word vectors of `network` are moved by `epsilon` along their gradient, which is there."""
    table = word_table(network)
    gradient = table.grad
    length = 0.0 if gradient is None else float(gradient.norm())
    if gradient is None or not 0 < length < float("inf"):
        yield
        return
    before = table.detach().clone()
    with torch.no_grad():
        table.add_(gradient, alpha=epsilon / length)
    try:
        yield
    finally:
        with torch.no_grad():
            table.copy_(before)


def word_table(network: nn.Module) -> Tensor:
    """The largest table of embeddings: that of words, or characters."""
    tables: list[Tensor] = [module.weight for module in network.modules() if isinstance(module, nn.Embedding)]
    return max(tables, key=len)
