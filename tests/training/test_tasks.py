"""Every kind of task with every architecture: trained, exported, and answered by the bundle as by the run."""

from pathlib import Path

import numpy as np
import pytest

from model.metrics import predicted_matrix
from model.run import Run
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import Activation, Split, Text
from training.architectures import load_classifier
from training.baselines import LinearOptions, train_linear
from training.data import load
from training.device import NumberFormat
from training.evaluate import decoder_of, evaluate_path
from training.export import export_run
from training.finetune import FinetuneOptions, finetune
from training.loop import Options, predict


def train(arch: str, snapshot: Snapshot, start: Path, folder: Path, number_format: NumberFormat) -> Run:
    if arch == "linear":
        return train_linear(snapshot, options=LinearOptions(), seed=0, out=folder / "run")
    loop = Options(
        epochs=4, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, patience=9, precision=number_format
    )
    options = FinetuneOptions(init=str(start), max_length=40, loop=loop)
    return finetune(snapshot, options=options, seed=1, out=folder / "run", cache=folder)


@pytest.mark.parametrize("arch", ["linear", "bert"])
def test_the_bundle_answers_as_the_run(arch: str, any_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    run = train(arch, any_snapshot, tiny_bert, tmp_path, NumberFormat.FP32)
    bundle = export_run(run, out=tmp_path / "bundle")
    assert bundle.manifest.taxonomy == any_snapshot.taxonomy

    tokenizer = load_tokenizer(run.model_path, max_length=run.config["max_length"])
    dataset = load(any_snapshot, Split.TEST, tokenizer)
    decoder = decoder_of(run)
    scores = decoder.scores(predict(load_classifier(run), dataset))
    chosen = predicted_matrix(scores, run.taxonomy, decoder.thresholds)

    served = OnnxClassifier.load(bundle, precision="fp32")
    answers = classify(served, [Text(sample.text, sample.pair) for sample in dataset.samples])
    for answer, row, expected in zip(answers, scores, chosen, strict=True):
        labels = {label.label for label in answer.labels}
        if any_snapshot.taxonomy.activation is Activation.SOFTMAX or expected.any():
            assert labels == {any_snapshot.taxonomy.labels[index] for index in np.flatnonzero(expected)}
        else:
            assert answer.abstained
        accepted = row[expected] if expected.any() else row
        assert answer.score == pytest.approx(accepted.max(), abs=1e-4)

    figures = evaluate_path(bundle.path, any_snapshot, Split.TEST, precision="fp32")
    assert figures["accuracy"] == run.metrics["test"]["accuracy"]
    assert ("per_level" in figures) == (any_snapshot.taxonomy.level_sep is not None)


def test_linear_learns_every_task(any_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    run = train("linear", any_snapshot, tiny_bert, tmp_path, NumberFormat.FP32)
    chance = {2: 0.55, 7: 0.3, 10: 0.15}[len(any_snapshot.taxonomy)]
    assert run.metrics["test"]["micro_f1"] > chance


def test_training_in_bf16_learns_too(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    run = train("bert", snapshot, tiny_bert, tmp_path, NumberFormat.BF16)
    assert run.metrics["test"]["accuracy"] > 0.9
    assert run.cost["precision"] == "bf16"
    assert {weight.dtype.itemsize for weight in load_classifier(run).state_dict().values()} == {4}
