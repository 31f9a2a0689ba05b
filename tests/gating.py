"""Models that go by keywords, and texts for them, some of which they can't tell: what the gate has to part."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from model.bundle import Bundle, Manifest, seal_bundle
from model.files import staging_folder
from model.text import Normaliser
from model.types import Taxonomy
from tests.bundles import CHARACTERS, HIDDEN, character_tokenizer, mean_model

FILLERS = "的一是不了在人有我他这中大来上也时年房间酒店早餐服务员价格便宜"
WEIGHT = 60.0  # of a keyword; the model averages over the characters
USUAL = -2.0  # of any other character: without a keyword, a sigmoid says no


def keyword_bundle(
    destination: Path, *, taxonomy: Taxonomy, words: Mapping[str, str], snapshot: str, name: str = "words"
) -> Bundle:
    """A bundle whose logit of a label grows with the label's character in the text. snapshot: it claims to know."""
    tokenizer = character_tokenizer()
    model = mean_model(tokenizer.get_vocab_size(), len(taxonomy), ("input_ids", "attention_mask"))
    embeddings = np.zeros((tokenizer.get_vocab_size(), HIDDEN), np.float32)
    embeddings[:, : len(taxonomy)] = USUAL
    for column, label in enumerate(taxonomy.labels):
        embeddings[tokenizer.token_to_id(words[label]), column] = WEIGHT
    weights = {"embeddings": embeddings, "head": np.eye(HIDDEN, len(taxonomy), dtype=np.float32)}
    for initializer in model.graph.initializer:
        if initializer.name in weights:
            initializer.CopyFrom(numpy_helper.from_array(weights[initializer.name], initializer.name))
    with staging_folder(destination) as staging:
        tokenizer.save(str(staging / "tokenizer.json"))
        (staging / "onnx").mkdir()
        onnx.save(model, staging / "onnx" / "fp32.onnx")
        manifest = Manifest(
            name=name,
            arch="mean",
            taxonomy=taxonomy,
            normaliser=Normaliser(),
            max_length=64,
            pooling="mean",
            snapshot=snapshot,
            run={},
            onnx={"fp32": "onnx/fp32.onnx"},
        )
        return seal_bundle(staging, manifest, destination)


def made_up(count: int, words: Mapping[str, str], *, seed: int, unsure: float = 0.3) -> list[tuple[str, str]]:
    """Texts with a label each: with its character, or, `unsure` of them, with two labels' characters, and either right.

    All are new to each other, and far from near duplicates.
    """
    random = np.random.default_rng(seed)
    labels = list(words)
    fillers = [character for character in FILLERS if character not in words.values()]
    assert set(words.values()) <= set(CHARACTERS)
    rows = []
    for _ in range(count):
        right, other = random.choice(len(labels), 2, replace=False)
        inside = [words[labels[right]]] + [words[labels[other]]] * (random.random() < unsure)
        characters = [*random.choice(fillers, 12), *inside]
        rows.append(("".join(random.permutation(characters)), labels[right]))
    return rows
