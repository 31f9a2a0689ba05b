"""Small real bundles, built in a moment: an ONNX model that reads every character, and a character vocabulary."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

from model.bundle import Bundle, Manifest, seal_bundle
from model.files import staging_folder
from model.text import Normaliser
from model.types import Task, Taxonomy

CHARACTERS = "的一是不了在人有我他这中大来上也时年好坏差快慢喜欢房间酒店早餐服务员态度干净吵闹价格便宜贵，。！？"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
SENTIMENT = Taxonomy(Task.SINGLE, ("好评", "差评"))
HIDDEN = 8


def tiny_bundle(
    destination: Path,
    *,
    name: str = "tiny",
    taxonomy: Taxonomy = SENTIMENT,
    max_length: int = 64,
    inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
    seed: int = 7,
    **manifest: object,
) -> Bundle:
    """A sealed bundle at `destination`; `inputs`: which of the tokenizer's inputs the model takes; seed: of weights."""
    with staging_folder(destination) as staging:
        vocabulary = character_tokenizer()
        vocabulary.save(str(staging / "tokenizer.json"))
        (staging / "onnx").mkdir()
        model = mean_model(vocabulary.get_vocab_size(), len(taxonomy), inputs, seed)
        onnx.save(model, staging / "onnx" / "fp32.onnx")
        (staging / "README.md").write_text(f"# {name}\n")
        return seal_bundle(
            staging,
            Manifest(
                name=name,
                arch="mean",
                taxonomy=taxonomy,
                normaliser=Normaliser(),
                max_length=max_length,
                pooling="mean",
                snapshot="0" * 32,
                run={},
                onnx={"fp32": "onnx/fp32.onnx"},
                **manifest,  # type: ignore[arg-type]
            ),
            destination,
        )


def character_tokenizer(characters: str = CHARACTERS) -> Tokenizer:
    """One token a character, in the frame of BERT."""
    tokens = dict.fromkeys([*SPECIAL, *characters])
    tokenizer = Tokenizer(models.WordLevel({token: index for index, token in enumerate(tokens)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def mean_model(vocabulary_size: int, n_labels: int, inputs: tuple[str, ...], seed: int = 7) -> onnx.ModelProto:
    """Embed, average over what the mask leaves, map to logits."""
    random = np.random.default_rng(seed)
    weights = {
        "embeddings": random.normal(size=(vocabulary_size, HIDDEN)).astype(np.float32),
        "head": random.normal(size=(HIDDEN, n_labels)).astype(np.float32),
        "last": np.array([2], np.int64),
        "positions": np.array([1], np.int64),
    }
    nodes = [
        helper.make_node("Gather", ["embeddings", "input_ids"], ["embedded"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["embedded", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "positions"], ["sum"], keepdims=0),
        helper.make_node("ReduceSum", ["mask", "positions"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["pooled"]),
        helper.make_node("MatMul", ["pooled", "head"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "mean",
        [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", n_labels])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    return model
