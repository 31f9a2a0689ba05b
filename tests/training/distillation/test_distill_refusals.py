"""What no student can be made of, and options that would change nothing."""

from dataclasses import replace
from pathlib import Path

import pytest
from distilling import STUDENT, distil, options

from model.errors import BadInput, BadRun
from model.files import write_json
from model.run import Run
from model.snapshot import Snapshot
from training.baselines import LinearOptions, LinearRecipe
from training.distillation.augmentation import Augment
from training.distillation.recipe import DistillRecipe
from training.recipe import train


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"copies": 2}, "--copies 2 has no meaning unless --augment makes texts"),
        ({"augment": Augment.MASKED_LM}, "needs a masked language model"),
        ({"masked_lm": "offline"}, "--masked-lm offline is only read with --augment masked-lm"),
        ({"augment": Augment.NEIGHBOURS, "masked_lm": "offline"}, "is only read with"),
        ({"control": True, "unlabelled": (Path("pool.txt"),)}, "--unlabelled has no meaning with --control"),
        ({"control": True, "augment": Augment.NEIGHBOURS}, "--augment has no meaning with --control"),
    ],
)
def test_options_that_would_change_nothing_are_refused(
    changes: dict[str, object], said: str, snapshot: Snapshot, teacher: Run, student: str, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        DistillRecipe.resolve(snapshot, [teacher.path], options(student, **changes), seed=1, home=tmp_path)


def test_a_teacher_without_attention_has_no_layers_to_follow(snapshot: Snapshot, student: str, tmp_path: Path) -> None:
    recipe = LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(), seed=1)
    linear = train(snapshot, recipe, out=tmp_path / "linear")
    with pytest.raises(BadInput, match="no attention layers"):
        DistillRecipe.resolve(snapshot, [linear.path], options(student), seed=1, home=tmp_path)


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
