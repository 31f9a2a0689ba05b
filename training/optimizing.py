"""The optimizer of the train loop: what is decayed, and how fast each layer learns and from when on."""

import re
from dataclasses import dataclass

import torch
from torch import nn

_LAYER = re.compile(r"^encoder\..*?\b(?:layer|h|\w+_layers)\.(\d+)\.")
DEPTH = "depth"  # the key of a group


@dataclass(frozen=True, slots=True)
class Rates:
    """learning_rate: of the encoder's last layer, head_learning_rate: of everything on top.

    layer_decay: by how much each layer learns slower than the one above it (Howard and Ruder 2018, discriminative
    fine-tuning). unfreeze: the share of all steps over which layers begin to learn, the last one first, the embeddings
    at its end (gradual unfreezing, in the same paper).
    """

    learning_rate: float
    head_learning_rate: float
    weight_decay: float
    layer_decay: float = 1.0
    unfreeze: float = 0.0


def make_optimizer(network: nn.Module, rates: Rates) -> torch.optim.Optimizer:
    """AdamW (Loshchilov 2019); biases and layer norms are not decayed, the encoder learns slower than the rest.

    Every group says at which `DEPTH` its weights are, from 0, the embeddings, to 1, the last layer; None on top.
    """
    groups: dict[tuple[int | None, bool], list[nn.Parameter]] = {}
    for name, parameter in network.named_parameters():
        if parameter.requires_grad:
            groups.setdefault((depth_of(name), parameter.ndim > 1), []).append(parameter)
    deepest = max((depth for depth, _ in groups if depth is not None), default=0)
    return torch.optim.AdamW(
        [
            {
                "params": parameters,
                "lr": rates.head_learning_rate
                if depth is None
                else rates.learning_rate * rates.layer_decay ** (deepest - depth),
                "weight_decay": rates.weight_decay if is_matrix else 0.0,
                DEPTH: None if depth is None else depth / max(deepest, 1),
            }
            for (depth, is_matrix), parameters in groups.items()
        ],
        fused=True,
    )


def depth_of(name: str) -> int | None:
    """The layer that the weight `name` belongs to, from 1; 0: embeddings and what else is below; None: on top."""
    if not name.startswith("encoder."):
        return None
    found = _LAYER.match(name)
    return int(found[1]) + 1 if found else 0


def thawed(depth: float | None, done: float, unfreeze: float) -> bool:
    """Whether weights at `depth`, 0 to 1, learn already when the share `done` of all steps is done."""
    return depth is None or done >= unfreeze * (1 - depth)
