"""Attention with functional relative positions (NEZHA, Wei 2019) as ONNX nodes: no fused operator knows them."""

import numpy as np
from onnx import TensorProto

from model.architectures.nezha import NezhaConfig, sinusoids
from training.onnx_builder import GraphBuilder


class RelativeAttention:
    """What all layers share, the vectors a_ij and the mask, computed once; then the attention of each layer."""

    def __init__(self, graph: GraphBuilder, config: NezhaConfig) -> None:
        self.graph = graph
        self.n_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.relations = self._relations(config.max_relative_position)
        mask = graph.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        hidden = graph.node("Sub", graph.number(1.0), graph.node("Unsqueeze", mask, graph.ints(1, 2)))
        self.bias = graph.node("Mul", hidden, graph.number(float(np.finfo(np.float32).min)))

    def _relations(self, furthest: int) -> str:
        """The vector of the distance j - i for every two positions: (length, length, head_size)."""
        graph = self.graph
        table = sinusoids(2 * furthest + 1, self.head_size).numpy()
        length = graph.node("Squeeze", graph.node("Shape", "input_ids", start=1, end=2))
        zero, one = (graph.constant(f"int.{value}", np.array(value, np.int64)) for value in (0, 1))
        position = graph.node("Range", zero, length, one)
        row, column = (graph.node("Unsqueeze", position, graph.ints(axis)) for axis in (0, 1))
        limits = [graph.constant(f"int.{value}", np.array(value, np.int64)) for value in (-furthest, furthest)]
        distance = graph.node("Clip", graph.node("Sub", row, column), *limits)
        return graph.node("Gather", graph.constant("distances", table), graph.node("Add", distance, limits[1]))

    def __call__(self, query: str, key: str, value: str, *, first_only: bool) -> str:
        """(batch, n_queries, hidden_size), the same of every key and value → (batch, n_queries, hidden_size).

        `first_only`: the query is that of the first position alone.
        """
        graph = self.graph
        relations = self.relations
        if first_only:
            relations = graph.node("Slice", relations, graph.ints(0), graph.ints(1), graph.ints(0))
        query, key, value = (self._heads(part) for part in (query, key, value))
        # q_i · (k_j + a_ij)
        content = graph.node("Einsum", query, key, equation="bihd,bjhd->bhij")
        distance = graph.node("Einsum", query, relations, equation="bihd,ijd->bhij")
        scaled = graph.node("Mul", graph.node("Add", content, distance), graph.number(self.head_size**-0.5))
        weights = graph.node("Softmax", graph.node("Add", scaled, self.bias), axis=-1)
        # Σ_j weight_ij (v_j + a_ij)
        content = graph.node("Einsum", weights, value, equation="bhij,bjhd->bihd")
        distance = graph.node("Einsum", weights, relations, equation="bhij,ijd->bihd")
        mixed = graph.node("Add", content, distance)
        return graph.node("Reshape", mixed, graph.ints(0, 0, self.n_heads * self.head_size))

    def _heads(self, projected: str) -> str:
        """(batch, length, hidden_size) → (batch, length, heads, head_size)."""
        return self.graph.node("Reshape", projected, self.graph.ints(0, 0, self.n_heads, self.head_size))
