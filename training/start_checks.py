"""Refuse a start that can't be trained, before time is spent: another architecture, too short, a foreign tokenizer."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from model.architectures import elmo_files
from model.architectures.foreign_weights import read_config
from model.errors import BadInput
from model.files import read_json
from model.tokenization.words import WordTokenizer
from model.types import IntArray
from training.data import LENGTH_MULTIPLE, Dataset
from training.onnx_builder import ACTIVATIONS, GPT_ACTIVATIONS, OPENAI_ACTIVATIONS
from training.pretrained import Start

MAX_UNKNOWN = 0.2  # share of tokens; a tokenizer that knows fewer is not one for these texts


class Kin(NamedTuple):
    """What an architecture starts from. positions: the setting that says how long its table of positions is."""

    model_types: tuple[str, ...]
    positions: str | None = None


# --arch → the starts it takes
KIN: dict[str, Kin] = {
    "bert": Kin(("bert", "ernie", "electra"), positions="max_position_embeddings"),
    "nezha": Kin(("nezha",)),
    "gpt": Kin(("openai-gpt", "gpt2"), positions="n_positions"),
    "elmo": Kin((elmo_files.MODEL_TYPE,)),
}


class Activation(NamedTuple):
    """setting: what names a model's activation. default: what it is where none is named. known: those of its graphs."""

    setting: str = "hidden_act"
    default: str = "gelu"
    known: Collection[str] = ACTIVATIONS


# model_type → where it isn't as BERT has it
_ACTIVATIONS = {
    "openai-gpt": Activation("afn", known=OPENAI_ACTIVATIONS),
    "gpt2": Activation("activation_function", "gelu_new", GPT_ACTIVATIONS),
}


def check_architecture(folder: Path, *, init: str, arch: str, max_length: int) -> None:
    """Refuse the start in `folder`, given as `--init init`, if `arch` can't start from it, or it is too short.

    Raises:
        BadInput: the model type is another, it has fewer positions than `max_length`, or can't be exported.
    """
    kin = KIN[arch]
    try:
        config = dict(read_json(folder / "config.json"))
    except (ValueError, TypeError) as error:
        raise BadInput(f"--init {init}: config.json can't be read ({error!r}); save it again") from None
    found = config.get("model_type")
    if found not in kin.model_types or (arch != "gpt" and config.get("is_decoder")):
        kind = f"{found} decoder" if config.get("is_decoder") else found
        other = next((name for name, its in KIN.items() if found in its.model_types and name != arch), None)
        hint = f"; --arch {other} takes it" if other else ""
        what = "a decoder" if arch == "gpt" else "an encoder"
        raise BadInput(
            f"--init {init} is of type {kind}, --arch {arch} needs {what} of type {', '.join(kin.model_types)}{hint}; "
            f"wenlei pretrain --arch {arch} makes one"
        )
    _check_activation(config, init)
    if kin.positions:
        _check_length(config, kin.positions, init=init, arch=arch, max_length=max_length)


def _check_activation(config: Mapping[str, Any], init: str) -> None:
    setting, default, known = _ACTIVATIONS.get(config["model_type"], Activation())
    if (activation := config.get(setting, default)) not in known:
        raise BadInput(
            f"--init {init} has {setting} {activation}, which can't be exported; only {', '.join(known)} can"
        )


def _check_length(config: Mapping[str, Any], setting: str, *, init: str, arch: str, max_length: int) -> None:
    try:
        longest = int(config[setting])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"--init {init}: config.json is not that of a {arch.upper()} ({error!r}), it has to say {setting}; "
            "save it again"
        ) from None
    check_positions(longest, init=init, max_length=max_length)


def check_positions(longest: int, *, init: str, max_length: int) -> None:
    """Refuse texts that are longer than the table of `longest` positions.

    Raises:
        BadInput: they are.
    """
    positions = longest // LENGTH_MULTIPLE * LENGTH_MULTIPLE  # batches are padded to a multiple
    if max_length > positions:
        raise BadInput(
            f"--max-length {max_length} is more than the {positions} positions of {init}; give at most that many"
        )


def check_embeddings(vocabulary_size: int, start: Start) -> None:
    """Refuse a tokenizer that is not the network's.

    Raises:
        BadInput: it has more tokens than the network has embeddings.
    """
    rows = read_config(start.folder).vocab_size
    if vocabulary_size > rows:
        raise BadInput(
            f"the tokenizer of {start.name} has {vocabulary_size:,} tokens, its encoder {rows:,} embeddings; "
            "they don't belong together"
        )


def check_words(tokenizer: WordTokenizer, start: Start) -> None:
    """Refuse a tokenizer of words that is not the ELMo's.

    Raises:
        BadInput: it has other words, or spells them otherwise.
    """
    spelled = elmo_files.spelling(elmo_files.read_whole(start.folder), start.folder).numpy()
    if not np.array_equal(spelled, tokenizer.characters_of_words):
        raise BadInput(
            f"the tokenizer of {start.name} has {tokenizer.vocabulary_size:,} words, its model {len(spelled):,}, and "
            "not the same ones; they don't belong together"
        )


def check_pairs(train_set: Dataset) -> None:
    """Refuse texts that have no order to leave out.

    Raises:
        BadInput: none of them is a pair.
    """
    if all(sample.pair is None for sample in train_set.samples):
        raise BadInput(
            f"--similarity is for pairs of texts, and none of the {len(train_set):,} train samples is one; leave it out"
        )


def check_known(train_set: Dataset, *, name: str, unknown: int | None, start: Start) -> None:
    """Refuse a tokenizer that does not know the texts' characters; `unknown`: its id in the inputs called `name`.

    Raises:
        BadInput: too many of the texts' tokens are unknown to it.
    """
    ids = np.concatenate([encoded.inputs[name].ravel() for encoded in train_set.encoded])
    check_ids_known(ids[ids != train_set.padding[name]], unknown=unknown, start=start)


def check_ids_known(ids: IntArray, *, unknown: int | None, start: Start) -> None:
    """Refuse a tokenizer that gives too many of the tokens `ids` the id `unknown`.

    Raises:
        BadInput: they are too many.
    """
    if (share := float((ids == unknown).mean())) > MAX_UNKNOWN:
        raise BadInput(f"{share:.0%} of the texts' tokens are unknown to {start.name}; take a start for Chinese")
