"""The demo, on fewer reviews and from a tiny start: every command of it is real."""

from pathlib import Path

import pytest
from starts import tiny_start

import app.demo
from app.demo import TEXTS, StepFailed, run, run_demo, show, train, verdict
from model.bundle import open_bundle
from model.files import read_json
from model.snapshot import open_snapshot


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A demo that ends in a minute."""
    write_all = app.demo.write_reviews
    start = tiny_start(tmp_path / "start", write_all(tmp_path / "all.jsonl").read_text(encoding="utf-8"))

    def write_some(path: Path) -> Path:
        lines = write_all(path).read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[::40]), encoding="utf-8")
        return path

    options = ("--init", str(start), "--epochs", "1", "--max-length", "32", "--learning-rate", "1e-3")
    monkeypatch.setattr(app.demo, "write_reviews", write_some)
    monkeypatch.setitem(app.demo.OPTIONS, "bert", options)
    monkeypatch.setattr(app.demo, "TIMED_TEXTS", 20)


@pytest.mark.usefixtures("small")
def test_it_closes_the_loop_and_does_not_train_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # What the user has set for libraries of their own is none of the demo's business.
    monkeypatch.setenv("WENLEI_DATABASE_URL", "postgresql://nobody@nowhere.invalid/none")
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    home = tmp_path / "demo"
    summary = run_demo(home)
    assert read_json(home / "summary.json") == summary
    counts = summary["snapshot"]["counts"]
    assert summary["import"]["added"] == counts["total"] + counts["conflicts"]
    assert open_snapshot(Path(summary["snapshot"]["path"])).counts["test"] > 30
    assert summary["doctor"]["conflicts"] >= counts["conflicts"]
    assert "样本库体检" in (home / "doctor.html").read_text(encoding="utf-8")
    assert [(row["arch"], row["precision"]) for row in summary["models"]] == [
        ("linear", "fp32"),
        ("bert", "fp32"),
        ("bert", "int8"),
    ]
    assert all(row["milliseconds"] > 0 and 0 < row["macro_f1"] <= 1 for row in summary["models"])
    assert [answer["text"] for answer in summary["served"]] == list(TEXTS)
    assert {answer["label"] for answer in summary["served"]} <= {"positive", "negative"}
    version = open_bundle(home / "bundle").version

    snapshot = Path(summary["snapshot"]["path"])
    assert train(home, "bert", snapshot, home / "bundle") == home / "bundle"
    assert open_bundle(home / "bundle").version == version
    told = capsys.readouterr().err
    assert [told.count(f"$ wenlei {command}") for command in ("train", "export")] == [2, 2]

    show(summary, app.demo.Console())
    shown = capsys.readouterr().out
    assert verdict(summary["models"])[:12] in shown
    assert f"wenlei serve --bundle {home}/bundle" in shown.replace("\n", "")


def test_a_step_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="the demo stopped at: wenlei classify --bundle nowhere"):
        run(tmp_path, "classify", "--bundle", "nowhere", "好")


@pytest.mark.parametrize(
    ("bert", "said"), [(0.9, "beats the linear baseline by 10.00"), (0.75, "5.00 points of accuracy below")]
)
def test_the_verdict_says_plainly_which_is_better(bert: float, said: str) -> None:
    rows = [
        {"arch": "linear", "precision": "fp32", "accuracy": 0.8},
        {"arch": "bert", "precision": "fp32", "accuracy": bert},
    ]
    assert said in verdict(rows)
