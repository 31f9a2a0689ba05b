from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from checkpoints import ENCODERS, N_TOKENS, published, save_as_is
from onnx import TensorProto
from parity import SHAPES, Inputs, assert_graph_answers, random_inputs, spread_weights, to_tensors

from model.architectures.bert import BertClassifier, Pooling
from model.architectures.foreign_weights import load_encoder
from training import onnx_bert, onnx_builder, onnx_file
from training.onnx_builder import Precision


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A start of every family, in a folder of its model type."""
    folder = tmp_path_factory.mktemp("starts")
    for model_type in ENCODERS:
        save_as_is(published(model_type), folder / model_type)
    return folder


def classifier_from(start: Path, pooling: Pooling, **settings: str) -> BertClassifier:
    encoder = load_encoder(start, **settings)
    classifier = BertClassifier(encoder, n_labels=3, pooling=pooling)
    spread_weights(classifier)  # large enough that every activation shows its shape
    return classifier.eval()


def batches(*, with_types: bool) -> list[Inputs]:
    return [random_inputs(*shape, n_tokens=N_TOKENS, with_types=with_types) for shape in SHAPES]


@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("model_type", ENCODERS)
def test_the_graph_answers_as_torch_does(model_type: str, pooling: Pooling, starts: Path, tmp_path: Path) -> None:
    classifier = classifier_from(starts / model_type, pooling)
    graph = onnx_bert.build(classifier, precision=Precision.FP32, with_types=True)
    assert_graph_answers(graph, classifier, batches(with_types=True), folder=tmp_path, atol=5e-6)


@pytest.mark.parametrize("model_type", ENCODERS)
def test_without_token_types_all_are_of_the_first(model_type: str, starts: Path, tmp_path: Path) -> None:
    classifier = classifier_from(starts / model_type, Pooling.MEAN)
    graph = onnx_bert.build(classifier, precision=Precision.FP32, with_types=False)
    assert_graph_answers(graph, classifier, batches(with_types=False), folder=tmp_path, atol=5e-6)


@pytest.mark.parametrize("activation", ["gelu_new", "gelu_pytorch_tanh", "relu"])
def test_every_activation_answers_as_torch_s(activation: str, starts: Path, tmp_path: Path) -> None:
    classifier = classifier_from(starts / "bert", Pooling.CLS, hidden_act=activation)
    graph = onnx_bert.build(classifier, precision=Precision.FP32, with_types=False)
    assert_graph_answers(graph, classifier, batches(with_types=False), folder=tmp_path, atol=5e-6)


@pytest.mark.parametrize(
    ("model_type", "pooling"), [*((name, Pooling.MEAN) for name in ENCODERS), ("bert", "cls"), ("nezha", "bilstm")]
)
def test_int8_stays_near(model_type: str, pooling: str, starts: Path, tmp_path: Path) -> None:
    classifier = classifier_from(starts / model_type, Pooling(pooling))
    spread_weights(classifier, std=0.15)
    for name, weight in classifier.named_parameters():
        if name.endswith("LayerNorm.weight"):
            torch.nn.init.ones_(weight)
    graph = onnx_bert.build(classifier, precision=Precision.INT8, with_types=True)
    assert sum(constant.data_type == TensorProto.INT8 for constant in graph.graph.initializer) > 8
    onnx_file.save(graph, tmp_path / "int8.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "int8.onnx", providers=["CPUExecutionProvider"])
    inputs = random_inputs(64, 20, n_tokens=N_TOKENS, with_types=True)
    with torch.inference_mode():
        expected = classifier(**to_tensors(inputs)).numpy()
    (actual,) = session.run(None, dict(inputs))
    error = np.sqrt(np.square(actual - expected).mean())
    assert error < 0.3 * (expected - expected.mean(0)).std()  # weights at random; what was trained bears more


@pytest.mark.parametrize("pooling", [Pooling.MEAN, Pooling.CLS])
def test_a_nezha_reads_one_token_and_texts_longer_than_its_config_names(
    pooling: Pooling, starts: Path, tmp_path: Path
) -> None:
    classifier = classifier_from(starts / "nezha", pooling)
    graph = onnx_bert.build(classifier, precision=Precision.FP32, with_types=False)
    inputs = [random_inputs(2, length, n_tokens=N_TOKENS) for length in (1, 3, 150)]
    assert_graph_answers(graph, classifier, inputs, folder=tmp_path, atol=5e-6)


def test_quantised_weights_are_off_by_half_a_step_at_most() -> None:
    weight = np.random.default_rng(0).normal(size=(17, 5)).astype(np.float32)
    weight[:, 2] = 0
    values, scales = onnx_builder.quantise(weight, axis=0)
    assert scales.shape == (5,)
    assert (np.abs(values * scales - weight) <= scales / 2 + 1e-7).all()
    values, scales = onnx_builder.quantise(weight, axis=1)
    assert scales.shape == (17, 1)
    assert (np.abs(values * scales - weight) <= scales / 2 + 1e-7).all()
