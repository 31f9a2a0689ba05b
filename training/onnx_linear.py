"""The ONNX graph of the linear baseline: gather the rows of a text's n-grams, weigh, sum, add the bias."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from model.architectures.linear import LinearClassifier
from training.onnx_bert import MAX_IR_VERSION, OPSET


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
    constants = {"weight": weight, "bias": bias, "first": np.array([1], np.int64)}
    graph = helper.make_graph(
        nodes,
        "linear_classifier",
        [
            helper.make_tensor_value_info("ngram_ids", TensorProto.INT64, ["batch", "n"]),
            helper.make_tensor_value_info("ngram_weights", TensorProto.FLOAT, ["batch", "n"]),
        ],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(bias)])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=MAX_IR_VERSION, producer_name="wenlei")
