"""The ONNX graphs of BERT, ERNIE, ELECTRA and NEZHA classifiers, written node by node with fused operators.

A traced export leaves attention in a dozen small nodes. Here a layer is eight: one projection for query, key
and value, fused attention, output, skip-and-normalise, feed-forward with GELU, skip-and-normalise. When pooling reads
[CLS] only, the last layer computes that position only.
"""

from typing import cast

import numpy as np
import onnx
from onnx import TensorProto

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.nezha import NezhaConfig
from training.onnx_bilstm import bilstm
from training.onnx_builder import GraphBuilder, Precision
from training.onnx_file import CONTRIB
from training.onnx_nezha import RelativeAttention


def build(classifier: BertClassifier, *, precision: Precision, with_types: bool) -> onnx.ModelProto:
    """The model: (input_ids, attention_mask[, token_type_ids]) int64 (batch, length) → logits (batch, n_labels).

    `with_types`: the tokenizer tells the texts of a pair apart by token types; without it they are all 0.
    """
    return _BertGraph(classifier, precision=precision, with_types=with_types).model()


class _BertGraph(GraphBuilder):
    """The graph of one classifier, from its embeddings to its logits."""

    def __init__(self, classifier: BertClassifier, *, precision: Precision, with_types: bool) -> None:
        super().__init__(classifier, precision=precision)
        self.with_types = with_types
        self.pooling = classifier.pooling
        self.config = classifier.encoder.config
        self.epsilon = float(self.config.layer_norm_eps)

    def model(self) -> onnx.ModelProto:
        """The whole graph."""
        inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if self.with_types else [])]
        if self.config.model_type == "nezha":
            self.relative = RelativeAttention(self, cast(NezhaConfig, self.config))
        else:
            self.mask = self.node("Cast", "attention_mask", to=TensorProto.INT32)
        hidden = [self.embeddings()]
        for layer in range(self.config.num_hidden_layers):
            is_last = layer == self.config.num_hidden_layers - 1
            hidden.append(self.layer(layer, hidden[-1], first_only=is_last and self.pooling is Pooling.CLS))
        self.head(self.pool(hidden))
        return self.finish(inputs=dict.fromkeys(inputs, TensorProto.INT64), n_labels=len(self.weights["head.bias"]))

    def embeddings(self) -> str:
        """All embeddings, summed and normalised, and as wide as the layers: (batch, length, hidden_size)."""
        name = "encoder.embeddings"
        embedded = self.rows(f"{name}.word_embeddings.weight", "input_ids")
        types = self.weights[f"{name}.token_type_embeddings.weight"]
        always = 0 * types[0] if self.with_types else types[0]  # what every position gets
        if (tasks := self.weights.get(f"{name}.task_type_embeddings.weight")) is not None:
            always = always + tasks[0]  # ERNIE's task, 0 where none is named
        if (positions := self.weights.get(f"{name}.position_embeddings.weight")) is None:
            embedded = self.node("Add", embedded, self.constant("always", always))
        else:
            length = self.node("Shape", "input_ids", start=1, end=2)
            table = self.constant("positions", positions + always)
            embedded = self.node("Add", embedded, self.node("Slice", table, self.ints(0), length, self.ints(0)))
        if self.with_types:
            embedded = self.node("Add", embedded, self.node("Gather", self.constant("types", types), "token_type_ids"))
        embedded = self.norm(embedded, f"{name}.LayerNorm", epsilon=self.epsilon)
        widened = "encoder.embeddings_project"  # ELECTRA's embeddings may be narrower than its layers
        return self.project(embedded, widened) if f"{widened}.weight" in self.weights else embedded

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
        mixed = self.attention(query, key, value, first_only=first_only)
        hidden = self.add_norm(
            self.project(mixed, f"{name}.attention.output.dense"), hidden, f"{name}.attention.output"
        )
        inner = self.activation(self.project(hidden, f"{name}.intermediate.dense"), self.config.hidden_act)
        return self.add_norm(self.project(inner, f"{name}.output.dense"), hidden, f"{name}.output")

    def attention(self, query: str, key: str, value: str, *, first_only: bool) -> str:
        """Multi-head attention: (batch, n_queries, hidden_size) to the same."""
        if self.config.model_type == "nezha":
            return self.relative(query, key, value, first_only=first_only)
        return self.node(
            "MultiHeadAttention", query, key, value, "", self.mask,
            num_heads=self.config.num_attention_heads, domain=CONTRIB,
        )  # fmt: skip

    def add_norm(self, update: str, hidden: str, name: str) -> str:
        """LayerNorm(update + hidden)."""
        return self.norm(self.node("Add", update, hidden), f"{name}.LayerNorm", epsilon=self.epsilon)

    def pool(self, hidden: list[str]) -> str:
        """One vector a text, (batch, hidden_size), from the hidden states of every layer."""
        if self.pooling is Pooling.CLS:
            return self.node("Squeeze", hidden[-1], self.ints(1))
        states = self.mix(hidden) if self.pooling.mixes else hidden[-1]
        if self.pooling is Pooling.BILSTM:
            states = bilstm(self, states, "lstm")
        return self.masked_mean(states, "attention_mask")

    def mix(self, hidden: list[str]) -> str:
        """The layers' weighted mean, each (batch, length, hidden_size)."""
        mix = np.exp(self.weights["layer_mix"] - self.weights["layer_mix"].max())
        weighted = [
            self.node("Mul", layer, self.constant(f"mix.{number}", weight))
            for number, (layer, weight) in enumerate(zip(hidden, mix / mix.sum(), strict=True))
        ]
        return self.node("Sum", *weighted)
