"""From a trained classifier to a student of it, on made-up reviews."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from distilling import FAST, POOL, STAGE, distil, options, pool_file, teach
from safetensors.torch import load_file
from starts import tiny_start

from model.errors import BadInput
from model.run import Run
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Split, Text
from training.baselines import LinearOptions, LinearRecipe
from training.data import read
from training.distillation.answers import ask_answers
from training.distillation.augmentation import Augment
from training.distillation.lesson import DistillOptions
from training.distillation.recipe import DistillRecipe
from training.evaluate import evaluate_path, serve_logits
from training.export import export_run
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind
from training.loop import Training
from training.pretrain.configs import SIZES, Arch
from training.pretrain.options import Options as PretrainOptions
from training.pretrain.pretrain import Plan, pretrain
from training.recipe import train


def test_a_student_is_a_run_like_any_other(
    any_snapshot: Snapshot, tiny_bert: Path, student: str, tmp_path: Path
) -> None:
    teacher = teach(any_snapshot, tiny_bert, tmp_path / "teacher")
    chosen = options(student, unlabelled=(pool_file(tmp_path, *POOL),))
    run = distil(any_snapshot, [teacher.path], chosen, tmp_path / "student", tmp_path)
    assert list(run.cost["stages"]) == ["general", "layers", "answers"]
    assert run.cost["pool"] == len(POOL)
    for name in ("general", "layers"):
        history = run.cost["stages"][name]["history"]
        assert history[-1]["likeness"] > history[0]["likeness"]
    found = evaluate_path(run.path, any_snapshot, Split.TEST)
    assert found["accuracy"] == run.metrics["test"]["accuracy"]
    bundle = export_run(run, out=tmp_path / "bundle")
    texts = [Text(sample.text, sample.pair) for sample in read(any_snapshot, Split.TEST)]
    served = serve_logits(OnnxClassifier.load(bundle, precision="fp32"), texts)
    assert served.shape == (len(texts), len(any_snapshot.taxonomy))


def test_a_student_comes_to_answer_as_its_teacher(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    longer = replace(STAGE, epochs=12, patience=24)
    chosen = options(student, by_answers=longer)
    run = distil(snapshot, [teacher.path], chosen, tmp_path / "student", tmp_path)
    assert teacher.metrics["test"]["accuracy"] > 0.9
    assert run.metrics["test"]["accuracy"] > 0.9


class Whole(NamedTuple):
    """A run that nothing broke off, and what it was asked for."""

    run: Run
    chosen: DistillOptions


@pytest.fixture(scope="module")
def whole(snapshot: Snapshot, teacher: Run, student: str, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    folder = tmp_path_factory.mktemp("whole")
    chosen = options(student, unlabelled=(pool_file(folder, *POOL),))
    return Whole(distil(snapshot, [teacher.path], chosen, folder / "run", folder), chosen)


@pytest.mark.parametrize("stage", ["general", "layers", "answers"])
def test_a_run_that_was_killed_in_any_stage_goes_on_and_ends_the_same(
    stage: str, snapshot: Snapshot, teacher: Run, whole: Whole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = Training.judge

    def killed(training: Training) -> None:  # type: ignore[type-arg]
        judge(training)
        if training.checkpoint.name == stage and len(training.progress.history) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Training, "judge", killed)
        with pytest.raises(KeyboardInterrupt):
            distil(snapshot, [teacher.path], whole.chosen, tmp_path / "killed", tmp_path)
    begun: list[str] = []
    run_stage = Training.run

    def told(training: Training) -> object:  # type: ignore[type-arg]
        begun.append(training.checkpoint.name)
        return run_stage(training)

    monkeypatch.setattr(Training, "run", told)
    again = distil(snapshot, [teacher.path], whole.chosen, tmp_path / "killed", tmp_path)
    stages = ["general", "layers", "answers"]
    assert begun == stages[stages.index(stage) :]
    for file in ("model.safetensors", "head.safetensors"):
        expected, found = (load_file(run.model_path / file) for run in (whole.run, again))
        for name, weight in expected.items():
            assert torch.equal(weight, found[name]), name
    assert again.metrics == whole.run.metrics


def test_a_control_begins_as_the_student_and_learns_from_labels(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[dict[str, torch.Tensor]] = []
    run_stage = Training.run

    def told(training: Training) -> object:  # type: ignore[type-arg]
        begun.append({name: weight.clone() for name, weight in training.classifier.state_dict().items()})
        return run_stage(training)

    monkeypatch.setattr(Training, "run", told)
    for control in (True, False):
        chosen = options(student, control=control, layers=False)
        run = distil(snapshot, [teacher.path], chosen, tmp_path / f"control-{control}", tmp_path)
        assert list(run.cost["stages"]) == (["labels"] if control else ["answers"])
    for name, weight in begun[0].items():
        assert torch.equal(weight, begun[1][name]), name


@pytest.fixture(scope="module")
def masked_lm(snapshot: Snapshot, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("pretraining")
    texts = folder / "texts.txt"
    texts.write_text("\n\n".join(sample.text for sample in read(snapshot, Split.TRAIN)), encoding="utf-8")
    tiny = {"vocabulary": 200, "layers": 1, "hidden_size": 32, "heads": 4, "inner_size": 64, "max_length": 32}
    plan = Plan(
        arch=Arch.BERT,
        corpus=(texts,),
        size=replace(SIZES["small"][Arch.BERT], **tiny),  # type: ignore[arg-type]
        start=None,
        vocab=None,
        options=PretrainOptions(steps=2, batch_tokens=64, max_length=32),
        seed=0,
    )
    return str(pretrain(plan, out=folder / "run").path)


@pytest.mark.parametrize("source", [Augment.MASKED_LM, Augment.NEIGHBOURS])
def test_texts_that_are_made_of_train_are_learned_from_too(
    source: Augment, snapshot: Snapshot, teacher: Run, student: str, masked_lm: str, tmp_path: Path
) -> None:
    start = masked_lm if source is Augment.MASKED_LM else None
    chosen = options(student, augment=source, masked_lm=start, copies=2)
    run = distil(snapshot, [teacher.path], chosen, tmp_path / "run", tmp_path)
    assert run.cost["augmented"] > 0
    history = run.cost["stages"]["layers"]["history"]
    steps = -(-(snapshot.counts["train"] + run.cost["augmented"]) // STAGE.batch_size) * STAGE.epochs
    assert history[-1]["step"] == steps


def test_of_several_teachers_the_answers_are_averaged_whatever_they_are(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    linear = train(
        snapshot, LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(), seed=1), out=tmp_path / "linear"
    )
    export_run(teacher, out=tmp_path / "bundle", precisions=["fp32"])
    paths = [tmp_path / "bundle", linear.path]
    run = distil(snapshot, paths, options(student), tmp_path / "student", tmp_path)
    assert [one["path"] for one in run.config["teachers"]] == [str(path) for path in paths]
    texts = [Text(sample.text) for sample in read(snapshot, Split.TRAIN)]
    recipes = [
        DistillRecipe.resolve(snapshot, chosen, options(student), seed=1, home=tmp_path)
        for chosen in (paths, paths[:1])
    ]
    both, one = (ask_answers(recipe.teachers, texts, tmp_path / "teachers") for recipe in recipes)
    (other,) = recipes[0].teachers[1:]
    its = other.answerer(texts)(slice(None))["answers"]
    np.testing.assert_allclose(both, (one + its) / 2, rtol=1e-5)


def test_a_start_learns_from_the_answers_of_any_teacher(snapshot: Snapshot, teacher: Run, tmp_path: Path) -> None:
    recipe = LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(), seed=1)
    linear = train(snapshot, recipe, out=tmp_path / "linear")
    start = tiny_start(
        tmp_path / "start", "房间酒店早餐服务员价格上次中午来时这年有在他我人干净便宜好快喜欢吵闹贵坏差慢。"
    )
    from_answers = replace(options(str(start)), student=None, init=str(start), layers=False)
    run = distil(snapshot, [linear.path], from_answers, tmp_path / "student", tmp_path)
    assert list(run.cost["stages"]) == ["answers"]
    assert evaluate_path(run.path, snapshot, Split.TEST)["accuracy"] == run.metrics["test"]["accuracy"]
    from_layers = replace(from_answers, layers=True)
    with pytest.raises(BadInput, match="another vocabulary than its teacher"):
        DistillRecipe.resolve(snapshot, [teacher.path], from_layers, seed=1, home=tmp_path)


def test_a_start_of_the_teacher_s_vocabulary_can_follow_its_layers(
    snapshot: Snapshot, teacher: Run, tiny_bert: Path, tmp_path: Path
) -> None:
    chosen = replace(options(""), student=None, init=str(tiny_bert))
    run = distil(snapshot, [teacher.path], chosen, tmp_path / "student", tmp_path)
    assert list(run.cost["stages"]) == ["layers", "answers"]


def test_a_nezha_teaches_a_nezha(snapshot: Snapshot, student: str, tmp_path: Path) -> None:
    start = tiny_start(tmp_path / "start", arch="nezha")
    chosen = FinetuneOptions(init=str(start), max_length=32, loop=FAST)
    kind = BertKind(arch="nezha")
    teacher = finetune(snapshot, options=chosen, seed=1, out=tmp_path / "teacher", cache=tmp_path, kind=kind)
    run = distil(snapshot, [teacher.path], options(student), tmp_path / "student", tmp_path)
    assert run.arch == "nezha"
    assert evaluate_path(run.path, snapshot, Split.TEST)["accuracy"] == run.metrics["test"]["accuracy"]
