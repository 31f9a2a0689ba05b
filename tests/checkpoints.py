"""Tiny checkpoints of every family that `--init` takes, with random weights, in the spellings of their makers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from parity import spread_weights
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForPreTraining,
    ElectraConfig,
    ElectraForPreTraining,
    ErnieConfig,
    ErnieForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedModel,
)

from model.architectures.nezha import NezhaConfig, NezhaForPreTraining
from model.files import write_json

N_TOKENS = 60
ENCODER = {
    "vocab_size": N_TOKENS,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}
DECODER = {
    "vocab_size": N_TOKENS,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "bos_token_id": None,
    "eos_token_id": None,
}

# model_type → a model as it is published, heads included
PUBLISHED: dict[str, Callable[[], PreTrainedModel]] = {
    "bert": lambda: BertForPreTraining(BertConfig(**ENCODER)),
    "ernie": lambda: ErnieForPreTraining(ErnieConfig(**ENCODER, use_task_id=True)),
    "electra": lambda: ElectraForPreTraining(ElectraConfig(**ENCODER, embedding_size=16)),
    "nezha": lambda: NezhaForPreTraining(NezhaConfig(**ENCODER, max_relative_position=5)),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**DECODER)),
    "openai-gpt": lambda: OpenAIGPTLMHeadModel(OpenAIGPTConfig(**DECODER)),
}
ENCODERS = ("bert", "ernie", "electra", "nezha")


def published(model_type: str) -> PreTrainedModel:
    """A model of `model_type` whose every weight shows in what it computes."""
    model = PUBLISHED[model_type]()
    spread_weights(model)
    return model.eval()


def save_as_is(model: PreTrainedModel, folder: Path) -> None:
    """As transformers writes it now."""
    model.save_pretrained(folder)


def save_sharded(model: PreTrainedModel, folder: Path) -> None:
    """Over several files with an index."""
    model.save_pretrained(folder, max_shard_size="10KB")
    assert len(list(folder.glob("*.safetensors"))) > 1


def save_bare(model: PreTrainedModel, folder: Path) -> None:
    """The encoder or decoder alone, without prefix and heads."""
    save_weights(model, folder, model.base_model.state_dict())


def save_old(model: PreTrainedModel, folder: Path) -> None:
    """As converted from TensorFlow years ago: gamma and beta, tied weights twice, computed tables among the weights."""
    weights = {}
    for name, value in model.state_dict().items():
        old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        weights[f"module.{old}"] = value.clone()
    prefix = f"module.{model.base_model_prefix}"
    if model.config.model_type in ("gpt2", "openai-gpt"):
        weights[f"{prefix}.h.0.attn.bias"] = torch.ones(1, 1, 64, 64).tril()
        weights[f"{prefix}.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    else:
        weights[f"{prefix}.embeddings.position_ids"] = torch.arange(64).unsqueeze(0)
        encoding = "attention.self.relative_positions_encoding.positions_encoding"
        weights[f"{prefix}.encoder.layer.0.{encoding}"] = torch.zeros(64, 64, 8)
    save_weights(model, folder, weights)


def save_half(model: PreTrainedModel, folder: Path) -> None:
    """In half precision."""
    model.half().save_pretrained(folder)
    model.float()


SPELLINGS = (save_as_is, save_sharded, save_bare, save_old, save_half)


def save_weights(model: PreTrainedModel, folder: Path, weights: dict[str, Tensor]) -> None:
    """`config.json`, and `weights` under their names."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", model.config.to_diff_dict())
    save_file({name: value.contiguous() for name, value in weights.items()}, folder / "model.safetensors")


def change_weights(folder: Path, change: Callable[[dict[str, Tensor]], Any]) -> None:
    """Let `change` do something to the weights in `folder`."""
    weights = load_file(folder / "model.safetensors")
    change(weights)
    save_file(weights, folder / "model.safetensors")


def assert_same_weights(ours: nn.Module, reference: nn.Module) -> None:
    """All weights are equal, name by name."""
    mine, expected = ours.state_dict(), reference.state_dict()
    assert mine.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(mine[name], value), name
