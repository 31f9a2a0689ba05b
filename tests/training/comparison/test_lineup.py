"""All architectures on one snapshot, by real commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from model.comparison import read_comparison
from model.errors import BadInput
from model.run import Run
from model.snapshot import Snapshot
from training.cli import app
from training.comparison.lineup import Entry, lineup, run_lineup


def entries(snapshot: Snapshot, folder: Path, *archs: str, seeds: tuple[int, ...] = (0,)) -> list[Entry]:
    return lineup(
        snapshot.path, archs, starts={}, seeds=seeds, max_length=32, limit=None, folder=folder, home=folder
    )  # fmt: skip


def test_the_cheapest_comes_first_and_the_teacher_before_its_student(snapshot: Snapshot, tmp_path: Path) -> None:
    found = entries(snapshot, tmp_path, "tinybert", "bert", "textcnn", "linear", seeds=(0, 1))
    assert [entry.arch for entry in found] == [
        arch for arch in ("linear", "textcnn", "bert", "tinybert") for _ in (0, 1)
    ]
    teacher, student = found[5], found[7]
    assert student.command[student.command.index("--teacher") + 1] == str(teacher.out)
    assert "--max-length" not in found[0].command


@pytest.mark.parametrize(
    ("archs", "starts", "said"),
    [
        (["linear", "svm"], {}, "--archs: svm is none of linear, fasttext"),
        (["gpt"], {}, "--start gpt=RUN"),
        (["tinybert"], {}, "learns from bert; give both"),
        (["linear"], {"gpt": "x"}, "--start gpt=… has no meaning"),
        (["linear"], {"linear": "x"}, "--start linear=… has no meaning"),
    ],
)
def test_what_can_t_be_trained_is_refused_before_anything_is(
    archs: list[str], starts: dict[str, str], said: str, snapshot: Snapshot, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=said):
        lineup(
            snapshot.path, archs, starts=starts, seeds=[0], max_length=32, limit=None, folder=tmp_path, home=tmp_path
        )  # fmt: skip


def test_all_are_trained_and_compared_and_not_trained_again(snapshot: Snapshot, tmp_path: Path) -> None:
    command = ["baselines", "--snapshot", str(snapshot.path), "--archs", "fasttext,linear", "--home", str(tmp_path)]
    command += ["--out", str(tmp_path / "out"), "--no-live", "--json"]
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0, first.output
    found = read_comparison(tmp_path / "out")
    assert {candidate["name"] for candidate in found["candidates"]} == {"linear", "fasttext"}
    assert json.loads(first.stdout)["snapshot"] == snapshot.hash
    finished = {arch: Run.open(tmp_path / "out" / f"{arch}-seed0").finished_at for arch in ("linear", "fasttext")}
    second = CliRunner().invoke(app, command)
    assert second.exit_code == 0, second.output
    assert finished == {arch: Run.open(tmp_path / "out" / f"{arch}-seed0").finished_at for arch in finished}


def test_one_that_fails_stops_no_other_and_what_there_is_no_time_for_is_told(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    (broken,) = entries(snapshot, tmp_path, "bert")
    nothing = Entry("bert", 0, broken.out, (*broken.command, "--init", str(tmp_path / "nothing")))
    (linear,) = entries(snapshot, tmp_path, "linear")
    outcome = run_lineup([nothing, linear], minutes=None)
    assert (outcome.failed, outcome.done) == ([nothing], [linear])
    assert outcome.candidates == [f"linear={linear.out}"]
    (late,) = entries(snapshot, tmp_path, "textcnn")
    outcome = run_lineup([linear, late], minutes=0)
    assert (outcome.done, outcome.left_out) == ([linear], [late])


@pytest.mark.parametrize(
    ("option", "said"), [("--seeds=0,x", "--seeds 0,x"), ("--start=gpt", "--start gpt: give ARCH=RUN")]
)
def test_options_that_can_t_be_read(option: str, said: str, snapshot: Snapshot, tmp_path: Path) -> None:
    ended = CliRunner().invoke(app, ["baselines", "--snapshot", str(snapshot.path), "--home", str(tmp_path), option])
    assert isinstance(ended.exception, BadInput)
    assert said in str(ended.exception)
