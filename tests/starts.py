"""Tiny encoders to start a training from, with random weights."""

from pathlib import Path

import torch
from bundles import CHARACTERS, character_tokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast


def tiny_start(folder: Path, characters: str = CHARACTERS) -> Path:
    """BERT, 2 layers of 32, that knows `characters`, as `save_pretrained` writes it into `folder`."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=character_tokenizer(characters),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=64,
    )
    torch.manual_seed(3)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
