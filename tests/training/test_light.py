"""Light networks, from a snapshot to a bundle."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from model.architectures.light import LIGHT
from model.errors import BadSnapshot
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import Sample, Split, Text
from training.architectures import load_classifier
from training.data import load, read
from training.device import NumberFormat
from training.evaluate import evaluate_path, serve_logits
from training.export import export_run
from training.light import LightOptions, LightRecipe, fit_characters
from training.loop import Options, Training, predict
from training.recipe import train

LOOP = Options(
    epochs=6, batch_size=16, learning_rate=5e-3, head_learning_rate=5e-3, patience=12, precision=NumberFormat.FP32
)
OPTIONS = LightOptions(max_length=32, loop=LOOP)


def recipe(snapshot: Snapshot, arch: str, options: LightOptions = OPTIONS) -> LightRecipe:
    return LightRecipe(taxonomy=snapshot.taxonomy, arch=arch, options=options, seed=1)


@pytest.mark.parametrize("arch", LIGHT)
def test_every_task_is_learned_and_the_bundle_says_what_the_network_said(
    arch: str, any_snapshot: Snapshot, tmp_path: Path
) -> None:
    run = train(any_snapshot, recipe(any_snapshot, arch), out=tmp_path / "run")
    if read(any_snapshot, Split.TEST)[0].pair is None:  # whether two texts are of one thing is beyond a bag of n-grams
        assert run.metrics["test"]["micro_f1"] > 0.8
    assert evaluate_path(run.path, any_snapshot, Split.TEST)["accuracy"] == run.metrics["test"]["accuracy"]
    bundle = export_run(run, out=tmp_path / "bundle")
    classifier = OnnxClassifier.load(bundle, precision="fp32")
    dataset = load(any_snapshot, Split.TEST, load_tokenizer(run.model_path, max_length=OPTIONS.max_length))
    texts = [Text(sample.text, sample.pair) for sample in dataset.samples]
    np.testing.assert_allclose(serve_logits(classifier, texts), predict(load_classifier(run), dataset), atol=1e-4)


@pytest.mark.parametrize("arch", LIGHT)
def test_what_a_text_is_batched_with_changes_nothing(arch: str, snapshot: Snapshot, tmp_path: Path) -> None:
    run = train(snapshot, recipe(snapshot, arch), out=tmp_path / "run")
    classifier = OnnxClassifier.load(export_run(run, out=tmp_path / "bundle"), precision="fp32")
    short, long = classifier.encode([Text("房间好"), Text("上次早餐很慢" * 5)])
    alone, together = classifier.logits([short]), classifier.logits([short, long])
    np.testing.assert_allclose(together[0], alone[0], atol=1e-5)


@pytest.mark.parametrize("arch", LIGHT)
def test_a_training_that_was_killed_goes_on_and_ends_the_same(
    arch: str, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(snapshot, recipe(snapshot, arch), out=tmp_path / "whole")
    judge = Training.judge

    def killed(training: Training) -> None:  # type: ignore[type-arg]
        judge(training)
        if len(training.progress.history) == 5:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Training, "judge", killed)
        with pytest.raises(KeyboardInterrupt):
            train(snapshot, recipe(snapshot, arch), out=tmp_path / "killed")
    again = train(snapshot, recipe(snapshot, arch), out=tmp_path / "killed")
    expected, found = (load_file(run.model_path / "model.safetensors") for run in (whole, again))
    for name, weight in expected.items():
        assert torch.equal(weight, found[name]), name


def test_characters_are_those_of_train_that_occur_twice(snapshot: Snapshot) -> None:
    samples = [*read(snapshot, Split.TRAIN), Sample("x", "罕ab12ab", None, ("好评",), Split.TRAIN)]
    tokenizer = fit_characters(samples, max_length=32)
    texts = [Text(text) for text in ("房间", "罕", "ab", "ab1")]
    known, rare, latin, number = (one.inputs["input_ids"].tolist()[1:-1] for one in tokenizer.encode(texts))
    assert tokenizer.unknown_id not in [*known, *latin]
    assert (len(known), len(latin)) == (2, 2)
    assert rare == number == [tokenizer.unknown_id]  # 罕 and 1 occur once


def test_texts_of_hardly_any_characters_are_refused() -> None:
    with pytest.raises(BadSnapshot, match="2 train samples have only 3 characters that occur twice"):
        fit_characters([Sample(str(n), "甲乙丙", None, ("一",), Split.TRAIN) for n in range(2)], max_length=32)


def test_fewer_samples_are_taken_where_they_are_limited(snapshot: Snapshot, tmp_path: Path) -> None:
    run = train(snapshot, recipe(snapshot, "textcnn", replace(OPTIONS, limit=60)), out=tmp_path / "run")
    assert run.cost["train_samples"] == 60
