"""`wenlei finetune` as a shell calls it."""

import json
from pathlib import Path
from typing import Any

import pytest
from made_tasks import MAKERS, write_rows

from app.cli import main

QUICK = ["--epochs", "1", "--max-length", "32", "--batch-size", "16", "--precision", "fp32"]


class Shell:
    """Calls commands in this process."""

    def __init__(self, captured: pytest.CaptureFixture[str]) -> None:
        self.captured = captured

    def __call__(self, *arguments: object, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in ("finetune", *arguments)])
        printed, told = self.captured.readouterr()
        assert ended.value.code == code, told
        return printed, told


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path))
    return Shell(capsys)


def files(name: str, folder: Path) -> list[object]:
    given: list[object] = []
    for seed, split in enumerate(("train", "dev", "test")):
        given += [f"--{split}", write_rows(folder / f"{split}.jsonl", MAKERS[name](24, seed=seed))]
    return given


@pytest.mark.parametrize(
    ("name", "options", "kept"),
    [
        ("tokens", ["--stride", 20, "--freeze"], {"stride": 20, "freeze": True}),
        ("span", ["--max-answer", 9], {"longest": 9, "stride": 128}),
        ("choice", ["--dropout", 0.2], {"dropout": 0.2}),
    ],
)
def test_train_and_predict(
    name: str, options: list[object], kept: dict[str, Any], shell: Shell, tiny_bert: Path, tmp_path: Path
) -> None:
    given = [name, *files(name, tmp_path), "--init", tiny_bert, *QUICK, *options]
    result = json.loads(shell(*given, "--json")[0])
    assert result["run"] == str(tmp_path / "runs" / f"{name}-train-seed0")
    assert {split: figures["n"] for split, figures in result["figures"].items()} == {"dev": 24, "test": 24}
    facts = json.loads((Path(result["run"]) / "task.json").read_text(encoding="utf-8"))
    assert {key: facts["options"][key] for key in kept} == kept
    answered = shell("predict", result["run"], tmp_path / "test.jsonl")[0].splitlines()
    key = "entities" if name == "tokens" else "answer"
    for line, row in zip(answered, MAKERS[name](24, seed=2), strict=True):
        assert {**json.loads(line), key: row[key], "scores": 0} == {**row, "scores": 0}
    assert "give another --out" in shell(*given, code=2)[1]
    shown = shell(*given, "--out", tmp_path / "other")[0]
    assert shown.splitlines()[-1] == f"训练记录 run  {tmp_path / 'other'}"
    assert "划分 split" in shown


def test_mistakes_are_told_on_one_line(shell: Shell, tiny_bert: Path, tmp_path: Path) -> None:
    given = files("choice", tmp_path)
    told = shell("choice", *given, "--init", tiny_bert, *QUICK, "--lm-weight", 0.5, code=2)[1]
    assert "--lm-weight is for GPT" in told
    (tmp_path / "dev.jsonl").write_text('{"text": "好"}\n', encoding="utf-8")
    told = shell("choice", *given, "--init", tiny_bert, *QUICK, code=2)[1]
    assert f'{tmp_path / "dev.jsonl"}, line 1: it has no list of at least two "choices"' in told
    assert "is not a run: no task.json in it" in shell("predict", tmp_path, tmp_path / "dev.jsonl", code=2)[1]
    assert not (tmp_path / "runs").exists()
