"""The ONNX graphs of the light networks; all of them in float32, for they are small."""

import onnx
from onnx import TensorProto

from model.architectures.light import WIDTHS, FastTextClassifier, LightClassifier, TextCnnClassifier
from training.onnx_bilstm import bilstm
from training.onnx_builder import GraphBuilder

TOKENS = {"input_ids": TensorProto.INT64, "attention_mask": TensorProto.INT64}
NGRAMS = {"ngram_ids": TensorProto.INT64, "ngram_weights": TensorProto.FLOAT}


def build(classifier: LightClassifier) -> onnx.ModelProto:
    """The model: the inputs of the network → logits (batch, n_labels)."""
    graph = GraphBuilder(classifier)
    n_labels = len(graph.weights["head.bias"])
    if isinstance(classifier, FastTextClassifier):
        row = graph.node("Unsqueeze", "ngram_weights", graph.ints(1))
        total = graph.node("MatMul", row, graph.rows("embeddings.weight", "ngram_ids"))
        graph.head(graph.node("Squeeze", total, graph.ints(1)))
        return graph.finish(inputs=NGRAMS, n_labels=n_labels)
    embedded = graph.rows("embeddings.weight", "input_ids")
    if isinstance(classifier, TextCnnClassifier):
        graph.head(_best_places(graph, embedded))
    else:
        graph.head(graph.masked_mean(bilstm(graph, embedded, "lstm"), "attention_mask"))
    return graph.finish(inputs=TOKENS, n_labels=n_labels)


def _best_places(graph: GraphBuilder, embedded: str) -> str:
    """How well the best place of a text fits each filter: (batch, length, width) → (batch, filters of all widths)."""
    real = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=TensorProto.FLOAT), graph.ints(1))
    steps = graph.node("Mul", graph.node("Transpose", embedded, perm=[0, 2, 1]), real)
    found = []
    for number, width in enumerate(WIDTHS):
        weight, bias = (graph.weight(f"convolutions.{number}.{kind}") for kind in ("weight", "bias"))
        its = graph.node("Relu", graph.node("Conv", steps, weight, bias, pads=[0, width - 1]))
        found.append(graph.node("ReduceMax", graph.node("Mul", its, real), graph.ints(2), keepdims=0))
    return graph.node("Concat", *found, axis=1)
