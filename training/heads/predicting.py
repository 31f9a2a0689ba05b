"""What a network says about every example, whatever the shape of its output."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import nn

from model.runtime.base import batches_by_length
from training.device import NumberFormat, autocast, to_tensors
from training.loop import EVALUATION_TOKENS, Examples


def outputs(network: nn.Module, examples: Examples, *, precision: NumberFormat) -> list[NDArray[Any]]:
    """The network's output for each example, in order, each as wide as the batch that it was in."""
    device = next(network.parameters()).device
    found: dict[int, NDArray[Any]] = {}
    network.eval()
    with torch.inference_mode(), autocast(device, precision):
        for rows in batches_by_length(examples.lengths.tolist(), batch_tokens=EVALUATION_TOKENS):
            batch = network(**to_tensors(examples.batch(rows), device)).float().cpu().numpy()
            found |= dict(zip(rows, batch, strict=True))
    return [found[row] for row in range(len(examples))]
