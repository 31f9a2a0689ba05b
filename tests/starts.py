"""Tiny networks to start a training from, with random weights."""

from pathlib import Path
from typing import Any

import torch
from bundles import CHARACTERS, character_tokenizer
from elmos import tiny_elmo_start
from transformers import BertConfig, BertModel, OpenAIGPTConfig, OpenAIGPTModel, PreTrainedTokenizerFast

from model.architectures.nezha import NezhaConfig, NezhaModel

ARCHITECTURES = ("bert", "nezha", "gpt", "elmo")


def tiny_start(folder: Path, characters: str = CHARACTERS, *, arch: str = "bert") -> Path:
    """2 layers of 32, that know `characters`, as `save_pretrained` writes them into `folder`; ELMo is smaller still."""
    if arch == "elmo":
        return tiny_elmo_start(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=character_tokenizer(characters),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    torch.manual_seed(3)
    _network(arch, len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _network(arch: str, n_tokens: int) -> BertModel | NezhaModel | OpenAIGPTModel:
    if arch == "gpt":
        return OpenAIGPTModel(OpenAIGPTConfig(vocab_size=n_tokens, n_embd=32, n_layer=2, n_head=4, n_positions=64))
    sizes: dict[str, Any] = {
        "vocab_size": n_tokens,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
    }
    if arch == "nezha":
        return NezhaModel(NezhaConfig(**sizes, max_relative_position=8), add_pooling_layer=False)
    return BertModel(BertConfig(**sizes), add_pooling_layer=False)
