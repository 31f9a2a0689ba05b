"""The ONNX graph of a GPT classifier, written node by node with onnxruntime's fused operators.

Both bodies (layer norms after, as in GPT, or before, as in GPT-2), full and memory-compressed attention, one order of
a pair or both. Only the extract token's state is classified, so the last layer computes that position alone.
"""

from typing import cast

import numpy as np
import onnx
from onnx import TensorProto
from torch import nn
from transformers import PreTrainedConfig

from model.architectures.gpt import GptClassifier
from model.architectures.tdmca import CompressedAttention, LocalAttention
from model.errors import BadInput
from training.onnx_builder import GPT_ACTIVATIONS, OPENAI_ACTIVATIONS, GraphBuilder, Precision
from training.onnx_file import CONTRIB

_HIDDEN = float(np.finfo(np.float32).min) / 2  # added to the score of a key that is not seen; scores may be added to it


def build(
    classifier: GptClassifier, *, precision: Precision = Precision.FP32, similarity: bool = False
) -> onnx.ModelProto:
    """The model: (input_ids, attention_mask[, swapped_ids]) int64 (batch, length) → logits (batch, n_labels).

    `similarity`: the tokenizer gives pairs in both orders, the other one as `swapped_ids`.
    """
    return _GptGraph(classifier, precision=precision, similarity=similarity).model()


def activation_name(config: PreTrainedConfig) -> str:
    """The activation of a decoder, as transformers' other models call it.

    Raises:
        BadInput: it can't be exported.
    """
    is_openai = config.model_type == "openai-gpt"
    name = str(config.afn if is_openai else config.activation_function)
    name = OPENAI_ACTIVATIONS.get(name, name) if is_openai else name
    if name not in GPT_ACTIVATIONS:
        raise BadInput(f"config.json: the activation {name} can't be exported; only {', '.join(GPT_ACTIVATIONS)} can")
    return name


class _GptGraph(GraphBuilder):
    """The graph of one classifier, from its embeddings to its logits."""

    def __init__(self, classifier: GptClassifier, *, precision: Precision, similarity: bool) -> None:
        super().__init__(classifier, precision=precision)
        config = classifier.encoder.config
        self.inputs = ["input_ids", "attention_mask", *(["swapped_ids"] if similarity else [])]
        self.similarity = similarity
        self.norm_first = config.model_type == "gpt2"
        self.tables = ("wte", "wpe") if self.norm_first else ("tokens_embed", "positions_embed")
        self.attentions = [cast(nn.Module, layer.attn) for layer in cast(nn.ModuleList, classifier.encoder.h)]
        self.activation_name = activation_name(config)
        self.hidden_size, self.n_heads = int(config.hidden_size), int(config.num_attention_heads)
        self.epsilon = float(config.layer_norm_epsilon)

    def model(self) -> onnx.ModelProto:
        """The whole graph."""
        ids, mask = "input_ids", "attention_mask"
        if self.similarity:  # both orders in one batch
            ids, mask = self.node("Concat", ids, "swapped_ids", axis=0), self.node("Concat", mask, mask, axis=0)
        self.batch, self.length = (self.node("Shape", ids, start=axis, end=axis + 1) for axis in (0, 1))
        # (batch, 1): positions of the extract tokens
        self.last = self.node("Sub", self.node("ReduceSum", mask, self.ints(1), keepdims=1), self.ints(1))
        hidden = self.embeddings(ids)
        for number in range(len(self.attentions)):
            hidden = self.layer(number, hidden, extract_only=number == len(self.attentions) - 1)
        extracted = self.node("Squeeze", hidden, self.ints(1))
        if self.norm_first:
            extracted = self.normalised(extracted, "encoder.ln_f")
        if self.similarity:
            one, other = (f"{extracted}.{order}" for order in ("given", "swapped"))
            self.nodes.append(onnx.helper.make_node("Split", [extracted], [one, other], axis=0, num_outputs=2))
            extracted = self.node("Add", one, other)
        self.head(extracted)
        return self.finish(
            inputs=dict.fromkeys(self.inputs, TensorProto.INT64), n_labels=len(self.weights["head.bias"])
        )

    def embeddings(self, ids: str) -> str:
        """Token and position embeddings, summed: (batch, length, hidden_size)."""
        words, positions = (f"encoder.{table}.weight" for table in self.tables)
        table = self.node("Slice", self.weight(positions), self.ints(0), self.length, self.ints(0))
        return self.node("Add", self.rows(words, ids), table)

    def layer(self, number: int, hidden: str, *, extract_only: bool) -> str:
        """One layer: (batch, length, hidden_size) to the same, or to the extract token's (batch, 1, hidden_size)."""
        name = f"encoder.h.{number}"
        read = self.normalised(hidden, f"{name}.ln_1") if self.norm_first else hidden
        update = self.attend_last(number, read) if extract_only else self.attend(number, read)
        hidden = self.node("Add", self.extract(hidden) if extract_only else hidden, update)
        if self.norm_first:
            return self.node("Add", hidden, self.feed_forward(name, self.normalised(hidden, f"{name}.ln_2")))
        hidden = self.normalised(hidden, f"{name}.ln_1")
        return self.normalised(self.node("Add", hidden, self.feed_forward(name, hidden)), f"{name}.ln_2")

    def normalised(self, hidden: str, name: str) -> str:
        """The layer normalisation `name`."""
        return self.norm(hidden, name, epsilon=self.epsilon)

    def feed_forward(self, name: str, hidden: str) -> str:
        """What the two linear layers add: (…, hidden_size) to the same."""
        inner = self.transposed(hidden, f"{name}.mlp.c_fc")
        if self.activation_name == "silu":
            inner = self.node("Mul", inner, self.node("Sigmoid", inner))
        else:
            inner = self.activation(inner, self.activation_name)
        return self.transposed(inner, f"{name}.mlp.c_proj")

    def attend(self, number: int, hidden: str) -> str:
        """What attention adds to every position: (batch, length, hidden_size)."""
        name, attention = f"encoder.h.{number}.attn", self.attentions[number]
        joined = self.transposed(hidden, f"{name}.c_attn")
        if isinstance(attention, LocalAttention):
            mixed = self.local(number, joined, attention.block_length)
        elif isinstance(attention, CompressedAttention):
            query, key, value = self.split(joined, 3)
            key, value = (self.compress(f"{name}.compress_{of}", part) for of, part in (("key", key), ("value", value)))
            every = self.node("Unsqueeze", self.positions(self.length), self.ints(0, 2))  # (1, length, 1)
            mixed = self.mix(number, query, key, value, seen=self.sees_memory(every, attention.compression))
        else:
            mixed = self.mix(number, *self.split(joined, 3))
        return self.transposed(mixed, f"{name}.c_proj")

    def attend_last(self, number: int, hidden: str) -> str:
        """What attention adds to the extract tokens: (batch, 1, hidden_size)."""
        name, attention = f"encoder.h.{number}.attn", self.attentions[number]
        query = self.transposed(self.extract(hidden), f"{name}.c_attn", columns=slice(self.hidden_size))
        key, value = self.split(self.transposed(hidden, f"{name}.c_attn", columns=slice(self.hidden_size, None)), 2)
        last = self.node("Unsqueeze", self.last, self.ints(2))  # (batch, 1, 1)
        if isinstance(attention, CompressedAttention):
            key, value = (self.compress(f"{name}.compress_{of}", part) for of, part in (("key", key), ("value", value)))
            seen = self.sees_memory(last, attention.compression)
        else:
            positions = self.positions(self.length)
            seen = self.node("LessOrEqual", positions, last)
            if isinstance(attention, LocalAttention):
                start = self.node("Sub", last, self.node("Mod", last, self.ints(attention.block_length)))
                seen = self.node("And", seen, self.node("GreaterOrEqual", positions, start))
        return self.transposed(self.mix(number, query, key, value, seen=seen), f"{name}.c_proj")

    def mix(self, number: int, query: str, key: str, value: str, *, seen: str | None = None) -> str:
        """Multi-head attention; `seen` (batch or 1, n_queries, n_keys), without it each position and those before."""
        attention = self.attentions[number]
        is_ours = isinstance(attention, LocalAttention | CompressedAttention)
        scale = attention.scale if is_ours else getattr(attention, "scaling", None)  # None: 1/√head_size
        masks = []
        if seen is not None:
            bias = self.node("Where", seen, self.number(0.0), self.number(_HIDDEN))
            masks = ["", "", self.node("Unsqueeze", bias, self.ints(1))]
        return self.node(
            "MultiHeadAttention", query, key, value, *masks,
            num_heads=self.n_heads, scale=scale or 0.0, unidirectional=int(seen is None), domain=CONTRIB,
        )  # fmt: skip

    def local(self, number: int, joined: str, block_length: int) -> str:
        """Attention inside blocks: joined (batch, length, 3 * hidden_size) → (batch, length, hidden_size)."""
        block = self.node("Min", self.length, self.ints(block_length))
        blocks = self.node("Concat", self.ints(-1), block, self.ints(3 * self.hidden_size), axis=0)
        joined = self.node("Reshape", self.pad(joined, block), blocks)
        mixed = self.mix(number, *self.split(joined, 3))
        whole = self.node("Concat", self.batch, self.ints(-1), self.ints(self.hidden_size), axis=0)
        return self.node("Slice", self.node("Reshape", mixed, whole), self.ints(0), self.length, self.ints(1))

    def compress(self, name: str, memory: str) -> str:
        """(batch, length, hidden_size) → the first position and the convolution `name`, a linear map of its windows."""
        weight = self.weights[f"{name}.weight"]  # (out, in, compression)
        n_out, n_in, compression = weight.shape
        padded = self.pad(memory, self.ints(compression))
        windows = self.node("Reshape", padded, self.ints(0, -1, compression * n_in))
        flat = np.ascontiguousarray(weight.transpose(2, 1, 0)).reshape(-1, n_out)
        compressed = self.linear(windows, name, flat, self.weights[f"{name}.bias"])
        first = self.node("Slice", memory, self.ints(0), self.ints(1), self.ints(1))
        return self.node("Concat", first, compressed, axis=1)

    def sees_memory(self, positions: str, compression: int) -> str:
        """Which of `positions` (…, 1) see which keys of a compressed memory, see `tdmca.visible_memory`."""
        # ⌈length / compression⌉ mixtures and the first position's own key
        more = self.node("Div", self.node("Add", self.length, self.ints(compression - 1)), self.ints(compression))
        keys = self.positions(self.node("Add", more, self.ints(1)))
        last_covered = self.node("Sub", self.node("Mul", keys, self.ints(compression)), self.ints(1))
        return self.node("GreaterOrEqual", positions, last_covered)

    def pad(self, states: str, multiple: str) -> str:
        """Zeros behind the text, up to a multiple: (batch, length, width) → (batch, more, width)."""
        missing = self.node("Mod", self.node("Neg", self.length), multiple)
        pads = self.node("Concat", self.ints(0, 0, 0, 0), missing, self.ints(0), axis=0)
        return self.node("Pad", states, pads)

    def positions(self, count: str) -> str:
        """0, 1, … below the one number in `count`."""
        zero, one = (self.constant(f"int.{value}", np.array(value, np.int64)) for value in (0, 1))
        return self.node("Range", zero, self.node("Squeeze", count), one)

    def extract(self, states: str) -> str:
        """The extract tokens' states: (batch, length, hidden_size) → (batch, 1, hidden_size)."""
        return self.node("Unsqueeze", self.node("GatherND", states, self.last, batch_dims=1), self.ints(1))

    def transposed(self, hidden: str, name: str, *, columns: slice = slice(None)) -> str:
        """A linear layer whose weight lies as (n_in, n_out), as GPT's do; only `columns` of its output."""
        weight, bias = self.weights[f"{name}.weight"][:, columns], self.weights[f"{name}.bias"][columns]
        part = "" if columns == slice(None) else f".from{columns.start or 0}"
        return self.linear(hidden, name + part, weight, bias)
