"""Texts without labels that a student learns from: which of them it may read."""

from pathlib import Path

import pytest
from distilling import POOL, STAGE, distil, options, pool_file

from model.errors import BadInput
from model.run import Run
from model.snapshot import Snapshot
from model.types import Split
from training.data import read
from training.distillation.recipe import DistillRecipe
from training.recipe import train


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
