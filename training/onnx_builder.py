"""What the ONNX graphs of all Transformers are built of: nodes, weights in their number format, linear maps, norms.

In int8, weights are signed and quantised per output channel, activations per tensor while running (Jacob 2018);
embeddings are quantised per row. All else stays in float32.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from torch import nn

from training.onnx_file import CONTRIB, make_model

# transformers' names of activations, and the operators that compute them
ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "gelu": ("Gelu", {"domain": CONTRIB}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}
# transformers calls the activations of openai-gpt by other names than those of all its other models
OPENAI_ACTIVATIONS = {"gelu": "gelu_new", "swish": "silu", "silu": "silu", "relu": "relu"}
GPT_ACTIVATIONS = (*ACTIVATIONS, "silu")  # silu is x · σ(x), of two nodes


class Precision(StrEnum):
    """Number format of weights and matrix products."""

    FP32 = "fp32"
    INT8 = "int8"


class GraphBuilder:
    """Collects the nodes and weights of one graph; every method that adds nodes returns the name of its output."""

    def __init__(self, network: nn.Module, *, precision: Precision = Precision.FP32) -> None:
        self.precision = precision
        self.weights = {name: value.detach().float().numpy() for name, value in network.state_dict().items()}
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, NDArray[np.generic]] = {}

    def finish(self, *, inputs: Mapping[str, int], n_labels: int) -> onnx.ModelProto:
        """The model, once a node has given `logits`; `inputs`: name → tensor type."""
        return make_model(self.nodes, inputs=inputs, n_labels=n_labels, constants=self.constants)

    def node(self, op: str, *inputs: str, output: str | None = None, domain: str = "", **attributes: Any) -> str:
        """One node with one output."""
        name = output or f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name=name, domain=domain, **attributes))
        return name

    def split(self, joined: str, parts: int) -> list[str]:
        """`parts` equal pieces of the last axis."""
        names = [f"{joined}.{part}" for part in range(parts)]
        self.nodes.append(helper.make_node("Split", [joined], names, axis=-1, num_outputs=parts))
        return names

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        """`value` as an initializer."""
        self.constants[name] = value
        return name

    def weight(self, name: str) -> str:
        """A weight of the network under its own name."""
        return self.constant(name, self.weights[name])

    def ints(self, *values: int) -> str:
        """An int64 vector."""
        return self.constant("ints." + ".".join(map(str, values)), np.array(values, np.int64))

    def number(self, value: float) -> str:
        """A float32 scalar."""
        return self.constant(f"number.{value!r}", np.array(value, np.float32))

    def rows(self, name: str, ids: str) -> str:
        """Rows `ids` of the embedding table `name`; in int8 each row has a scale of its own."""
        table = self.weights[name]
        if self.precision is Precision.FP32:
            return self.node("Gather", self.constant(name, table), ids)
        values, scales = quantise(table, axis=1)
        row = self.node("Cast", self.node("Gather", self.constant(name, values), ids), to=TensorProto.FLOAT)
        return self.node("Mul", row, self.node("Gather", self.constant(f"{name}.scale", scales), ids))

    def project(self, hidden: str, *names: str) -> str:
        """The linear layers `names` of `hidden`, side by side: (…, width) → (…, sum of their widths)."""
        weight = np.concatenate([self.weights[f"{name}.weight"] for name in names]).T
        bias = np.concatenate([self.weights[f"{name}.bias"] for name in names])
        return self.linear(hidden, names[0], weight, bias)

    def linear(self, hidden: str, name: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        """hidden · weight + bias: (…, n_in) → (…, n_out), weight (n_in, n_out), under `name`."""
        bias_name = self.constant(f"{name}.bias", bias)
        if self.precision is Precision.FP32:
            return self.node("Add", self.node("MatMul", hidden, self.constant(f"{name}.weight", weight)), bias_name)
        values, scales = quantise(weight, axis=0)
        quantised, scale = self.constant(f"{name}.weight", values), self.constant(f"{name}.scale", scales)
        zero = self.constant(f"{name}.zero", np.zeros(len(scales), np.int8))
        return self.node("DynamicQuantizeMatMul", hidden, quantised, scale, zero, bias_name, domain=CONTRIB)

    def norm(self, hidden: str, name: str, *, epsilon: float) -> str:
        """The layer normalisation `name` over the last axis."""
        scale, shift = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", hidden, scale, shift, epsilon=epsilon)

    def activation(self, hidden: str, name: str) -> str:
        """The activation that transformers calls `name`."""
        op, attributes = ACTIVATIONS[name]
        return self.node(op, hidden, **attributes)

    def masked_mean(self, states: str, attention_mask: str) -> str:
        """The mean over real positions: (batch, length, width), (batch, length) → (batch, width)."""
        mask = self.node("Cast", attention_mask, to=TensorProto.FLOAT)
        total = self.node("MatMul", self.node("Unsqueeze", mask, self.ints(1)), states)
        return self.node(
            "Div", self.node("Squeeze", total, self.ints(1)), self.node("ReduceSum", mask, self.ints(1), keepdims=1)
        )

    def head(self, pooled: str, name: str = "head") -> str:
        """The linear layer `name` in float32, as the output `logits`: (batch, width) → (batch, n_labels)."""
        return self.node(
            "Gemm", pooled, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), transB=1, output="logits"
        )


def quantise(weight: NDArray[np.float32], *, axis: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8, one scale for every slice along the other axis: (values, scales with `axis` kept as 1 or gone).

    axis 0: a scale a column, (n_columns,), as matrix products want it; axis 1: a scale a row, (n_rows, 1).
    """
    scales = np.abs(weight).max(axis=axis, keepdims=True) / 127
    scales = np.where(scales == 0, 1, scales).astype(np.float32)
    values = np.clip(np.rint(weight / scales), -127, 127).astype(np.int8)
    return values, scales.ravel() if axis == 0 else scales
