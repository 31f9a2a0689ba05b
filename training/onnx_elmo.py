"""The ONNX graph of an ELMo classifier, in float32, with onnxruntime's LSTM.

Known words come from a table of their vectors; unknown words alone go through the character CNN. ONNX has no LSTM with
projections. As the state is h = P m, the recurrence R h is (R P) m: with R P for its recurrence an LSTM without
projection computes m, and P comes behind it.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from model.architectures.elmo import UNKNOWN_WORD
from model.architectures.elmo_classifier import NORM_EPSILON, ElmoClassifier, ElmoPooling
from training.onnx_builder import GraphBuilder
from training.onnx_file import make_model


def build(classifier: ElmoClassifier) -> onnx.ModelProto:
    """The model: word_ids, attention_mask (batch, length), char_ids (batch, length, word_length) int64
    → logits (batch, n_labels)."""
    return _ElmoGraph(classifier).model()


class _ElmoGraph(GraphBuilder):
    """The graph of one classifier, from its words to its logits."""

    def __init__(self, classifier: ElmoClassifier) -> None:
        super().__init__(classifier)
        self.config, self.pooling = classifier.encoder.config, classifier.pooling
        self.table = classifier.encoder.table().cpu().numpy()

    def model(self) -> onnx.ModelProto:
        """The whole graph."""
        # (length, batch, projection_size), as onnxruntime's LSTM wants it
        token = self.node("Transpose", self.token_vectors(), perm=[1, 0, 2])
        lengths = self.node("ReduceSum", "attention_mask", self.ints(1), keepdims=0)
        self.lengths = self.node("Cast", lengths, to=TensorProto.INT32)
        sides = [[token, *self.layers(token, side)] for side in ("forward", "backward")]
        layers = [self.node("Concat", *pair, axis=-1) for pair in zip(*sides, strict=True)]
        mixed = self.node("Transpose", self.mix(layers), perm=[1, 0, 2])
        self.head(self.pool(mixed))
        return make_model(
            self.nodes,
            inputs=dict.fromkeys(("word_ids", "char_ids", "attention_mask"), TensorProto.INT64),
            depths={"char_ids": self.config.word_length},
            n_labels=len(self.weights["head.bias"]),
            constants=self.constants,
        )

    def token_vectors(self) -> str:
        """Every word without context: (batch, length, projection_size)."""
        known = self.node("Gather", self.constant("word_vectors", self.table), "word_ids")
        is_unknown = self.node("Equal", "word_ids", self.constant("unknown", np.array(UNKNOWN_WORD, np.int64)))
        places = self.node("Transpose", self.node("NonZero", is_unknown), perm=[1, 0])  # (n_unknown, 2), often none
        spelled = self.character_cnn(self.node("GatherND", "char_ids", places))
        return self.node("ScatterND", known, places, spelled)

    def character_cnn(self, characters: str) -> str:
        """Vectors of words by their characters: (n, word_length) → (n, projection_size)."""
        name = "encoder.character_cnn"
        embedded = self.node("Transpose", self.rows(f"{name}.embedding.weight", characters), perm=[0, 2, 1])
        zero = self.constant("padding", np.array(0, np.int64))
        is_real = self.node("Cast", self.node("Greater", characters, zero), to=TensorProto.FLOAT)
        pooled = []
        for number, (width, _) in enumerate(self.config.filters):
            convolution = f"{name}.convolutions.{number}"
            weight, bias = self.weight(f"{convolution}.weight"), self.weight(f"{convolution}.bias")
            answers = self.node("Relu", self.node("Conv", embedded, weight, bias))
            # Filters see the word and not beyond it, but once at least.
            ends = self.node("Slice", is_real, self.ints(width - 1), self.ints(self.config.word_length), self.ints(1))
            first = np.eye(1, self.config.word_length - width + 1, dtype=np.float32)
            seen = self.node("Unsqueeze", self.node("Max", ends, self.constant(f"first.{width}", first)), self.ints(1))
            pooled.append(self.node("ReduceMax", self.node("Mul", answers, seen), self.ints(2), keepdims=0))
        x = self.node("Concat", *pooled, axis=1)
        for number in range(self.config.n_highways):
            highway = f"{name}.highways.{number}"
            gate = self.node("Sigmoid", self.project(x, f"{highway}.gate"))
            transformed = self.node("Relu", self.project(x, f"{highway}.transform"))
            x = self.node("Add", x, self.node("Mul", gate, self.node("Sub", transformed, x)))
        return self.project(x, f"{name}.projection")

    def layers(self, token: str, side: str) -> list[str]:
        """The states of one side's layers, each (length, batch, projection_size)."""
        states: list[str] = []
        for number in range(self.config.n_layers):
            below = states[-1] if states else token
            state = self.lstm(below, f"encoder.{side}_layers.{number}.lstm", reverse=side == "backward")
            states.append(self.node("Add", state, below) if states else state)
        return states

    def lstm(self, x: str, name: str, *, reverse: bool) -> str:
        """One layer with its projection, over real words alone: (length, batch, projection_size) to the same."""
        weight, recurrence, bias, second_bias, projection = (
            self.weights[f"{name}.{part}_l0"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr")
        )
        folded = recurrence.astype(np.float64) @ projection.astype(np.float64)
        outputs = self.node(
            "LSTM",
            x,
            self.constant(f"{name}.weight", iofc(weight)[None]),
            self.constant(f"{name}.recurrence", iofc(folded.astype(np.float32))[None]),
            self.constant(f"{name}.bias", np.concatenate([iofc(bias), iofc(second_bias)])[None]),
            self.lengths,
            hidden_size=self.config.cell_size,
            direction="reverse" if reverse else "forward",
        )
        outputs = self.node("Squeeze", outputs, self.ints(1))  # (length, batch, cell_size)
        return self.node("MatMul", outputs, self.constant(f"{name}.projection", projection.T))

    def mix(self, layers: list[str]) -> str:
        """The scalar mix, its shares the scales of the layers' norms: each (length, batch, width) → the same."""
        shares = np.exp(self.weights["mix.weights"] - self.weights["mix.weights"].max())
        shares = self.weights["mix.gamma"] * shares / shares.sum()
        width = 2 * self.config.projection_size
        scales = [self.constant(f"mix.{j}", np.full(width, share, np.float32)) for j, share in enumerate(shares)]
        return self.node(
            "Sum",
            *(
                self.node("LayerNormalization", layer, scale, epsilon=NORM_EPSILON)
                for layer, scale in zip(layers, scales, strict=True)
            ),
        )

    def pool(self, mixed: str) -> str:
        """One vector a text: (batch, length, width) → (batch, width)."""
        if self.pooling is ElmoPooling.MEAN:
            return self.masked_mean(mixed, "attention_mask")
        is_real = self.node("Unsqueeze", self.node("Cast", "attention_mask", to=TensorProto.BOOL), self.ints(2))
        lowest = self.number(float(np.finfo(np.float32).min))
        return self.node("ReduceMax", self.node("Where", is_real, mixed, lowest), self.ints(1), keepdims=0)


def iofc(gates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows in ONNX's order of gates (input, output, forget, cell) from torch's (input, forget, cell, output)."""
    i, f, c, o = np.split(gates, 4)
    return np.concatenate([i, o, f, c])
