"""A bidirectional LSTM over texts of several lengths as ONNX nodes; its weights stay in float32."""

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from training.onnx_builder import GraphBuilder

DIRECTIONS = ("", "_reverse")  # torch's endings of the weights of either


def bilstm(graph: GraphBuilder, states: str, name: str) -> str:
    """torch's bidirectional `nn.LSTM` called `name`, every text read to its own end, and back from there.

    states: (batch, length, width) → (batch, length, 2 * hidden_size), 0 where a text is padded.
    """
    lengths = graph.node("ReduceSum", "attention_mask", graph.ints(1), keepdims=0)
    lengths = graph.node("Cast", lengths, to=TensorProto.INT32)
    steps = graph.node("Transpose", states, perm=[1, 0, 2])
    layer = 0
    while f"{name}.weight_ih_l{layer}" in graph.weights:
        hidden_size = graph.weights[f"{name}.weight_hh_l{layer}"].shape[1]
        weights = [
            graph.constant(f"{name}.{layer}.{kind}", _both(graph, f"{name}.{{}}_l{layer}", kinds))
            for kind, kinds in (
                ("input", ["weight_ih"]),
                ("recurrent", ["weight_hh"]),
                ("bias", ["bias_ih", "bias_hh"]),
            )
        ]
        read = graph.node("LSTM", steps, *weights, lengths, direction="bidirectional", hidden_size=hidden_size)
        layer += 1
        # (length, direction, batch, hidden_size) → (length, batch, both directions side by side)
        steps = graph.node(
            "Reshape", graph.node("Transpose", read, perm=[0, 2, 1, 3]), graph.ints(0, 0, 2 * hidden_size)
        )
    return graph.node("Transpose", steps, perm=[1, 0, 2])


def _both(graph: GraphBuilder, template: str, kinds: list[str]) -> NDArray[np.float32]:
    """Weights of both directions, those of several `kinds` one after the other."""
    return np.stack(
        [
            np.concatenate([_reordered(graph.weights[template.format(kind) + direction]) for kind in kinds])
            for direction in DIRECTIONS
        ]
    )


def _reordered(gates: NDArray[np.float32]) -> NDArray[np.float32]:
    """Gates in ONNX's order, input, output, forget, cell, from torch's: input, forget, cell, output."""
    of_input, forget, cell, output = np.split(gates, 4)
    return np.concatenate([of_input, output, forget, cell])
