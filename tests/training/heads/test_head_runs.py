import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from made_tasks import MAKERS, TASKS, Tuned, options, write_rows
from safetensors.torch import load_file

import training.loop
from model.errors import BadInput, BadRun
from model.files import read_json, sha256_file, write_json
from model.types import Split
from training.heads.run import HeadRun
from training.heads.spans import AnswerSpans
from training.heads.tokens import TokenLabelling
from training.heads.tuning import answer, finetune
from training.pretrained import Start, resolve


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_task_is_learned(tuned: Tuned) -> None:
    # who always gives the most frequent answer, without regard to the question, gets less than two thirds
    figure = {"tokens": "f1", "span": "exact_match", "choice": "accuracy"}[tuned.run.task]
    assert tuned.run.figures["test"][figure] > 0.9
    assert tuned.run.figures["test"]["n"] == 60


def test_a_run_tells_what_it_was_made_of(tuned: Tuned, start: Start) -> None:
    run = HeadRun.open(tuned.run.path)
    assert run == tuned.run
    assert (run.status, run.arch, run.seed) == ("done", "bert", 1)
    assert run.start == {"name": start.name, "sha256": start.sha256}
    assert run.files == {
        split.value: {"name": path.name, "sha256": sha256_file(path)} for split, path in tuned.files.items()
    }
    assert {"python", "torch", "transformers"} <= run.environment.keys()
    assert run.cost["steps"] >= run.cost["best_step"] > 0
    assert not run.checkpoint_path.exists()


def test_answers_are_those_that_the_figures_are_of(tuned: Tuned) -> None:
    gold, answered = read(tuned.files[Split.TEST]), answer(tuned.run.path, tuned.files[Split.TEST])
    right = 0
    for row, said in zip(gold, answered, strict=True):
        if tuned.run.task == "tokens":
            places = [{key: each[key] for key in ("start", "end", "label")} for each in said["entities"]]
            right += sum(each in row["entities"] for each in places)
        else:
            right += said["answer"] == row["answer"]
    figures = tuned.run.figures["test"]
    if tuned.run.task == "tokens":
        assert right == round(figures["recall"] * sum(len(row["entities"]) for row in gold))
    else:
        figure = figures["exact_match" if tuned.run.task == "span" else "accuracy"]
        assert right == round(figure * len(gold))


def test_answers_can_be_read_as_rows_again_and_keep_other_keys(tuned: Tuned, tmp_path: Path) -> None:
    unanswered = [
        {**{key: value for key, value in row.items() if key not in ("entities", "answer")}, "id": number}
        for number, row in enumerate(read(tuned.files[Split.DEV]))
    ]
    answered = answer(tuned.run.path, write_rows(tmp_path / "new.jsonl", unanswered))
    assert [row["id"] for row in answered] == list(range(60))
    for row in answered:
        TASKS[tuned.run.task][0].parse(row, labelled=True)  # which refuses places that don't cut their text out


class Killed(Exception):
    """Stands for a process that ends in mid-training."""


@pytest.mark.parametrize("name", TASKS)
def test_a_broken_off_run_goes_on_to_the_same_weights_and_no_other_does(
    name: str, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        split: write_rows(tmp_path / f"{split}.jsonl", MAKERS[name](40, seed=seed))
        for seed, split in enumerate((Split.TRAIN, Split.DEV))
    }
    asked = options(start.folder, epochs=2)

    def train(out: str, **changes: Any) -> Path:
        given = {"task": TASKS[name][0], "files": files, "start": start, "options": asked, "seed": 3, **changes}
        return finetune(given.pop("task"), given.pop("files"), out=tmp_path / out, **given).path

    update, steps = training.loop.Training.update, iter(range(100))

    def update_until_killed(loop: Any, rows: list[int]) -> None:
        if next(steps) == 4:
            raise Killed
        update(loop, rows)

    with monkeypatch.context() as patch:
        patch.setattr(training.loop.Training, "update", update_until_killed)
        with pytest.raises(Killed):
            train("killed")
    with pytest.raises(BadRun, match="broken off"):
        answer(tmp_path / "killed", files[Split.DEV])
    with pytest.raises(BadRun, match="another seed: 3 there, 4 now; give another --out"):
        train("killed", seed=4)
    with pytest.raises(BadRun, match=r"another options: dropout 0\.0 there, dropout 0\.5 now"):
        train("killed", options=replace(asked, dropout=0.5))
    other = {**files, Split.DEV: write_rows(tmp_path / "other.jsonl", MAKERS[name](40, seed=9))}
    with pytest.raises(BadRun, match=r"another files: dev name dev\.jsonl"):
        train("killed", files=other)
    undisturbed, resumed = (load_file(train(out) / "model" / "model.safetensors") for out in ("whole", "killed"))
    for weight in undisturbed:
        assert torch.equal(undisturbed[weight], resumed[weight]), weight
    with pytest.raises(BadRun, match="finished run"):
        train("killed")


def test_a_frozen_encoder_stays_as_it_was(start: Start, tmp_path: Path) -> None:
    files = {
        split: write_rows(tmp_path / f"{split}.jsonl", MAKERS["tokens"](20, seed=1))
        for split in (Split.TRAIN, Split.DEV)
    }
    asked = options(start.folder, epochs=1, freeze=True)
    run = finetune(TokenLabelling(), files, start=start, options=asked, seed=1, out=tmp_path / "run")
    before, after = (load_file(folder / "model.safetensors") for folder in (start.folder, run.model_path))
    for name, weight in before.items():
        assert torch.equal(weight, after[name]), name


def changed(folder: Path, start: Start, change: Callable[[dict[str, Any]], Any]) -> Start:
    shutil.copytree(start.folder, folder)
    config = read_json(folder / "config.json")
    change(config)
    write_json(folder / "config.json", config)
    return resolve(str(folder), cache=folder)


@pytest.mark.parametrize(
    ("config", "changes", "message"),
    [
        ({"model_type": "gpt2"}, {}, "is a gpt2 decoder.*wenlei finetune tokens needs an encoder"),
        ({"vocab_size": 9}, {}, "tokens, its encoder 9 embeddings"),
        ({}, {"max_length": 65}, "--max-length 65 is more than the 64 positions"),
    ],
)
def test_starts_that_do_not_fit_are_refused_before_anything_is_written(
    config: dict[str, Any], changes: dict[str, int], message: str, start: Start, tmp_path: Path
) -> None:
    files = {
        split: write_rows(tmp_path / f"{split}.jsonl", MAKERS["tokens"](4, seed=1))
        for split in (Split.TRAIN, Split.DEV)
    }
    other = changed(tmp_path / "start", start, lambda data: data.update(config))
    with pytest.raises(BadInput, match=message):
        finetune(
            TokenLabelling(), files, start=other, options=options(other.folder, **changes), seed=1, out=tmp_path / "run"
        )
    assert not (tmp_path / "run").exists()


def test_texts_that_the_start_cannot_read_are_refused(start: Start, tmp_path: Path) -> None:
    rows = [{"text": "鹬蚌相争渔翁得利", "entities": [{"start": 0, "end": 1, "label": "鸟"}]}]
    files = {split: write_rows(tmp_path / f"{split}.jsonl", rows) for split in (Split.TRAIN, Split.DEV)}
    with pytest.raises(BadInput, match="80% of the texts' tokens are unknown"):
        finetune(TokenLabelling(), files, start=start, options=options(start.folder), seed=1, out=tmp_path / "run")


def test_rows_that_teach_nothing_are_refused(start: Start, tmp_path: Path) -> None:
    for task, row, message in (
        (TokenLabelling(), {"text": "好", "entities": []}, "none of the 1 train rows has an entity"),
        (
            AnswerSpans(),
            {"question": "好？", "context": "好", "answer": None},
            "none of the 1 train rows has an answer",
        ),
    ):
        file = write_rows(tmp_path / "rows.jsonl", [row])
        with pytest.raises(BadInput, match=message):
            finetune(
                task, {Split.TRAIN: file, Split.DEV: file}, start=start, options=options(start.folder), seed=1,
                out=tmp_path / "run",
            )  # fmt: skip


def test_folders_that_are_no_runs_are_told_from_runs(tmp_path: Path) -> None:
    with pytest.raises(BadRun, match=r"is not a run: no task\.json in it"):
        HeadRun.open(tmp_path)
    (tmp_path / "task.json").write_text("{")
    with pytest.raises(BadRun, match="can't be read"):
        HeadRun.open(tmp_path)
    write_json(tmp_path / "task.json", {"schema_version": 99})
    with pytest.raises(BadRun, match="schema 99, this wenlei reads 1; update it"):
        HeadRun.open(tmp_path)
    write_json(tmp_path / "task.json", {"schema_version": 1, "tusk": "tokens"})
    with pytest.raises(BadRun, match="can't be understood"):
        HeadRun.open(tmp_path)
