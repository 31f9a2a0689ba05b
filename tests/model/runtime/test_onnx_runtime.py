import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.bundle import Bundle
from model.errors import BadBundle, BadText, MissingExtra, RuntimeUnavailable
from model.runtime.base import batches_by_length, classify
from model.runtime.onnx import PROVIDERS, OnnxClassifier, open_session
from model.types import Prediction, Text
from tests.bundles import CHARACTERS, tiny_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture(scope="module")
def classifier(bundle: Bundle) -> OnnxClassifier:
    return OnnxClassifier.load(bundle)


def scores(prediction: Prediction) -> dict[str, float]:
    return dict(prediction.labels)


texts = st.lists(st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=90), min_size=1, max_size=30)


@given(texts=texts, batch_tokens=st.integers(1, 300))
def test_a_text_gets_the_same_scores_alone_and_in_any_batch(
    classifier: OnnxClassifier, texts: list[str], batch_tokens: int
) -> None:
    inputs = [Text(text) for text in texts]
    together = classify(classifier, inputs, top_k=2, batch_tokens=batch_tokens)
    assert len(together) == len(texts)
    for text, prediction in zip(inputs, together, strict=True):
        (alone,) = classify(classifier, [text], top_k=2)
        assert scores(prediction) == pytest.approx(scores(alone), abs=1e-5)
        assert prediction.truncated == alone.truncated == (len(text.text) + 2 > 64)


@given(lengths=st.lists(st.integers(1, 512), max_size=200), batch_tokens=st.integers(1, 5000))
def test_batches_hold_every_row_once_and_no_more_tokens_than_allowed(lengths: list[int], batch_tokens: int) -> None:
    batches = batches_by_length(lengths, batch_tokens=batch_tokens)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= batch_tokens


def test_the_second_text_of_a_pair_changes_the_answer(classifier: OnnxClassifier) -> None:
    alone, pair = classify(classifier, [Text("好"), Text("好", "吵闹")], top_k=2)
    assert scores(pair) != pytest.approx(scores(alone), abs=1e-3)


def test_texts_are_normalised_as_the_bundle_says(classifier: OnnxClassifier) -> None:
    plain, messy = classify(classifier, [Text("好 坏"), Text("  好\u200b<br>坏 \n")], top_k=2)
    assert scores(messy) == scores(plain)


def test_only_the_inputs_that_the_model_takes_are_fed(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", inputs=("input_ids", "attention_mask", "token_type_ids"))
    assert len(classify(OnnxClassifier.load(bundle), [Text("好")])) == 1


def test_a_model_that_asks_for_what_the_tokenizer_lacks_is_refused(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", inputs=("input_ids", "attention_mask", "position_ids"))
    with pytest.raises(BadBundle, match="position_ids"):
        OnnxClassifier.load(bundle)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (Text(" "), r"texts\[1\]: the text is empty"),
        (Text("\u200b\ufeff"), r"texts\[1\]: the text is empty"),
        (Text("好" * 100_000), r"texts\[1\]: the text has 100,000 characters"),
        (Text("\ud800"), r"texts\[1\]: character 1 is half"),
        (Text("好", ""), r"texts\[1\]\.text_pair: the text is empty"),
    ],
)
def test_a_text_that_can_not_be_classified_is_named_by_its_place(
    classifier: OnnxClassifier, text: Text, message: str
) -> None:
    with pytest.raises(BadText, match=message):
        classifier.encode([Text("好"), text])


def test_name_version_and_settings_come_from_the_bundle(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", name="情感", temperature=2.0, abstain_below=0.75)
    classifier = OnnxClassifier.load(bundle)
    assert (classifier.name, classifier.version) == ("情感", bundle.version)
    assert (classifier.decoder.temperature, classifier.decoder.abstain_below) == (2.0, 0.75)


def test_a_precision_that_was_not_exported_is_refused(bundle: Bundle) -> None:
    with pytest.raises(BadBundle, match="no int8 model, only fp32"):
        OnnxClassifier.load(bundle, precision="int8")


def test_a_model_that_is_no_onnx_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fp32.onnx").write_bytes(b"not a model")
    with pytest.raises(BadBundle, match=r"fp32\.onnx can't be opened by onnxruntime"):
        open_session(tmp_path / "fp32.onnx", device="cpu", threads=1)


def test_cuda_is_refused_where_this_onnxruntime_lacks_it(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(RuntimeUnavailable, match=r"CUDA was asked for.*wenlei\[gpu\].*--device cpu"):
        OnnxClassifier.load(bundle, device="cuda")


def test_cuda_is_refused_where_the_session_falls_back_to_the_cpu(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What onnxruntime-gpu does on a machine without CUDA: it names the provider, and opens another.
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(PROVIDERS["cuda"]))
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    real = onnxruntime.InferenceSession
    monkeypatch.setattr(
        onnxruntime,
        "InferenceSession",
        lambda path, options, providers: real(path, options, providers=providers[1:]),
    )
    with pytest.raises(RuntimeUnavailable, match="could only open CPUExecutionProvider"):
        OnnxClassifier.load(bundle, device="cuda")


def test_two_wheels_of_onnxruntime_are_refused(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda name: "1.0")
    with pytest.raises(RuntimeUnavailable, match="onnxruntime and onnxruntime-gpu are both installed"):
        OnnxClassifier.load(bundle)


def test_a_missing_onnxruntime_names_its_extra(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"pip install 'wenlei\[cpu\]'"):
        OnnxClassifier.load(bundle)


def test_importing_the_runtime_loads_neither_torch_nor_an_engine() -> None:
    code = "import sys, model.runtime.onnx; print({'torch', 'transformers', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_logits_are_float32_rows(classifier: OnnxClassifier) -> None:
    logits = classifier.logits(classifier.encode([Text("好"), Text("不好")]))
    assert (logits.shape, logits.dtype) == ((2, 2), np.float32)
