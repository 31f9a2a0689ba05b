import shutil
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import torch
from safetensors.torch import load_file, save_file
from starts import tiny_start

from model.architectures.bert import BertClassifier, Pooling
from model.errors import BadInput, BadRun, BadSnapshot
from model.files import read_json, write_json
from model.run import Run
from model.snapshot import Snapshot, write_snapshot
from model.types import Split
from training.architectures import load_classifier
from training.data import Dataset
from training.device import NumberFormat
from training.evaluate import evaluate_path
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind, ElmoKind, GptKind, Kind
from training.loop import Options, Training
from training.pretrained import resolve

LOOP = Options(epochs=2, batch_size=16, learning_rate=2e-3, head_learning_rate=2e-3, precision=NumberFormat.FP32)


def options(start: Path, **changes: object) -> FinetuneOptions:
    return replace(FinetuneOptions(init=str(start), max_length=32, loop=LOOP), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("pooling", Pooling)
def test_a_run_holds_what_evaluation_finds(
    pooling: Pooling, snapshot: Snapshot, tiny_bert: Path, tmp_path: Path
) -> None:
    run = finetune(
        snapshot,
        kind=BertKind(pooling=pooling),
        options=options(tiny_bert),
        seed=1,
        out=tmp_path / "run",
        cache=tmp_path,
    )
    assert Run.open(tmp_path / "run") == run
    assert not run.checkpoint_path.exists()
    assert run.cost["train_samples"] == snapshot.counts["train"]
    found = evaluate_path(run.path, snapshot, Split.TEST)
    assert found["accuracy"] == run.metrics["test"]["accuracy"]
    assert found["macro_f1"] == pytest.approx(run.metrics["test"]["macro_f1"])


def test_a_seed_gives_the_same_weights_again(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    first, second, other = (
        load_classifier(finetune(snapshot, options=options(tiny_bert), seed=seed, out=tmp_path / name, cache=tmp_path))
        for seed, name in ((1, "first"), (1, "second"), (2, "other"))
    )
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name]), name
    assert not torch.equal(first.state_dict()["head.weight"], other.state_dict()["head.weight"])


def test_a_frozen_encoder_stays_as_it_was(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    run = finetune(snapshot, options=options(tiny_bert, freeze=True), seed=1, out=tmp_path / "run", cache=tmp_path)
    before = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN).encoder.state_dict()
    after = load_classifier(run).state_dict()
    for name, weight in before.items():
        assert torch.equal(weight, after[f"encoder.{name}"]), name


@pytest.mark.parametrize("kind", [BertKind(), GptKind(), ElmoKind()], ids=lambda kind: kind.arch)
def test_from_scratch_nothing_of_the_start_is_left_but_its_shape_and_words(kind: Kind, tmp_path: Path) -> None:
    start = resolve(str(tiny_start(tmp_path, arch=kind.arch)), cache=tmp_path)
    opened = kind.open(start, max_length=32)

    def weights(seed: int, *, from_scratch: bool) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed)
        network = opened.classifier(n_labels=2, dropout=0.1, from_scratch=from_scratch)
        return {
            name: weight
            for name, weight in cast(torch.nn.Module, network).named_parameters()
            if name.startswith("encoder.") and weight.std() > 0  # biases and layer norms begin as constants
        }

    pretrained, drawn, again, other = (
        weights(seed, from_scratch=scratch) for seed, scratch in ((1, False), (1, True), (1, True), (2, True))
    )
    assert len(drawn) > 5
    for name, weight in drawn.items():
        assert torch.equal(weight, again[name]), name
        assert not torch.equal(weight, other[name]), name
        assert weight.shape == pretrained[name].shape
        assert not torch.equal(weight, pretrained[name]), name


def test_several_labels_a_text(multi_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    loop = replace(LOOP, epochs=6)
    run = finetune(multi_snapshot, options=options(tiny_bert, loop=loop), seed=1, out=tmp_path / "run", cache=tmp_path)
    assert run.metrics["test"]["micro_f1"] > 0.7
    assert set(run.calibration["thresholds"]) == set(multi_snapshot.taxonomy.labels)


def test_another_command_does_not_go_on_with_a_broken_off_run(
    snapshot: Snapshot, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("training.recipe.Training.run", killed)
        with pytest.raises(KeyboardInterrupt):
            finetune(snapshot, options=options(tiny_bert), seed=1, out=tmp_path / "run", cache=tmp_path)
    with pytest.raises(BadRun, match="broken off"):
        evaluate_path(tmp_path / "run", snapshot, Split.TEST)
    with pytest.raises(BadRun, match="another seed"):
        finetune(snapshot, options=options(tiny_bert), seed=2, out=tmp_path / "run", cache=tmp_path)
    assert finetune(snapshot, options=options(tiny_bert), seed=1, out=tmp_path / "run", cache=tmp_path).status == "done"


@pytest.mark.parametrize("freeze", [False, True])
@pytest.mark.parametrize("kind", [BertKind(arch="nezha"), GptKind(), ElmoKind()], ids=lambda kind: kind.arch)
def test_a_broken_off_run_of_every_architecture_ends_with_the_same_weights(
    kind: Kind, freeze: bool, snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tiny_start(tmp_path, arch=kind.arch)
    loop = replace(LOOP, epochs=1, checkpoint_every=1)

    def run(name: str) -> dict[str, torch.Tensor]:
        asked = options(start, loop=loop, freeze=freeze, limit=80)
        return load_classifier(
            finetune(snapshot, kind=kind, options=asked, seed=1, out=tmp_path / name, cache=tmp_path)
        ).state_dict()

    update, steps = Training.update, iter(range(1000))

    def update_until_killed(training: Training[Dataset], rows: list[int]) -> None:
        if next(steps) == 3:
            raise KeyboardInterrupt
        update(training, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "update", update_until_killed)
        with pytest.raises(KeyboardInterrupt):
            run("killed")
    undisturbed, resumed = run("undisturbed"), run("killed")
    assert undisturbed.keys() == resumed.keys()
    for name, weight in undisturbed.items():
        assert torch.equal(weight, resumed[name]), name


def test_texts_longer_than_the_model_are_asked_for_in_vain(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--max-length 65 is more than the 64 positions"):
        finetune(snapshot, options=options(tiny_bert, max_length=65), seed=1, out=tmp_path / "run", cache=tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_snapshot_without_dev_is_refused(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    no_dev = write_snapshot(
        (sample for sample in snapshot.samples() if sample.split is not Split.DEV),
        taxonomy=snapshot.taxonomy,
        normaliser=snapshot.normaliser,
        folder=tmp_path / "snapshots",
    )
    with pytest.raises(BadSnapshot, match="no dev samples"):
        finetune(no_dev, options=options(tiny_bert), seed=1, out=tmp_path / "run", cache=tmp_path)
    assert not (tmp_path / "run").exists()


def changed_start(tiny_bert: Path, folder: Path, **config: object) -> Path:
    """A copy of the start with other settings."""
    shutil.copytree(tiny_bert, folder)
    write_json(folder / "config.json", {**read_json(folder / "config.json"), **config})
    return folder


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "roberta"}, "is of type roberta, --arch bert needs an encoder of type bert"),
        ({"is_decoder": True}, "is of type bert decoder"),
        ({"hidden_act": "silu"}, "has hidden_act silu, which can't be exported"),
        ({"max_position_embeddings": None}, "config.json is not that of a BERT"),
        ({"vocab_size": 20}, "they don't belong together"),
    ],
)
def test_a_start_that_can_not_be_used_is_refused_before_training(
    config: dict[str, object], message: str, snapshot: Snapshot, tiny_bert: Path, tmp_path: Path
) -> None:
    start = changed_start(tiny_bert, tmp_path / "start", **config)
    with pytest.raises(BadInput, match=message):
        finetune(snapshot, options=options(start), seed=1, out=tmp_path / "run", cache=tmp_path)
    assert not (tmp_path / "run").exists()


def test_a_start_with_weights_under_other_names_is_refused(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    start = changed_start(tiny_bert, tmp_path / "start")
    weights = load_file(start / "model.safetensors")
    save_file({name.replace("query", "q"): weight for name, weight in weights.items()}, start / "model.safetensors")
    with pytest.raises(BadInput, match=r"lacks encoder\.layer\.0\.attention\.self\.query"):
        finetune(snapshot, options=options(start), seed=1, out=tmp_path / "run", cache=tmp_path)


def test_a_start_in_half_precision_is_trained_in_float32(snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    start = changed_start(tiny_bert, tmp_path / "start", dtype="float16")
    weights = load_file(start / "model.safetensors")
    save_file({name: weight.half() for name, weight in weights.items()}, start / "model.safetensors")
    run = finetune(snapshot, options=options(start), seed=1, out=tmp_path / "run", cache=tmp_path)
    assert {weight.dtype for weight in load_classifier(run).state_dict().values()} == {torch.float32}
    assert run.config["start"]["name"] == "start"


def test_a_tokenizer_that_does_not_know_the_texts_is_refused(
    multi_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path
) -> None:
    foreign = write_snapshot(
        (replace(sample, text=f"qwxz{number}") for number, sample in enumerate(multi_snapshot.samples())),
        taxonomy=multi_snapshot.taxonomy,
        normaliser=multi_snapshot.normaliser,
        folder=tmp_path / "snapshots",
    )
    with pytest.raises(BadInput, match="of the texts' tokens are unknown"):
        finetune(foreign, options=options(tiny_bert), seed=1, out=tmp_path / "run", cache=tmp_path)
