"""From a trained classifier to a student of it, on made-up reviews."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from starts import tiny_start

from model.errors import BadInput, BadRun
from model.files import write_json
from model.run import Run
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Split, Text
from training.baselines import LinearOptions, LinearRecipe
from training.data import read
from training.device import NumberFormat
from training.distillation.answers import ask_answers
from training.distillation.augmentation import Augment
from training.distillation.lesson import DistillOptions
from training.distillation.recipe import DistillRecipe
from training.evaluate import evaluate_path, serve_logits
from training.export import export_run
from training.finetune import FinetuneOptions, finetune
from training.kinds import BertKind
from training.loop import Options, Training
from training.pretrain.configs import SIZES, Arch
from training.pretrain.options import Options as PretrainOptions
from training.pretrain.pretrain import Plan, pretrain
from training.recipe import train

FAST = Options(epochs=4, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, precision=NumberFormat.FP32)
STAGE = replace(FAST, patience=8)
STUDENT = {"layers": 1, "hidden_size": 24, "inner_size": 48}


def teach(snapshot: Snapshot, start: Path, out: Path, *, seed: int = 1) -> Run:
    options = FinetuneOptions(init=str(start), max_length=32, loop=FAST)
    return finetune(snapshot, options=options, seed=seed, out=out, cache=out.parent, kind=BertKind())


@pytest.fixture(scope="module")
def teacher(snapshot: Snapshot, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return teach(snapshot, tiny_bert, tmp_path_factory.mktemp("teachers") / "one")


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("students") / "student.json"
    write_json(path, STUDENT)
    return str(path)


def options(student: str, **changes: object) -> DistillOptions:
    chosen = DistillOptions(student=student, max_length=32, general=STAGE, by_layers=STAGE, by_answers=STAGE)
    return replace(chosen, **changes)  # type: ignore[arg-type]


def distil(snapshot: Snapshot, teachers: list[Path], chosen: DistillOptions, out: Path, home: Path) -> Run:
    return train(snapshot, DistillRecipe.resolve(snapshot, teachers, chosen, seed=1, home=home), out=out)


def pool_file(folder: Path, *texts: str) -> Path:
    path = folder / "pool.txt"
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


POOL = [f"{time}{place}很{word}" for time in ("这次", "上回") for place in ("房间", "早餐") for word in ("干净", "慢")]


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"copies": 2}, "--copies 2 has no meaning unless --augment makes texts"),
        ({"augment": Augment.MASKED_LM}, "needs a masked language model"),
        ({"masked_lm": "offline"}, "--masked-lm offline is only read with --augment masked-lm"),
        ({"augment": Augment.NEIGHBOURS, "masked_lm": "offline"}, "is only read with"),
    ],
)
def test_augmentation_that_would_not_happen_is_refused(
    changes: dict[str, object], said: str, snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        DistillRecipe.resolve(snapshot, [teacher.path], options(student, **changes), seed=1, home=tmp_path)


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


def test_a_teacher_without_attention_has_no_layers_to_follow(snapshot: Snapshot, student: str, tmp_path: Path) -> None:
    recipe = LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(), seed=1)
    linear = train(snapshot, recipe, out=tmp_path / "linear")
    with pytest.raises(BadInput, match="no attention layers"):
        DistillRecipe.resolve(snapshot, [linear.path], options(student), seed=1, home=tmp_path)


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


@pytest.mark.parametrize("changes", [{"student": None}, {"init": "offline"}])
def test_a_student_is_of_a_size_or_a_start(
    changes: dict[str, str | None], snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    chosen = replace(options(student), **changes)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="either of a size, --student tiny4-312 say, or a start"):
        DistillRecipe.resolve(snapshot, [teacher.path], chosen, seed=1, home=tmp_path)


def test_a_teacher_of_other_labels_is_refused(
    snapshot: Snapshot, multi_snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    with pytest.raises(BadRun, match="trained for other labels"):
        DistillRecipe.resolve(multi_snapshot, [teacher.path], options(student), seed=1, home=tmp_path)


def test_other_heads_than_the_teacher_s_are_for_answers_alone(snapshot: Snapshot, teacher: Run, tmp_path: Path) -> None:
    write_json(tmp_path / "student.json", {**STUDENT, "heads": 2})
    chosen = options(str(tmp_path / "student.json"))
    with pytest.raises(BadInput, match="2 attention heads, its teacher 4"):
        DistillRecipe.resolve(snapshot, [teacher.path], chosen, seed=1, home=tmp_path)
    run = distil(snapshot, [teacher.path], replace(chosen, layers=False), tmp_path / "student", tmp_path)
    assert list(run.cost["stages"]) == ["answers"]


def test_a_pool_with_texts_of_dev_or_test_is_refused_with_their_number(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    held = [read(snapshot, split)[0].text for split in (Split.DEV, Split.TEST)]
    chosen = options(student, unlabelled=(pool_file(tmp_path, *POOL, *held),))
    recipe = DistillRecipe.resolve(snapshot, [teacher.path], chosen, seed=1, home=tmp_path)
    with pytest.raises(BadInput, match=f"2 of the {len(POOL) + 2} texts stand in dev or test"):
        train(snapshot, recipe, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_another_pool_is_another_run(snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path) -> None:
    file = pool_file(tmp_path, *POOL)
    chosen = options(student, unlabelled=(file,), layers=False)
    recipe = DistillRecipe.resolve(snapshot, [teacher.path], chosen, seed=1, home=tmp_path)
    before = recipe.config["unlabelled"]
    pool_file(tmp_path, *POOL, "多了一条")
    assert recipe.config["unlabelled"] != before
    file.unlink()
    with pytest.raises(BadInput, match=r"pool\.txt can't be read"):
        distil(snapshot, [teacher.path], chosen, tmp_path / "run", tmp_path)


def test_texts_of_the_pool_that_are_in_train_too_are_learned_once(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    n_train = snapshot.counts["train"]
    n_labelled = n_train // 2
    chosen = options(student, unlabelled=(snapshot.path,), general=None, by_layers=None, limit=n_labelled)
    run = distil(snapshot, [teacher.path], chosen, tmp_path / "run", tmp_path)
    assert run.cost["pool"] == n_train - n_labelled
    assert list(run.cost["stages"]) == ["answers"]
    assert run.cost["stages"]["answers"]["history"][-1]["step"] == -(-n_train // STAGE.batch_size) * STAGE.epochs


def test_near_duplicates_of_dev_and_test_stay_out_of_the_pool(
    snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    near = read(snapshot, Split.TEST)[0].text.replace("。", "！")
    chosen = options(student, unlabelled=(pool_file(tmp_path, *POOL, near),), layers=False)
    run = distil(snapshot, [teacher.path], chosen, tmp_path / "run", tmp_path)
    assert run.cost["pool"] == len(POOL)
    assert "1 texts of the pool are near duplicates" in " ".join(capsys.readouterr().err.split())


def test_a_nezha_teaches_a_nezha(snapshot: Snapshot, student: str, tmp_path: Path) -> None:
    start = tiny_start(tmp_path / "start", arch="nezha")
    chosen = FinetuneOptions(init=str(start), max_length=32, loop=FAST)
    kind = BertKind(arch="nezha")
    teacher = finetune(snapshot, options=chosen, seed=1, out=tmp_path / "teacher", cache=tmp_path, kind=kind)
    run = distil(snapshot, [teacher.path], options(student), tmp_path / "student", tmp_path)
    assert run.arch == "nezha"
    assert evaluate_path(run.path, snapshot, Split.TEST)["accuracy"] == run.metrics["test"]["accuracy"]
