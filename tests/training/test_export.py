from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

import training.export
from model.architectures.bert import BertClassifier
from model.bundle import open_bundle
from model.errors import BadInput, BadSnapshot, ParityFailed
from model.run import Run
from model.runtime.base import classify
from model.runtime.decode import Decoder
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot, write_snapshot
from model.types import Split, Task, Taxonomy, Text
from training.architectures import load_classifier
from training.baselines import LinearOptions, train_linear
from training.device import NumberFormat
from training.evaluate import evaluate_path
from training.export import export_run, same_labels, why_refused
from training.finetune import FinetuneOptions, finetune
from training.loop import Options

PASSED = {
    "samples": 300,
    "same_labels": 300,
    "max_logit_difference": 1e-6,
    "logit_error": 0.01,
    "accuracy_change": 0.0,
}


@pytest.fixture(scope="module")
def run(snapshot: Snapshot, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    loop = Options(epochs=3, batch_size=16, learning_rate=2e-3, head_learning_rate=2e-3, precision=NumberFormat.FP32)
    options = FinetuneOptions(init=str(tiny_bert), max_length=32, loop=loop)
    folder = tmp_path_factory.mktemp("runs")
    return finetune(snapshot, options=options, seed=1, out=folder / "run", cache=folder)


@pytest.fixture(scope="module")
def bundle(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_run(run, out=tmp_path_factory.mktemp("bundles") / "reviews").path


def test_what_was_measured_is_what_runs(run: Run, bundle: Path, snapshot: Snapshot) -> None:
    for precision in ("fp32", "int8"):
        figures = evaluate_path(bundle, snapshot, Split.TEST, precision=precision)
        assert figures["accuracy"] == run.metrics["test"]["accuracy"]
        assert figures == open_bundle(bundle).manifest.metrics[precision]


def test_the_bundle_answers_with_the_labels_of_the_run(run: Run, bundle: Path, snapshot: Snapshot) -> None:
    samples = list(snapshot.samples(Split.TEST))
    served = OnnxClassifier.load(open_bundle(bundle), precision="fp32")
    predictions = classify(served, [Text(sample.text) for sample in samples])
    right = np.mean(
        [prediction.label == sample.labels[0] for prediction, sample in zip(predictions, samples, strict=True)]
    )
    assert right == run.metrics["test"]["accuracy"]


def test_transformers_loads_the_encoder_with_equal_hidden_states(run: Run, bundle: Path) -> None:
    encoder = AutoModel.from_pretrained(bundle, add_pooling_layer=False).eval()
    ours = load_classifier(run)
    assert isinstance(ours, BertClassifier)
    inputs = AutoTokenizer.from_pretrained(bundle)("上次房间干净。", return_tensors="pt")
    with torch.inference_mode():
        theirs = encoder(**inputs).last_hidden_state
        assert torch.allclose(theirs, ours.encoder(**inputs).last_hidden_state, atol=1e-6)


def test_the_card_tells_the_figures_of_the_run(run: Run, bundle: Path) -> None:
    card = (bundle / "README.md").read_text()
    assert f"{100 * run.metrics['test']['accuracy']:.2f}" in card
    assert run.snapshot in card


def test_a_linear_run_exports_the_same_way(snapshot: Snapshot, tmp_path: Path) -> None:
    trained = train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    exported = export_run(trained, out=tmp_path / "bundle")
    assert list(exported.manifest.onnx) == ["fp32"]
    figures = evaluate_path(exported.path, snapshot, Split.TEST)
    assert figures["accuracy"] == trained.metrics["test"]["accuracy"]


def test_a_graph_that_answers_otherwise_is_refused_and_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = training.export.build_graph

    def wrong(*arguments: object) -> onnx.ModelProto:
        model = build(*arguments)  # type: ignore[arg-type]
        bias = next(tensor for tensor in model.graph.initializer if tensor.name == "head.bias")
        bias.CopyFrom(onnx.numpy_helper.from_array(np.array([9.0, -9.0], np.float32), "head.bias"))
        return model

    monkeypatch.setattr(training.export, "build_graph", wrong)
    with pytest.raises(ParityFailed, match=r"the fp32 model is not the one that was trained: .* get another label"):
        export_run(run, out=tmp_path / "bundle")
    assert not any(tmp_path.iterdir())


def test_a_label_that_rounding_decides_tells_no_two_models_apart() -> None:
    flat = Decoder(Taxonomy(Task.SINGLE, ("好评", "差评", "中评")))
    several = Decoder(Taxonomy(Task.MULTI, ("便宜", "干净"), multiple=True), thresholds={"便宜": 0.25, "干净": 0.5})
    level, tipped = np.array([[0.4, 0.4, 0.2]], np.float32), np.array([[0.3, 0.5, 0.2]], np.float32)
    rounded = level + np.array([[-1e-6, 1e-6, 0]], np.float32)
    assert same_labels(level, rounded, flat).all()
    assert not same_labels(level, tipped, flat).any()
    at_it = np.array([[0.25, 0.9], [0.25, 0.9]], np.float32)
    off = at_it + np.array([[-1e-6, 0], [-1e-3, 0]], np.float32)
    assert same_labels(at_it, off, several).tolist() == [True, False]


@pytest.mark.parametrize(
    ("precision", "changes", "reason"),
    [
        ("fp32", {}, None),
        ("fp32", {"same_labels": 299}, "1 of 300 texts get another label"),
        ("fp32", {"max_logit_difference": 0.5}, "a logit differs by 0.5"),
        ("int8", {"same_labels": 290, "max_logit_difference": 0.5, "judged_by": "accuracy"}, None),
        ("int8", {"accuracy_change": -0.0051, "judged_by": "accuracy"}, "accuracy changes by -0.51 points"),
        ("int8", {"accuracy_change": -0.05, "samples": 50, "judged_by": "logits"}, None),
        ("int8", {"logit_error": 0.3, "samples": 50, "judged_by": "logits"}, "50 texts, too few to judge accuracy"),
    ],
)
def test_the_gate(precision: str, changes: dict[str, object], reason: str | None) -> None:
    verdict = why_refused(precision, {**PASSED, "judged_by": "labels", **changes})
    assert verdict is None if reason is None else reason in str(verdict)


def test_few_samples_are_judged_by_logits_and_that_is_said(bundle: Path) -> None:
    parity = open_bundle(bundle).manifest.parity
    assert parity["int8"]["samples"] < 200
    assert parity["int8"]["judged_by"] == "logits"
    assert parity["fp32"]["judged_by"] == "labels"


def test_a_bundle_is_not_written_over(run: Run, bundle: Path) -> None:
    with pytest.raises(BadInput, match="exists already"):
        export_run(run, out=bundle)


def test_an_unknown_precision_is_named(run: Run, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--precision int4: models of bert have fp32, int8"):
        export_run(run, out=tmp_path / "bundle", precisions=["int4"])


def test_a_snapshot_that_has_gone_or_is_another_is_named(run: Run, snapshot: Snapshot, tmp_path: Path) -> None:
    moved = replace(run, snapshot_path=str(tmp_path / "gone"))
    with pytest.raises(BadSnapshot, match="say where with --snapshot"):
        export_run(moved, out=tmp_path / "bundle")
    assert export_run(moved, out=tmp_path / "bundle", snapshot=snapshot).version
    other = write_snapshot(
        list(snapshot.samples())[:-1], taxonomy=snapshot.taxonomy, normaliser=snapshot.normaliser, folder=tmp_path
    )
    with pytest.raises(BadSnapshot, match="the run was trained on"):
        export_run(run, out=tmp_path / "other", snapshot=other)
