"""Refuse a start that can't be trained, before time is spent: another architecture, too short, a foreign tokenizer."""

from pathlib import Path

import numpy as np

from model.errors import BadInput
from model.files import read_json
from model.tokenization.subwords import SubwordTokenizer
from training.data import LENGTH_MULTIPLE, Dataset
from training.onnx_bert import ACTIVATIONS
from training.pretrained import MODEL_TYPE, Start

MAX_UNKNOWN = 0.2  # share of tokens; a tokenizer that knows fewer is not one for these texts


def check_architecture(folder: Path, *, init: str, arch: str, max_length: int) -> None:
    """Refuse the start in `folder`, given as `--init init`, if `arch` can't start from it, or it is too short.

    Raises:
        BadInput: the model type is another, or it has fewer positions than `max_length`.
    """
    try:
        config = read_json(folder / "config.json")
        longest = int(config["max_position_embeddings"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"--init {init}: config.json is not that of a BERT ({error!r}); save it again") from None
    if (found := config.get("model_type")) != MODEL_TYPE or config.get("is_decoder"):
        kind = f"{found} decoder" if config.get("is_decoder") else found
        raise BadInput(f"--init {init} is a {kind} model, --arch {arch} needs an encoder of type {MODEL_TYPE}")
    if (activation := config.get("hidden_act", "gelu")) not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise BadInput(f"--init {init} has hidden_act {activation}, which can't be exported; only {known} can")
    positions = longest // LENGTH_MULTIPLE * LENGTH_MULTIPLE  # batches are padded to a multiple
    if max_length > positions:
        raise BadInput(
            f"--max-length {max_length} is more than the {positions} positions of {init}; give at most that many"
        )


def check_tokenizer(tokenizer: SubwordTokenizer, train_set: Dataset, start: Start) -> None:
    """Refuse a tokenizer that is not the encoder's, or that does not know the texts' characters.

    Raises:
        BadInput: it has more tokens than the encoder has embeddings, or most of the texts are unknown to it.
    """
    rows = read_json(start.folder / "config.json")["vocab_size"]
    if tokenizer.vocabulary_size > rows:
        raise BadInput(
            f"the tokenizer of {start.name} has {tokenizer.vocabulary_size:,} tokens, its encoder {rows:,} embeddings; "
            "they don't belong together"
        )
    tokens = np.concatenate([encoded.inputs["input_ids"] for encoded in train_set.encoded])
    if (unknown := float((tokens == tokenizer.unknown_id).mean())) > MAX_UNKNOWN:
        raise BadInput(f"{unknown:.0%} of the texts' tokens are unknown to {start.name}; take a start for Chinese")
