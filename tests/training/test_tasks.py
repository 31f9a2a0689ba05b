"""Every kind of task with every architecture: trained, exported, and answered by the bundle as by the run."""

from pathlib import Path

import numpy as np
import pytest
from starts import tiny_start

from app.main import create_app
from app.settings import Settings
from model.metrics import predicted_matrix
from model.run import Run
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import Activation, Split, Text
from tests.app.api.servers import serving
from training.architectures import load_classifier
from training.baselines import LinearOptions, train_linear
from training.data import load
from training.device import NumberFormat
from training.evaluate import decoder_of, evaluate_path
from training.export import export_run
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind, ElmoKind, GptKind, Kind
from training.loop import Options, predict

KINDS: dict[str, Kind] = {
    "bert": BertKind(),
    "nezha": BertKind(arch="nezha"),
    "gpt": GptKind(),
    "elmo": ElmoKind(),
}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A tiny start of every architecture."""
    return {arch: tiny_start(tmp_path_factory.mktemp(arch), arch=arch) for arch in KINDS}


def train(
    arch: str,
    snapshot: Snapshot,
    starts: dict[str, Path],
    folder: Path,
    *,
    epochs: int = 1,
    number_format: NumberFormat = NumberFormat.FP32,
) -> Run:
    if arch == "linear":
        return train_linear(snapshot, options=LinearOptions(), seed=0, out=folder / "run")
    loop = Options(
        epochs=epochs, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, patience=20, precision=number_format
    )
    options = FinetuneOptions(init=str(starts[arch]), max_length=40, loop=loop)
    return finetune(snapshot, kind=KINDS[arch], options=options, seed=1, out=folder / "run", cache=folder)


@pytest.mark.parametrize("arch", ["linear", *KINDS])
def test_the_bundle_answers_as_the_run(
    arch: str, any_snapshot: Snapshot, starts: dict[str, Path], tmp_path: Path
) -> None:
    run = train(arch, any_snapshot, starts, tmp_path)
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


def test_linear_learns_every_task(any_snapshot: Snapshot, starts: dict[str, Path], tmp_path: Path) -> None:
    run = train("linear", any_snapshot, starts, tmp_path)
    chance = {2: 0.55, 7: 0.3, 10: 0.15}[len(any_snapshot.taxonomy)]
    assert run.metrics["test"]["micro_f1"] > chance


@pytest.mark.parametrize("arch", KINDS)
def test_every_architecture_learns_in_bf16_and_is_served(
    arch: str, snapshot: Snapshot, starts: dict[str, Path], tmp_path: Path
) -> None:
    run = train(arch, snapshot, starts, tmp_path, epochs=8, number_format=NumberFormat.BF16)
    assert run.metrics["test"]["accuracy"] > 0.9
    assert run.cost["precision"] == "bf16"
    assert {weight.dtype.itemsize for weight in load_classifier(run).state_dict().values()} == {4}
    bundle = export_run(run, out=tmp_path / "bundle", precisions=["fp32"])
    samples = list(snapshot.samples(Split.TEST))
    with serving(create_app(Settings(bundles=(bundle.path,)))) as server:
        answer = server.client.post("/v1/classify", json={"texts": [sample.text for sample in samples]})
    labels = [result["label"] for result in answer.json()["results"]]
    right = [label == sample.labels[0] for label, sample in zip(labels, samples, strict=True)]
    assert np.mean(right) == run.metrics["test"]["accuracy"]
    odd = [Text(text) for text in ("好", "😀👍🏽", "a\u200b", "\U0002a6d6", "好" * 20_000)] + [
        Text("好" * 20_000, "坏" * 20_000)
    ]
    answers = classify(OnnxClassifier.load(bundle), odd)
    assert np.isfinite([answer.score for answer in answers]).all()
    assert [answer.truncated for answer in answers] == [False] * 4 + [True] * 2
