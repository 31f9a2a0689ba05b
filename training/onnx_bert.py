"""The ONNX graph of a BERT classifier, written node by node with onnxruntime's fused operators.

A traced export leaves attention in a dozen small nodes. Here a layer is eight: one projection for query, key
and value, fused attention, output, skip-and-normalise, feed-forward with GELU, skip-and-normalise. In int8,
weights are signed and quantised per output channel, activations per tensor while running (Jacob 2018); word
embeddings are quantised per row. When pooling reads [CLS] only, the last layer computes that position only.
"""

from enum import StrEnum
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from model.architectures.bert import BertClassifier, Pooling
from training.onnx_file import CONTRIB, make_model

# transformers' names of activations, and the operators that compute them
ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {"domain": CONTRIB}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}


class Precision(StrEnum):
    """Number format of weights and matrix products."""

    FP32 = "fp32"
    INT8 = "int8"


def build(classifier: BertClassifier, *, precision: Precision, with_types: bool) -> onnx.ModelProto:
    """The model: (input_ids, attention_mask[, token_type_ids]) int64 (batch, length) → logits (batch, n_labels).

    `with_types`: the tokenizer tells the texts of a pair apart by token types; without it they are all 0.
    """
    return _Builder(classifier, precision=precision, with_types=with_types).model()


class _Builder:
    """Adds nodes and weights to one graph; every method returns the name of its output."""

    def __init__(self, classifier: BertClassifier, *, precision: Precision, with_types: bool) -> None:
        self.precision = precision
        self.with_types = with_types
        self.pooling = classifier.pooling
        self.config = classifier.encoder.config
        self.weights = {name: value.detach().float().numpy() for name, value in classifier.state_dict().items()}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[np.generic]] = {}

    def model(self) -> onnx.ModelProto:
        """The whole graph."""
        inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if self.with_types else [])]
        self.mask = self.node("Cast", "attention_mask", to=TensorProto.INT32)
        hidden = [self.embeddings()]
        for layer in range(self.config.num_hidden_layers):
            is_last = layer == self.config.num_hidden_layers - 1
            hidden.append(self.layer(layer, hidden[-1], first_only=is_last and self.pooling is Pooling.CLS))
        pooled = self.pool(hidden)
        self.node("Gemm", pooled, self.weight("head.weight"), self.weight("head.bias"), transB=1, output="logits")
        return make_model(
            self.nodes,
            inputs=dict.fromkeys(inputs, TensorProto.INT64),
            n_labels=len(self.weights["head.bias"]),
            constants=self.constants,
        )

    def embeddings(self) -> str:
        """Word, position and token-type embeddings, summed and normalised: (batch, length, hidden_size)."""
        name = "encoder.embeddings"
        positions = self.weights[f"{name}.position_embeddings.weight"]
        types = self.weights[f"{name}.token_type_embeddings.weight"]
        length = self.node("Shape", "input_ids", start=1, end=2)
        table = self.constant("positions", positions if self.with_types else positions + types[0])
        embedded = self.node("Add", self.words(), self.node("Slice", table, self.ints(0), length, self.ints(0)))
        if self.with_types:
            embedded = self.node("Add", embedded, self.node("Gather", self.constant("types", types), "token_type_ids"))
        return self.node("LayerNormalization", embedded, *self.norm(f"{name}.LayerNorm"), epsilon=self.epsilon)

    def words(self) -> str:
        """Rows of the word embeddings; in int8 each row has a scale of its own."""
        table = self.weights["encoder.embeddings.word_embeddings.weight"]
        if self.precision is Precision.FP32:
            return self.node("Gather", self.constant("words", table), "input_ids")
        rows, scales = quantise(table, axis=1)
        values = self.node("Cast", self.node("Gather", self.constant("words", rows), "input_ids"), to=TensorProto.FLOAT)
        scale = self.node("Gather", self.constant("words.scale", scales), "input_ids")
        return self.node("Mul", values, scale)

    def layer(self, number: int, hidden: str, *, first_only: bool) -> str:
        """One Transformer layer (Vaswani 2017, post-norm): (batch, length, hidden_size) to the same.

        `first_only`: the output is that of the first position alone, (batch, 1, hidden_size).
        """
        name = f"encoder.encoder.layer.{number}"
        attention = f"{name}.attention.self"
        if first_only:
            first = self.node("Slice", hidden, self.ints(0), self.ints(1), self.ints(1))
            query = self.project(first, f"{attention}.query")
            key, value = self.split(self.project(hidden, f"{attention}.key", f"{attention}.value"), 2)
            hidden = first
        else:
            joined = self.project(hidden, f"{attention}.query", f"{attention}.key", f"{attention}.value")
            query, key, value = self.split(joined, 3)
        mixed = self.node(
            "MultiHeadAttention", query, key, value, "", self.mask,
            num_heads=self.config.num_attention_heads, domain=CONTRIB,
        )  # fmt: skip
        hidden = self.add_norm(
            self.project(mixed, f"{name}.attention.output.dense"), hidden, f"{name}.attention.output"
        )
        op, attributes = ACTIVATIONS[self.config.hidden_act]
        inner = self.node(op, self.project(hidden, f"{name}.intermediate.dense"), **attributes)
        return self.add_norm(self.project(inner, f"{name}.output.dense"), hidden, f"{name}.output")

    def project(self, hidden: str, *names: str) -> str:
        """The linear maps `names` of `hidden`, side by side: (batch, length, sum of widths)."""
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T
        bias = self.constant(f"{names[0]}.bias", np.concatenate([self.weights[f"{name}.bias"] for name in names]))
        if self.precision is Precision.FP32:
            return self.node("Add", self.node("MatMul", hidden, self.constant(f"{names[0]}.weight", weight)), bias)
        values, scales = quantise(weight, axis=0)
        quantised, scale = self.constant(f"{names[0]}.weight", values), self.constant(f"{names[0]}.scale", scales)
        zero = self.constant(f"{names[0]}.zero", np.zeros(len(scales), np.int8))
        return self.node("DynamicQuantizeMatMul", hidden, quantised, scale, zero, bias, domain=CONTRIB)

    def add_norm(self, update: str, hidden: str, name: str) -> str:
        """LayerNorm(update + hidden)."""
        total = self.node("Add", update, hidden)
        return self.node("LayerNormalization", total, *self.norm(f"{name}.LayerNorm"), epsilon=self.epsilon)

    def pool(self, hidden: list[str]) -> str:
        """One vector a text, (batch, hidden_size), from the hidden states of every layer."""
        if self.pooling is Pooling.CLS:
            return self.node("Squeeze", hidden[-1], self.ints(1))
        state = hidden[-1]
        if self.pooling is Pooling.LAYERS:
            mix = np.exp(self.weights["layer_mix"] - self.weights["layer_mix"].max())
            weighted = [
                self.node("Mul", layer, self.constant(f"mix.{number}", weight))
                for number, (layer, weight) in enumerate(zip(hidden, mix / mix.sum(), strict=True))
            ]
            state = self.node("Sum", *weighted)
        mask = self.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        row = self.node("Unsqueeze", mask, self.ints(1))
        total = self.node("Squeeze", self.node("MatMul", row, state), self.ints(1))
        return self.node("Div", total, self.node("ReduceSum", mask, self.ints(1), keepdims=1))

    @property
    def epsilon(self) -> float:
        return float(self.config.layer_norm_eps)

    def norm(self, name: str) -> tuple[str, str]:
        """Scale and shift of a layer normalisation."""
        return self.weight(f"{name}.weight"), self.weight(f"{name}.bias")

    def weight(self, name: str) -> str:
        """A weight of the classifier under its own name."""
        return self.constant(name, self.weights[name])

    def ints(self, *values: int) -> str:
        """An int64 vector."""
        return self.constant("ints." + ".".join(map(str, values)), np.array(values, np.int64))

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """`value` as an initializer."""
        self.constants[name] = value
        return name

    def split(self, joined: str, parts: int) -> list[str]:
        """`parts` equal pieces of the last axis."""
        names = [f"{joined}.{part}" for part in range(parts)]
        self.nodes.append(helper.make_node("Split", [joined], names, axis=-1, num_outputs=parts))
        return names

    def node(self, op: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        """One node with one output."""
        name = output or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, domain=domain, **attributes))
        return name


def quantise(weight: NDArray[np.float32], *, axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8, one scale for every slice along the other axis: (values, scales with `axis` kept as 1 or gone).

    axis 0: a scale a column, (n_columns,), as matrix products want it; axis 1: a scale a row, (n_rows, 1).
    """
    scales = np.abs(weight).max(axis=axis, keepdims=True) / 127
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    values = np.clip(np.rint(weight / scales), -127, 127).astype(np.int8)
    return values, scales.ravel() if axis == 0 else scales
