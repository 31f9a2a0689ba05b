"""A run starts, goes on where it was broken off, and never mixes with another."""

import json

import numpy as np
import pytest

from model.errors import BadRun
from model.run import Run, start_run
from model.types import Task, Taxonomy

TAXONOMY = Taxonomy(Task.HIERARCHICAL, ("组织-裁员", "组织-罢工"), level_sep="-", multiple=True)
CONFIG = {"epochs": 3, "layers": (1, 2), "learning_rate": 2e-5}


def start(path, **changes):
    asked = {"arch": "bert", "config": CONFIG, "seed": 7, "snapshot": "a" * 32, "snapshot_path": "/snapshots/a"}
    return start_run(Run(path=path, **{**asked, "taxonomy": TAXONOMY, **changes}))


def test_a_new_run_says_what_is_being_trained_and_on_which_machine(tmp_path):
    run = start(tmp_path / "runs" / "one")
    data = json.loads((tmp_path / "runs" / "one" / "run.json").read_text())
    assert data["status"] == "running"
    assert (data["arch"], data["seed"], data["snapshot"]) == ("bert", 7, "a" * 32)
    assert data["taxonomy"]["labels"] == ["组织-裁员", "组织-罢工"]
    assert data["environment"]["python"].startswith("3.")
    assert data["environment"]["numpy"] == np.__version__
    assert data["started_at"].endswith("+00:00")
    assert run.model_path.parent == run.checkpoint_path.parent == run.path


def test_a_broken_off_run_goes_on(tmp_path):
    first = start(tmp_path / "run")
    again = start(tmp_path / "run")
    assert again.started_at == first.started_at
    assert again.taxonomy == TAXONOMY
    assert list((tmp_path / "run").iterdir()) == [tmp_path / "run" / "run.json"]


def test_a_snapshot_that_was_moved_is_still_the_same(tmp_path):
    start(tmp_path / "run")
    assert start(tmp_path / "run", snapshot_path="/elsewhere").snapshot_path == "/snapshots/a"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"seed": 8}, "another seed: 7 there, 8 now"),
        ({"arch": "linear"}, "another arch: bert there, linear now"),
        ({"snapshot": "b" * 32}, "another snapshot: a"),
        ({"config": {**CONFIG, "epochs": 4}}, r"another config: epochs \d there, epochs 4 now; give"),
    ],
)
def test_another_training_does_not_go_on_with_it(tmp_path, change, reason):
    start(tmp_path / "run")
    with pytest.raises(BadRun, match=reason):
        start(tmp_path / "run", **change)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "holiday.txt").write_text("mine")
    with pytest.raises(BadRun, match="is not empty and not a run; give another --out"):
        start(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.txt"]


def test_an_empty_folder_will_do(tmp_path):
    assert start(tmp_path).status == "running"


def test_a_finished_run_keeps_its_results_and_is_not_trained_again(tmp_path):
    done = start(tmp_path).finish(metrics={"test": {"accuracy": 0.9}}, calibration={"temperature": 1.5})
    opened = Run.open(tmp_path)
    assert opened.status == "done"
    assert opened.metrics == {"test": {"accuracy": 0.9}}
    assert opened.calibration == {"temperature": 1.5}
    assert opened.finished_at == done.finished_at != ""
    with pytest.raises(BadRun, match="holds a finished run"):
        start(tmp_path)


def test_an_unfinished_run_is_opened_only_when_asked(tmp_path):
    start(tmp_path)
    with pytest.raises(BadRun, match="was broken off; run the same wenlei train command again"):
        Run.open(tmp_path)
    assert Run.open(tmp_path, finished=False).status == "running"


def test_what_is_no_run_is_named_so(tmp_path):
    with pytest.raises(BadRun, match="is not a run: no run"):
        Run.open(tmp_path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{half", "can't be read"),
        ("[]", "can't be understood"),
        ('{"schema_version": 1}', "can't be understood"),
        ('{"schema_version": "one"}', "can't be understood"),
        ('{"schema_version": 2}', "has schema 2, this wenlei reads 1; update it"),
    ],
)
def test_a_spoilt_or_newer_run_is_refused(tmp_path, content, reason):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(BadRun, match=reason):
        Run.open(tmp_path, finished=False)


def test_a_folder_that_run_json_can_not_be_read_from_still_says_why(tmp_path):
    (tmp_path / "run.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadRun, match="can't be read"):
        Run.open(tmp_path)


def test_a_run_json_that_is_no_file_is_refused(tmp_path):
    (tmp_path / "run.json").mkdir()
    with pytest.raises(BadRun, match=r"run\.json can't be read"):
        Run.open(tmp_path)
