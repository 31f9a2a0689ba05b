"""The commands of training: what they answer, and how they refuse."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main
from model.run import Run
from model.snapshot import Snapshot
from training.cli.train import Arch, default_name

Answer = Callable[..., dict[str, Any]]


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Answer:
    """The JSON object that a command answers with."""

    def run(*arguments: object) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            main([*map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        answer = json.loads(out)
        assert isinstance(answer, dict)
        return answer

    return run


def test_train_evaluate_export_and_classify(
    answer: Answer, snapshot: Snapshot, tiny_bert: Path, tmp_path: Path
) -> None:
    trained = answer(
        "train", "--snapshot", snapshot.path, "--arch", "bert", "--init", tiny_bert, "--max-length", 32, "--epochs", 1,
        "--learning-rate", 2e-3, "--batch-size", 16, "--precision", "fp32", "--out", tmp_path / "run",
    )  # fmt: skip
    assert trained["run"] == str(tmp_path / "run")
    evaluated = answer("evaluate", tmp_path / "run", "--snapshot", snapshot.path, "--split", "dev")
    assert evaluated["accuracy"] == trained["metrics"]["dev"]["accuracy"]
    exported = answer("export", tmp_path / "run", "--out", tmp_path / "bundle", "--precision", "fp32,int8")
    assert set(exported["parity"]) == {"fp32", "int8"}
    classified = answer("classify", "--bundle", tmp_path / "bundle", "上次房间干净。")
    assert classified["results"][0]["label"] in ("好评", "差评")


def test_a_person_is_shown_how_like_the_run_its_export_is(
    snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, bundle = str(tmp_path / "run"), tmp_path / "bundle"
    for arguments in (
        ("train", "--snapshot", str(snapshot.path), "--arch", "linear", "--limit", "80", "--out", run),
        ("export", run, "--out", str(bundle), "--precision", "fp32"),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
    parity = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["parity"]["fp32"]
    shown = capsys.readouterr().out
    row = [cell.strip() for cell in next(line for line in shown.splitlines() if "fp32" in line).strip("│").split("│")]
    assert row == ["fp32", *(str(parity[name]) for name in ("samples", "same_labels")), row[3]]
    assert float(row[3]) == pytest.approx(parity["max_logit_difference"], rel=0.05)
    assert f"模型包 bundle  {bundle}" in shown


@pytest.mark.parametrize(("arguments", "code"), [(("train", "--help"), 0), (("train", "--snapshot", "nowhere"), 2)])
def test_a_shell_gets_the_exit_code(arguments: tuple[str, ...], code: int) -> None:
    script = "from app.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == code
    assert ("--snapshot" in ended.stdout, "nowhere is not a snapshot" in ended.stderr) == (code == 0, code == 2)


def test_train_by_folds_says_what_it_left(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path))
    by_folds = ["train", "--snapshot", str(snapshot.path), "--arch", "linear", "--folds", "2", "--limit", "80"]

    def answer(code: int, *arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == code
        return capsys.readouterr()

    printed, told = answer(0, *by_folds, "--seed", "3", "--json")
    result = json.loads(printed)
    assert result["run"] == str(tmp_path / "runs" / f"linear-{snapshot.hash[:8]}-folds2-seed3")
    assert result["metrics"]["train"]["n"] == 80
    assert "fold 2/2" in told
    shown = answer(0, *by_folds)[0]
    assert "折外" in shown
    assert shown.splitlines()[-1] == f"训练记录 run  {tmp_path / 'runs' / f'linear-{snapshot.hash[:8]}-folds2-seed0'}"
    assert "train without --folds" in answer(2, "export", result["run"], "--out", str(tmp_path / "bundle"))[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--snapshot", "nowhere"), "nowhere is not a snapshot"),
        (("train", "--snapshot", "nowhere", "--arch", "quantum"), "quantum"),
        (("evaluate", "nowhere", "--snapshot", "{snapshot}"), "nowhere is not a run"),
        (("export", "nowhere", "--out", "bundle"), "nowhere is not a run"),
        (
            ("train", "--snapshot", "{snapshot}", "--arch", "linear", "--epochs", "3"),
            "--epochs has no meaning with --arch",
        ),
        (("train", "--snapshot", "{snapshot}", "--arch", "linear", "--folds", "1"), "--folds"),
        (("train", "--snapshot", "{snapshot}", "--arch", "linear", "--folds", "999"), "give at most --folds"),
        (("train", "--snapshot", "{snapshot}", "--pooling", "max"), "--pooling max: choose one of cls, mean, layers"),
        (("train", "--snapshot", "{snapshot}", "--precision", "int3"), "--precision int3: choose one of auto"),
        (("train", "--snapshot", "{snapshot}", "--arch", "gpt"), "--arch gpt has no offline start; pretrain one"),
        (("train", "--snapshot", "{snapshot}", "--freeze", "--from-scratch"), "would train a head on random weights"),
    ],
)
def test_bad_input_gets_one_message_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    snapshot: Snapshot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([argument.format(snapshot=snapshot.path) for argument in arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_a_run_without_a_name_is_called_after_what_it_starts_from() -> None:
    assert default_name(Arch.BERT, "offline", "ab" * 16, folds=None, seed=0) == "bert-abababab-seed0"
    assert default_name(Arch.GPT, "hub/small-gpt", "ab" * 16, folds=2, seed=1) == "gpt-small-gpt-abababab-folds2-seed1"


def test_without_the_training_extra_the_way_out_is_named(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("training.cli.common.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        main(["train", "--snapshot", str(snapshot.path)])
    assert ended.value.code == 2
    assert "pip install 'wenlei[train,cpu]'" in capsys.readouterr().err


def test_a_recipe_file_gives_options_and_the_command_line_comes_first(
    snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("r_drop = 0.5\nlayer_decay = 0.9\nepochs = 3\nclass_weights = true\n", encoding="utf-8")
    asked = ["train", "--snapshot", str(snapshot.path), "--arch", "textcnn", "--recipe", str(recipe)]
    with pytest.raises(SystemExit) as ended:
        main([*asked, "--epochs", "1", "--out", str(tmp_path / "run"), "--json"])
    assert ended.value.code == 0, capsys.readouterr().err
    loop = Run.open(tmp_path / "run").config["loop"]
    found = {name: loop[name] for name in ("r_drop", "layer_decay", "epochs", "class_weights")}
    assert found == {"r_drop": 0.5, "layer_decay": 0.9, "epochs": 1, "class_weights": True}
    for text, said in (("learning-rate = 1", "learning-rate is no option"), ("epochs =", "can't be read")):
        recipe.write_text(text, encoding="utf-8")
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([*asked, "--out", str(tmp_path / "other")])
        assert ended.value.code == 2
        assert said in capsys.readouterr().err
