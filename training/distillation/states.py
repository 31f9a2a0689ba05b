"""What the layers of an encoder say on the way: hidden states, and attention before its softmax.

Of every family that `load_encoder` knows as an encoder: BERT, ERNIE, ELECTRA, NEZHA.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from model.architectures.nezha import NezhaSelfAttention, relative_positions


@dataclass(frozen=True, slots=True)
class States:
    """hidden: (n_layers + 1, batch, length, hidden_size), of the embeddings and of each layer that was asked for.

    scores: (n_layers, batch, heads, length, length), of each of these layers; what padding is looked at with means
    nothing.
    """

    hidden: Tensor
    scores: Tensor


def read_states(encoder: PreTrainedModel, layers: Sequence[int], inputs: dict[str, Tensor]) -> States:
    """The states of the embeddings and of `layers`, the first of which is 1."""
    parts: Any = encoder.encoder
    attentions = [parts.layer[layer - 1].attention.self for layer in layers]
    with _outputs_of([getattr(one, name) for one in attentions for name in ("query", "key")]) as projected:
        hidden = encoder(**inputs, output_hidden_states=True).hidden_states
    return States(
        hidden=torch.stack([hidden[layer] for layer in (0, *layers)]),
        scores=torch.stack([_scores(one, projected[one.query], projected[one.key], encoder) for one in attentions]),
    )


def _scores(attention: Any, query: Tensor, key: Tensor, encoder: PreTrainedModel) -> Tensor:
    """(batch, length, hidden_size) each → (batch, heads, length, length)."""
    heads = encoder.config.num_attention_heads
    query, key = (each.unflatten(-1, (heads, -1)).transpose(1, 2) for each in (query, key))
    if isinstance(attention, NezhaSelfAttention):
        furthest = encoder.config.max_relative_position
        relations = relative_positions(query.shape[2], query.shape[-1], furthest=furthest, device=query.device)
        return attention.scores(query, key, relations.to(query.dtype))
    scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores


@contextmanager
def _outputs_of(modules: Sequence[nn.Module]) -> Iterator[dict[nn.Module, Tensor]]:
    """What each of `modules` gives while the encoder reads."""
    outputs: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, _: Any, output: Tensor) -> None:
        outputs[module] = output

    with ExitStack() as hooks:
        for module in modules:
            hooks.callback(module.register_forward_hook(keep).remove)
        yield outputs
