import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from model.architectures.bert import BertClassifier, Pooling
from model.files import read_json, write_json
from training import onnx_bert, onnx_file
from training.onnx_bert import Precision


def run_both(
    classifier: BertClassifier, precision: Precision, folder: Path, ids: np.ndarray, mask: np.ndarray, types: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Logits from torch and from onnxruntime."""
    path = folder / "model.onnx"
    with_types = bool(types.any())
    onnx_file.save(onnx_bert.build(classifier, precision=precision, with_types=with_types), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    inputs = {"input_ids": ids, "attention_mask": mask, **({"token_type_ids": types} if with_types else {})}
    with torch.inference_mode():
        expected = classifier(**{name: torch.from_numpy(value) for name, value in inputs.items()}).numpy()
    return expected, session.run(None, inputs)[0]


@pytest.mark.parametrize(("batch", "length"), [(1, 2), (1, 33), (3, 7), (5, 64)])
@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("with_types", [True, False])
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "relu"])
def test_the_graph_answers_as_torch_does(
    activation: str, with_types: bool, pooling: Pooling, batch: int, length: int, tiny_bert: Path, tmp_path: Path
) -> None:
    torch.manual_seed(0)
    shutil.copytree(tiny_bert, tmp_path / "start")
    config = tmp_path / "start" / "config.json"
    write_json(config, {**read_json(config), "hidden_act": activation})
    classifier = BertClassifier.start(tmp_path / "start", n_labels=3, pooling=pooling).eval()
    for weight in classifier.parameters():
        torch.nn.init.normal_(weight, std=0.3)  # large enough that every activation shows its shape
    random = np.random.default_rng(length)
    ids = random.integers(4, 40, (batch, length))
    mask = (np.arange(length) < random.integers(1, length + 1, (batch, 1))).astype(np.int64)
    types = np.zeros_like(ids)
    if with_types:
        types[:, length // 2 :] = 1
    expected, actual = run_both(classifier, Precision.FP32, tmp_path, ids, mask, types)
    np.testing.assert_allclose(actual, expected, atol=2e-6)
    expected, actual = run_both(classifier, Precision.INT8, tmp_path, ids, mask, types)
    np.testing.assert_allclose(actual, expected, atol=0.05 * np.abs(expected).max() + 0.01)


def test_quantised_weights_are_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(0).normal(size=(17, 5)).astype(np.float32)
    weight[:, 2] = 0
    values, scales = onnx_bert.quantise(weight, axis=0)
    assert scales.shape == (5,)
    assert (np.abs(values * scales - weight) <= scales / 2 + 1e-7).all()
    values, scales = onnx_bert.quantise(weight, axis=1)
    assert scales.shape == (17, 1)
    assert (np.abs(values * scales - weight) <= scales / 2 + 1e-7).all()
