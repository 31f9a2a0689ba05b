"""What is read off an encoder's layers is what it computed with."""

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel, ElectraConfig, ElectraModel, ErnieConfig, ErnieModel

from model.architectures.nezha import NezhaConfig, NezhaModel
from training.distillation.states import read_states

SIZES: dict[str, Any] = {
    "vocab_size": 40,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 32,
    "attn_implementation": "eager",
}
INPUTS = {
    "input_ids": torch.arange(14).reshape(2, 7),
    "attention_mask": torch.tensor([[1] * 7, [1] * 4 + [0] * 3]),
}
FAMILIES = [(BertModel, BertConfig), (ErnieModel, ErnieConfig), (ElectraModel, ElectraConfig)]


@pytest.mark.parametrize(("model", "config"), FAMILIES, ids=lambda one: one.__name__)
def test_states_and_attention_are_those_of_transformers(model: Any, config: Any) -> None:
    torch.manual_seed(0)
    encoder = model(config(**SIZES)).eval()
    output = encoder(**INPUTS, output_hidden_states=True, output_attentions=True)
    states = read_states(encoder, (1, 3), INPUTS)
    for own, layer in zip(states.hidden, (0, 1, 3), strict=True):
        assert torch.equal(own, output.hidden_states[layer])
    hides = INPUTS["attention_mask"][:, None, None, :] == 0
    for own, layer in zip(states.scores, (1, 3), strict=True):
        weights = own.masked_fill(hides, -torch.inf).softmax(-1)
        torch.testing.assert_close(weights, output.attentions[layer - 1])


def test_a_nezha_s_attention_knows_how_far_apart_positions_are() -> None:
    torch.manual_seed(0)
    sizes = {name: value for name, value in SIZES.items() if name != "attn_implementation"}
    encoder: Any = NezhaModel(NezhaConfig(**sizes, max_relative_position=4), add_pooling_layer=False)
    encoder.eval()
    softmaxed: list[torch.Tensor] = []
    handles = [
        layer.attention.self.dropout.register_forward_hook(lambda _, __, output: softmaxed.append(output))
        for layer in encoder.encoder.layer
    ]
    states = read_states(encoder, (2,), INPUTS)
    for handle in handles:
        handle.remove()
    hides = INPUTS["attention_mask"][:, None, None, :] == 0
    torch.testing.assert_close(states.scores[0].masked_fill(hides, -torch.inf).softmax(-1), softmaxed[1])


def test_nothing_is_left_hooked() -> None:
    encoder = BertModel(BertConfig(**SIZES)).eval()
    read_states(encoder, (1, 2), INPUTS)
    assert not any(module._forward_hooks for module in encoder.modules() if isinstance(module, torch.nn.Linear))
