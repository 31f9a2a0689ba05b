"""Attention with functional relative positions (NEZHA, Wei 2019) as ONNX nodes: no fused operator knows them.

A query is multiplied with the vectors of all 2 * length distances at once, in one large matrix product; then every row
is moved, so that column j of row i is the distance j - i (as Dai 2019, appendix B). Attention's weights are moved back
before they are multiplied with the same vectors. All moves are slices of flattened matrices.
"""

import numpy as np
from onnx import TensorProto

from model.architectures.nezha import NezhaConfig, sinusoids
from training.onnx_builder import GraphBuilder


class RelativeAttention:
    """What all layers share, the vectors of distances and the mask, computed once; then the attention of each layer."""

    def __init__(self, graph: GraphBuilder, config: NezhaConfig) -> None:
        self.graph = graph
        self.n_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.length = graph.node("Shape", "input_ids", start=1, end=2)
        self.before = graph.node("Sub", self.length, graph.ints(1))  # the first distance is -before
        self.doubled = graph.node("Add", self.length, self.length)
        self.width = graph.node("Add", self.length, self.before)
        self.distances = self._distances(config.max_relative_position)
        mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        hides = graph.node("Sub", graph.number(1.0), graph.node("Unsqueeze", mask, graph.ints(1, 2)))
        self.bias = graph.node("Mul", hides, graph.number(float(np.finfo(np.float32).min)))

    def _distances(self, furthest: int) -> str:
        """The vectors of the distances from 1 - length to length: (2 * length, head_size)."""
        graph = self.graph
        zero, one, least, most = (self._integer(value) for value in (0, 1, -furthest, furthest))
        place = graph.node("Range", zero, graph.node("Squeeze", self.doubled), one)
        distance = graph.node("Clip", graph.node("Sub", place, self.before), least, most)
        table = graph.constant("distances", sinusoids(2 * furthest + 1, self.head_size).numpy())
        return graph.node("Gather", table, graph.node("Add", distance, most))

    def __call__(self, query: str, key: str, value: str, *, first_only: bool) -> str:
        """(batch, n_queries, hidden_size), the same of every key and value → (batch, n_queries, hidden_size).

        `first_only`: the query is that of the first position alone.
        """
        graph = self.graph
        query, value = self._heads(query), self._heads(value)
        key = self._heads(key, perm=(0, 2, 3, 1))
        # the first position's distances are 0 … length - 1, in the order of the positions
        distances = self._slice(self.distances, self.before, self.width, axis=0) if first_only else self.distances
        # q_i · (k_j + a_ij)
        relative = graph.node("MatMul", query, graph.node("Transpose", distances, perm=[1, 0]))
        relative = relative if first_only else self._to_positions(relative)
        scores = graph.node("Add", graph.node("MatMul", query, key), relative)
        scaled = graph.node("Mul", scores, graph.number(self.head_size**-0.5))
        weights = graph.node("Softmax", graph.node("Add", scaled, self.bias), axis=-1)
        # Σ_j weight_ij (v_j + a_ij)
        relative = graph.node("MatMul", weights if first_only else self._to_distances(weights), distances)
        content = graph.node("MatMul", weights, value)
        mixed = graph.node("Transpose", graph.node("Add", content, relative), perm=[0, 2, 1, 3])
        return graph.node("Reshape", mixed, graph.ints(0, 0, self.n_heads * self.head_size))

    def _to_positions(self, by_distance: str) -> str:
        """(batch, heads, length, 2 * length) over distances → (batch, heads, length, length) over positions.

        Position j of row i is its distance j - i + length - 1, and place i * (2 * length - 1) + j + length - 1 of all.
        """
        graph = self.graph
        flat = graph.node("Reshape", by_distance, graph.ints(0, 0, -1))
        end = graph.node("Add", self.before, graph.node("Mul", self.length, self.width))
        rows = self._reshape(self._slice(flat, self.before, end, axis=2), self.length, self.width)
        return self._slice(rows, graph.ints(0), self.length, axis=3)

    def _to_distances(self, by_position: str) -> str:
        """The way back; distances that no position has are 0."""
        graph = self.graph
        none = graph.ints(0)
        wide = graph.node("Pad", by_position, self._join(*[none] * 7, self.before))
        flat = graph.node("Reshape", wide, graph.ints(0, 0, -1))
        padded = graph.node("Pad", flat, self._join(none, none, self.before, none, none, graph.ints(1)))
        return self._reshape(padded, self.length, self.doubled)

    def _heads(self, projected: str, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
        """(batch, length, hidden_size) → (batch, heads, length, head_size), or axes in another order."""
        split = self.graph.node("Reshape", projected, self.graph.ints(0, 0, self.n_heads, self.head_size))
        return self.graph.node("Transpose", split, perm=list(perm))

    def _reshape(self, flat: str, n_rows: str, width: str) -> str:
        """(batch, heads, n_rows * width) → (batch, heads, n_rows, width)."""
        return self.graph.node("Reshape", flat, self._join(self.graph.ints(0, 0), n_rows, width))

    def _slice(self, values: str, start: str, end: str, *, axis: int) -> str:
        return self.graph.node("Slice", values, start, end, self.graph.ints(axis))

    def _join(self, *numbers: str) -> str:
        return self.graph.node("Concat", *numbers, axis=0)

    def _integer(self, value: int) -> str:
        return self.graph.constant(f"int.{value}", np.array(value, np.int64))
