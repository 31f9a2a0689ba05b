"""What all our ONNX models have in common: operator sets, file version, one file, checked before it is written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 20
CONTRIB = "com.microsoft"  # onnxruntime's own operators
IR_VERSION = 10  # what every onnxruntime since 1.18 reads


def make_model(
    nodes: Sequence[onnx.NodeProto],
    *,
    inputs: Mapping[str, int],
    n_labels: int,
    constants: Mapping[str, NDArray[np.generic]],
    depths: Mapping[str, int] = MappingProxyType({}),
) -> onnx.ModelProto:
    """A model of `inputs` (name → tensor type) and one output, `logits` (batch, n_labels).

    Inputs are (batch, length); one that `depths` names is (batch, length, its depth).
    """
    shapes: dict[str, list[str | int | None]] = {
        name: ["batch", "length", *([depths[name]] if name in depths else [])] for name in inputs
    }
    graph = helper.make_graph(
        list(nodes),
        "classifier",
        [helper.make_tensor_value_info(name, kind, shapes[name]) for name, kind in inputs.items()],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", n_labels])],
        [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="wenlei")


def save(model: onnx.ModelProto, path: Path) -> None:
    """Check the graph and write it as one file."""
    onnx.checker.check_model(model)
    onnx.save_model(model, path)
