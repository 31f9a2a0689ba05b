from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import GPT2Config, OpenAIGPTConfig

from model.architectures.gpt import GptClassifier, build_decoder
from model.bundle import Manifest, seal_bundle
from model.errors import BadInput
from model.files import staging_folder
from model.runtime.onnx import OnnxClassifier
from model.text import Normaliser
from model.tokenization import gpt_frame
from model.tokenization.base import collate
from model.types import Task, Taxonomy, Text
from tests.bundles import character_tokenizer
from tests.parity import SHAPES, assert_graph_answers, random_inputs, spread_weights
from training import onnx_file, onnx_gpt
from training.onnx_builder import Precision

N_TOKENS = 40
FULL: dict[str, Any] = {"attention": "full"}
COMPRESSED: dict[str, Any] = {"attention": "memory-compressed", "block_length": 8, "compression": 3}
BODIES = {"openai-gpt": OpenAIGPTConfig, "gpt2": GPT2Config}
every_body = pytest.mark.parametrize("body", BODIES)
every_attention = pytest.mark.parametrize("attention", [FULL, COMPRESSED], ids=["full", "compressed"])


def tiny_classifier(body: str, *, n_layer: int = 3, std: float = 0.3, **settings: Any) -> GptClassifier:
    config = BODIES[body](
        n_positions=64, n_embd=16, n_layer=n_layer, n_head=2, bos_token_id=None, eos_token_id=None,
        **{"vocab_size": N_TOKENS, **settings},
    )  # fmt: skip
    classifier = GptClassifier(build_decoder(config), n_outputs=3).eval()
    spread_weights(classifier, std=std)
    return classifier


def batches(*, similarity: bool) -> list[dict[str, np.ndarray]]:
    inputs = []
    for batch, length in (*SHAPES, (2, 1), (1, 8)):
        arrays = random_inputs(batch, length, n_tokens=N_TOKENS)
        if similarity:
            arrays["swapped_ids"] = random_inputs(batch, length, n_tokens=N_TOKENS, seed=1)["input_ids"]
        inputs.append(arrays)
    return inputs


@every_body
@every_attention
@pytest.mark.parametrize("similarity", [False, True])
@pytest.mark.parametrize("n_layer", [2, 3])  # the last layer is of the one kind, then of the other
def test_the_graph_answers_as_torch_does(
    body: str, attention: dict[str, Any], similarity: bool, n_layer: int, tmp_path: Path
) -> None:
    classifier = tiny_classifier(body, n_layer=n_layer, **attention)
    graph = onnx_gpt.build(classifier, similarity=similarity)
    assert_graph_answers(graph, classifier, batches(similarity=similarity), folder=tmp_path)


@pytest.mark.parametrize(
    ("body", "settings"),
    [
        *(("openai-gpt", {"afn": name}) for name in ("relu", "silu", "swish")),
        *(("gpt2", {"activation_function": name}) for name in ("gelu", "relu", "silu")),
        ("gpt2", {"scale_attn_weights": False}),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True, **COMPRESSED}),
        ("gpt2", {"n_inner": 24}),
    ],
)
def test_every_setting_of_a_decoder_is_in_the_graph(body: str, settings: dict[str, Any], tmp_path: Path) -> None:
    classifier = tiny_classifier(body, **settings)
    assert_graph_answers(onnx_gpt.build(classifier), classifier, batches(similarity=False), folder=tmp_path)


@every_body
@every_attention
def test_in_int8_the_graph_answers_nearly_so(body: str, attention: dict[str, Any], tmp_path: Path) -> None:
    classifier = tiny_classifier(body, std=0.15, **attention)
    onnx_file.save(onnx_gpt.build(classifier, precision=Precision.INT8, similarity=True), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    expected, actual = [], []
    for inputs in batches(similarity=True):
        with torch.inference_mode():
            expected.append(classifier(**{name: torch.from_numpy(array) for name, array in inputs.items()}).numpy())
        actual.append(session.run(None, inputs)[0])
    difference = np.concatenate(actual) - np.concatenate(expected)
    assert 0 < np.sqrt((difference**2).mean()) < 0.2 * np.concatenate(expected).std()


def test_an_activation_that_has_no_operator_is_refused() -> None:
    with pytest.raises(BadInput, match="the activation quick_gelu can't be exported; only gelu, gelu_new"):
        onnx_gpt.build(tiny_classifier("gpt2", activation_function="quick_gelu"))


def test_a_bundle_for_similarity_is_served_in_both_orders(tmp_path: Path) -> None:
    with staging_folder(tmp_path / "bundle") as staging:
        character_tokenizer().save(str(staging / "tokenizer.json"))
        tokenizer = gpt_frame.load(staging, max_length=12, similarity=True)
        tokenizer.save(staging)
        classifier = tiny_classifier("openai-gpt", vocab_size=tokenizer.vocabulary_size)
        (staging / "onnx").mkdir()
        onnx_file.save(onnx_gpt.build(classifier, similarity=True), staging / "onnx" / "model.fp32.onnx")
        (staging / "README.md").write_text("# tiny\n")
        manifest = Manifest(
            name="tiny",
            arch="gpt",
            taxonomy=Taxonomy(Task.SINGLE, ("同", "近", "异")),
            normaliser=Normaliser(),
            max_length=12,
            pooling=None,
            snapshot="0" * 32,
            run={},
            onnx={"fp32": "onnx/model.fp32.onnx"},
        )
        bundle = seal_bundle(staging, manifest, tmp_path / "bundle")
    served = OnnxClassifier.load(bundle)
    pairs = [Text("房间干净", "酒店好"), Text("好", "早餐便宜，服务员态度好。")]
    logits = served.logits(served.encode(pairs))
    swapped = served.logits(served.encode([Text(pair, text) for text, pair in pairs]))
    np.testing.assert_allclose(swapped, logits, atol=1e-5)
    inputs = collate(tokenizer.encode(pairs), tokenizer.padding)
    with torch.inference_mode():
        expected = classifier(**{name: torch.from_numpy(array) for name, array in inputs.items()})
    np.testing.assert_allclose(logits, expected.numpy(), atol=1e-5)
