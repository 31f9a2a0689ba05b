"""Weights of any maker into our networks: which class a folder holds, and what its weights are called there.

`config.json` decides the class. Every maker's names are reduced to one spelling, `plain`, and so are ours; then the two
have to be the same, but for heads, which the encoder has no use for and pretraining can start at random.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForPreTraining,
    BertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraModel,
    ErnieConfig,
    ErnieForPreTraining,
    ErnieModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPT2Model,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    OpenAIGPTModel,
    PreTrainedConfig,
    PreTrainedModel,
)

from model.architectures.nezha import NezhaConfig, NezhaForPreTraining, NezhaModel
from model.architectures.tdmca import MemoryCompressedGpt, MemoryCompressedGpt2, memory_compression
from model.architectures.weight_files import checked, read_weights
from model.errors import BadInput
from model.files import read_json
from model.types import preview

Build = Callable[[Any], PreTrainedModel]  # from settings of its own kind


@dataclass(frozen=True, slots=True)
class Family:
    """One model type: its settings, its encoder or decoder without pooler and heads, and the same with heads."""

    config: type[PreTrainedConfig]
    encoder: Build
    pretraining: Build


def _gpt(full: Build, compressed: Build) -> Build:
    return lambda config: (compressed if memory_compression(config) else full)(config)


def _gpt_with_head(with_head: Build, decoder: Build) -> Build:
    def build(config: PreTrainedConfig) -> PreTrainedModel:
        model = with_head(config)
        if memory_compression(config):
            model.transformer = decoder(config)
            model.tie_weights()
        return model

    return build


# An ELECTRA goes on as a masked language model: of its own pretraining the generator, which makes the texts that its
# discriminator judges, is not published with it.
# Without its pooler: it would be there at random for weights that were trained with mean pooling.
FAMILIES: dict[str, Family] = {
    "bert": Family(BertConfig, lambda config: BertModel(config, add_pooling_layer=False), BertForPreTraining),
    "ernie": Family(ErnieConfig, lambda config: ErnieModel(config, add_pooling_layer=False), ErnieForPreTraining),
    "electra": Family(ElectraConfig, ElectraModel, ElectraForMaskedLM),
    "nezha": Family(NezhaConfig, lambda config: NezhaModel(config, add_pooling_layer=False), NezhaForPreTraining),
    "gpt2": Family(
        GPT2Config,
        _gpt(GPT2Model, MemoryCompressedGpt2),
        _gpt_with_head(GPT2LMHeadModel, MemoryCompressedGpt2),
    ),
    "openai-gpt": Family(
        OpenAIGPTConfig,
        _gpt(OpenAIGPTModel, MemoryCompressedGpt),
        _gpt_with_head(OpenAIGPTLMHeadModel, MemoryCompressedGpt),
    ),
}

# What a checkpoint puts before the names of the encoder's weights: the wrapper of several GPUs, and the family.
_PREFIX = re.compile(r"^(module\.)?((bert|ernie|electra|nezha|transformer)\.)?")
# TensorFlow's names for the scale and shift of a layer norm
_OLD_NORM = {"gamma": "weight", "beta": "bias"}
_HEAD = re.compile(
    r"^(pooler|cls|classifier|qa_outputs|score|lm_head|multiple_choice_head"
    r"|discriminator_predictions|generator_predictions|generator_lm_head)\."
)
# Tables that are computed, and that older versions of transformers saved beside the weights
_COMPUTED = re.compile(
    r"(^|\.)(position_ids|token_type_ids|attn\.bias|attn\.masked_bias|relative_positions_encoding\.positions_encoding)$"
)
# Convolutions of memory-compressed attention: a decoder that was trained with full attention has none yet
_COMPRESSION = re.compile(r"\.attn\.compress_(key|value)\.")
# A weight that shows which family a file is of, whatever its config.json says
_HALLMARKS = {
    "wte.weight": "a gpt2",
    "tokens_embed.weight": "an openai-gpt",
    "embeddings_project.weight": "an electra",
    "embeddings.word_embeddings.weight": "a bert, an ernie, an electra or a nezha",
}


def load_encoder(folder: Path, **changes: Any) -> PreTrainedModel:
    """The encoder or decoder in `folder`, in float32, without pooler and heads; `changes` of its config.

    Raises:
        BadInput: its type is unknown, or a weight is missing, one too many, of another shape, or no number.
    """
    config = read_config(folder, **changes)
    # Every weight comes from the file: what the classifier on top draws is the same for every encoder.
    with torch.random.fork_rng(devices=[]):
        model = FAMILIES[config.model_type].encoder(config)
    _fill(model, folder, new_convolutions=_gets_compressed(folder, config))
    return model


def new_encoder(folder: Path, **changes: Any) -> PreTrainedModel:
    """The encoder or decoder that `folder`/config.json describes, with random weights; `changes` of its config.

    Raises:
        BadInput: its type is unknown.
    """
    config = read_config(folder, **changes)
    return FAMILIES[config.model_type].encoder(config)


def load_for_pretraining(folder: Path, **changes: Any) -> PreTrainedModel:
    """The model in `folder` with its language-model heads, in float32; those that the folder lacks start at random.

    Raises:
        BadInput: as `load_encoder`.
    """
    config = read_config(folder, **changes)
    model = new_for_pretraining(config)
    _fill(model, folder, new_convolutions=_gets_compressed(folder, config))
    return model


def new_for_pretraining(config: PreTrainedConfig) -> PreTrainedModel:
    """A model with language-model heads and random weights."""
    return FAMILIES[config.model_type].pretraining(config)


def read_config(folder: Path, **changes: Any) -> PreTrainedConfig:
    """The settings in `folder`/config.json, with `changes`.

    Raises:
        BadInput: there are none, or of an unknown type.
    """
    settings = read_settings(folder)
    family = FAMILIES[settings["model_type"]]
    try:
        config = family.config.from_dict({**settings, **changes, "dtype": "float32"})
    except Exception as error:  # each setting has a checker of its own in transformers
        reason = " ".join(str(error).split())
        raise BadInput(f"{folder}/config.json: {reason}; correct the value") from None
    # On a CPU, PyTorch 2.13's fused attention trains slower in bf16 than the plain one; a step takes 1.35x as long.
    fused = torch.cuda.is_available() and family.config is not NezhaConfig
    config._attn_implementation = "sdpa" if fused else "eager"
    return config


def read_settings(folder: Path) -> dict[str, Any]:
    """`folder`/config.json as it stands there.

    Raises:
        BadInput: it can't be read, or names no model type that is known here.
    """
    path = folder / "config.json"
    try:
        settings = read_json(path)
        model_type = settings.get("model_type")
    except FileNotFoundError:
        raise BadInput(f"{folder} has no config.json; copy the whole folder again") from None
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{path} can't be read as the settings of a model: {error}; copy it again") from None
    if model_type not in FAMILIES:
        known = ", ".join(FAMILIES)
        if model_type is None:
            raise BadInput(f'{path} names no model_type; add "model_type": one of {known}')
        raise BadInput(f"{path}: model_type {model_type} is not known; {known} are")
    return dict(settings)


def _gets_compressed(folder: Path, config: PreTrainedConfig) -> bool:
    """Whether a decoder that had full attention is now to have a compressed memory."""
    before = FAMILIES[config.model_type].config.from_dict(read_settings(folder))
    return memory_compression(config) is not None and memory_compression(before) is None


def _fill(model: PreTrainedModel, folder: Path, *, new_convolutions: bool) -> None:
    """Give `model` the weights in `folder`, or say what does not fit."""
    tied = dict(model.all_tied_weights_keys)
    own = {plain(name): name for name in model.state_dict() if name not in tied}
    aliases = {plain(name): plain(source) for name, source in tied.items()}
    found: dict[str, Tensor] = {}
    copies: dict[str, Tensor] = {}  # of what they are tied to; some files have these only
    surplus = []
    for stored_name, value in read_weights(folder):
        name = plain(stored_name)
        if name in found:
            raise BadInput(f"{folder} has {name} twice, under several prefixes; it is more than one model, save one")
        if name in own:
            found[name] = checked(value, stored_name, folder)
        elif name in aliases:
            copies[aliases[name]] = checked(value, stored_name, folder)
        elif not (_HEAD.match(name) or _COMPUTED.search(name)):
            surplus.append(stored_name)
    found = {**copies, **found}
    missing = sorted(
        name
        for name in own.keys() - found.keys()
        if not (_HEAD.match(name) or (new_convolutions and _COMPRESSION.search(name)))
    )
    _check_names(folder, model.config.model_type, missing=missing, surplus=sorted(surplus), n_own=len(own))
    state = model.state_dict()
    for name, value in found.items():
        if value.shape != (wanted := state[own[name]].shape):
            raise BadInput(
                f"{folder}: {name} is of shape {tuple(value.shape)}, config.json makes it {tuple(wanted)}; "
                "they don't belong together, copy both from one place"
            )
    model.load_state_dict({own[name]: value for name, value in found.items()}, strict=False)


def plain(name: str) -> str:
    """The one spelling of a weight's name: of the bare encoder, or of a head.

    >>> plain("module.bert.embeddings.LayerNorm.gamma")
    'embeddings.LayerNorm.weight'
    """
    *path, last = _PREFIX.sub("", name, count=1).split(".")
    if path and path[-1] == "LayerNorm":
        last = _OLD_NORM.get(last, last)
    return ".".join([*path, last])


def _check_names(folder: Path, model_type: str, *, missing: list[str], surplus: list[str], n_own: int) -> None:
    if not missing and not surplus:
        return
    if len(missing) > n_own // 2:
        plain_names = {plain(name) for name in surplus}
        kind = next((kind for name, kind in _HALLMARKS.items() if name in plain_names), "another model")
        raise BadInput(
            f"{folder}: config.json is that of a {model_type}, the weights are those of {kind} "
            f"({preview(surplus, 3) or 'none'}); take both from one place"
        )
    if surplus:
        besides = f"has {preview(surplus, 3)}, which is no part of a {model_type}"
        problem = f"lacks {preview(missing, 3)} and {besides}" if missing else besides
        raise BadInput(f"{folder} {problem}; correct config.json, or save the {model_type} alone")
    raise BadInput(f"{folder} lacks {preview(missing, 3)}; it is not a whole {model_type}, save it again")
