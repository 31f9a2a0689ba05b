"""The ONNX graph of the linear baseline: gather the rows of a text's n-grams, weigh, sum, add the bias."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from model.architectures.linear import LinearClassifier
from training.onnx_file import make_model


def build(classifier: LinearClassifier) -> onnx.ModelProto:
    """The model: ngram_ids int64, ngram_weights float32 (batch, n) → logits (batch, n_labels)."""
    weight, bias = classifier.weight.detach().numpy(), classifier.bias.detach().numpy()
    nodes = [
        helper.make_node("Gather", ["weight", "ngram_ids"], ["rows"]),
        helper.make_node("Unsqueeze", ["ngram_weights", "first"], ["row"]),
        helper.make_node("MatMul", ["row", "rows"], ["sums"]),
        helper.make_node("Squeeze", ["sums", "first"], ["sum"]),
        helper.make_node("Add", ["sum", "bias"], ["logits"]),
    ]
    return make_model(
        nodes,
        inputs={"ngram_ids": TensorProto.INT64, "ngram_weights": TensorProto.FLOAT},
        n_labels=len(bias),
        constants={"weight": weight, "bias": bias, "first": np.array([1], np.int64)},
    )
