"""From runs to a comparison and its report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from model.bundle import Bundle
from model.comparison import FILE, REPORT, read_comparison
from model.errors import BadInput, BadRun, BadSnapshot, ParityFailed
from model.files import read_json, write_json
from model.metrics import evaluate, gold_matrix
from model.predictions import SplitPredictions, read_predictions, write_predictions
from model.run import Run
from model.snapshot import Snapshot, open_snapshot
from model.types import Split
from training.baselines import LinearOptions, LinearRecipe
from training.cli import app
from training.comparison import live
from training.comparison.candidates import read_contest
from training.comparison.comparing import compare
from training.comparison.live import AS_IT_IS, WRITING
from training.data import read
from training.export import export_run
from training.recipe import train

Trained = Callable[..., Path]


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Trains a linear run on so many samples; the same one again is not trained again."""
    folder = tmp_path_factory.mktemp("runs")

    def run(snapshot: Snapshot, *, limit: int, seed: int = 0) -> Path:
        path = folder / f"{snapshot.hash[:8]}-{limit}-seed{seed}"
        if not path.exists():
            recipe = LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(limit=limit), seed=seed)
            train(snapshot, recipe, out=path)
        return path

    return run


def wrong(run: Path, out: Path, *, share: float, seed: int) -> Path:
    """A run like `run`, whose seed is another and of whose answers a share is wrong."""
    opened = Run.open(run)
    said = read_predictions(run, opened.taxonomy)
    random = np.random.default_rng(seed)
    scores = said.scores.copy()
    flipped = random.random(len(scores)) < share
    scores[flipped] = scores[flipped][:, ::-1]
    out.mkdir()
    data = read_json(run / "run.json")
    write_json(out / "run.json", {**data, "seed": seed})
    samples = {sample.id: sample for sample in open_snapshot(Path(opened.snapshot_path)).samples()}
    rows = {split: [row for row, its in enumerate(said.splits) if its is split] for split in (Split.DEV, Split.TEST)}
    write_predictions(
        out,
        {split: SplitPredictions([samples[said.ids[row]] for row in own], scores[own]) for split, own in rows.items()},
    )
    (out / "model").symlink_to(run / "model")
    return out


def test_every_kind_of_task_is_compared(any_snapshot: Snapshot, trained: Trained, tmp_path: Path) -> None:
    runs = [trained(any_snapshot, limit=limit) for limit in (20, 100)]
    contest = read_contest(list(map(str, runs)), split=None, snapshot=None)
    assert contest.split is Split.TEST
    found = compare(contest, metric=None, margin=0.5, out=tmp_path / "out")
    assert read_comparison(tmp_path / "out") == json.loads(json.dumps(found))
    page = (tmp_path / "out" / REPORT).read_text(encoding="utf-8")
    samples = read(any_snapshot, Split.TEST)
    gold = gold_matrix([sample.labels for sample in samples], any_snapshot.taxonomy)
    for candidate in found["candidates"]:
        (its,) = candidate["runs"]
        run = Run.open(Path(its["path"]))
        figures = run.metrics["test"]
        for name, figure in candidate["figures"].items():
            assert figure["value"] == pytest.approx(figures[name])
            assert figure["low"] <= figure["value"] <= figure["high"]
        assert f"{100 * figures['accuracy']:.2f}" in page
        assert candidate["per_level"] == pytest.approx(figures.get("per_level", {}))
        assert candidate["speed"]["fp32"]["p50_ms"] > 0
        written = {part["name"]: part["accuracy"]["value"] for part in candidate["slices"] if part["kind"] == WRITING}
        assert len(written) == 5
        assert written[AS_IT_IS] == pytest.approx(figures["accuracy"])
        assert candidate["risk_coverage"]["risk"][-1] == pytest.approx(1 - figures["accuracy"])
        if candidate["confusion"]:
            assert np.sum(candidate["confusion"]) == len(samples)
            assert np.trace(candidate["confusion"]) == pytest.approx(figures["accuracy"] * len(gold))
    figures_of = [its["figures"][found["metric"]]["value"] for its in found["candidates"]]
    assert figures_of == sorted(figures_of, reverse=True)
    assert found["recommendation"]["reason"] in page


def test_a_clear_winner_is_recommended_and_the_texts_it_alone_has_right_are_counted(
    snapshot: Snapshot, trained: Trained, tmp_path: Path
) -> None:
    good = trained(snapshot, limit=100)
    bad = wrong(good, tmp_path / "bad", share=0.4, seed=1)
    contest = read_contest([f"好={good}", f"差={bad}"], split=Split.TEST, snapshot=None)
    found = compare(contest, metric=None, margin=0.5, out=tmp_path / "out", live=False)
    assert found["recommendation"]["candidate"] == "好"
    (pair,) = found["pairs"]
    assert pair["mcnemar"]["p_holm"] < 0.01
    right = [(candidate.predicted[0] == contest.gold).all(axis=1) for candidate in contest.candidates]
    assert pair["mcnemar"]["only_one"] == (right[0] & ~right[1]).sum()
    assert pair["flips"]["only_one"] == pair["mcnemar"]["only_one"]
    flipped = {flip["sample"] for flip in pair["examples"]}
    assert flipped <= {
        sample.id for sample, same in zip(contest.samples, right[0] == right[1], strict=True) if not same
    }


def test_the_seeds_of_one_recipe_are_one_candidate(snapshot: Snapshot, trained: Trained, tmp_path: Path) -> None:
    good = trained(snapshot, limit=100)
    others = [wrong(good, tmp_path / f"run-seed{seed}", share=0.1 * seed, seed=seed) for seed in (1, 2, 3)]
    weak = trained(snapshot, limit=20)
    contest = read_contest([*map(str, others), str(weak)], split=Split.TEST, snapshot=None)
    assert [candidate.name for candidate in contest.candidates] == ["run", weak.name]
    found = compare(contest, metric=None, margin=0.5, out=tmp_path / "out", live=False)
    its = next(each for each in found["candidates"] if each["name"] == "run")
    assert [run["seed"] for run in its["runs"]] == [1, 2, 3]
    accuracies = [
        evaluate(scores, contest.gold, snapshot.taxonomy, resamples=1)["accuracy"]
        for scores in contest.candidates[0].scores
    ]
    assert its["figures"]["accuracy"]["value"] == pytest.approx(np.mean(accuracies))
    assert its["figures"]["accuracy"]["low"] <= min(accuracies) + 0.1


def test_a_bundle_is_exported_once_and_again_when_the_run_is_another(
    snapshot: Snapshot, trained: Trained, tmp_path: Path
) -> None:
    runs = [str(trained(snapshot, limit=limit)) for limit in (20, 100)]
    for _ in range(2):
        compare(read_contest(runs, split=None, snapshot=None), metric=None, margin=0.5, out=tmp_path / "out")
    assert len(list((tmp_path / "out" / "bundles").iterdir())) == 2


def test_a_run_that_can_t_be_exported_is_compared_all_the_same(
    snapshot: Snapshot, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, other = (trained(snapshot, limit=limit) for limit in (100, 20))

    def failing(run: Run, **options: Any) -> Bundle:
        if run.path == other:
            raise ParityFailed("another answer")
        return export_run(run, **options)

    monkeypatch.setattr(live, "export_run", failing)
    contest = read_contest([str(good), str(other)], split=None, snapshot=None)
    found = compare(contest, metric=None, margin=0.5, out=tmp_path / "out")
    speeds = {its["name"]: bool(its["speed"]) for its in found["candidates"]}
    assert speeds == {good.name: True, other.name: False}
    assert "写法 writing" in (tmp_path / "out" / REPORT).read_text(encoding="utf-8")


def test_labels_and_texts_in_the_report_are_escaped(snapshot: Snapshot, trained: Trained, tmp_path: Path) -> None:
    good = trained(snapshot, limit=100)
    bad = wrong(good, tmp_path / "bad", share=0.4, seed=1)
    contest = read_contest([f"<b>好={good}", f"差={bad}"], split=None, snapshot=None)
    compare(contest, metric=None, margin=0.5, out=tmp_path / "out", live=False)
    page = (tmp_path / "out" / REPORT).read_text(encoding="utf-8")
    assert "<b>好" not in page
    assert "&lt;b&gt;好" in page
    assert "<script" not in page


def test_runs_on_different_snapshots_are_refused_with_both_named(
    snapshot: Snapshot, multi_snapshot: Snapshot, trained: Trained
) -> None:
    one, other = trained(snapshot, limit=100), trained(multi_snapshot, limit=100)
    with pytest.raises(BadRun, match="can't be compared") as refused:
        read_contest([str(one), str(other)], split=None, snapshot=None)
    assert snapshot.hash in str(refused.value)
    assert multi_snapshot.hash in str(refused.value)
    assert f"{snapshot.counts['train']} train" in str(refused.value)


def test_what_can_t_be_compared_is_refused(snapshot: Snapshot, trained: Trained, tmp_path: Path) -> None:
    run = trained(snapshot, limit=100)
    with pytest.raises(BadInput, match="two candidates at least"):
        read_contest([str(run)], split=None, snapshot=None)
    with pytest.raises(BadInput, match="a run stands twice"):
        read_contest([f"A={run},{run}", f"B={run}"], split=None, snapshot=None)
    with pytest.raises(BadInput, match="two candidates are called 'A'"):
        read_contest([f"A={run}", f"A={run}"], split=None, snapshot=None)
    with pytest.raises(BadRun, match="is not a run"):
        read_contest([str(run), str(tmp_path)], split=None, snapshot=None)
    with pytest.raises(BadRun, match="predictions of 0 train samples"):
        read_contest([f"A={run}", f"B={run}"], split=Split.TRAIN, snapshot=None)
    broken = wrong(run, tmp_path / "broken", share=0, seed=5)
    write_json(broken / "run.json", {**read_json(broken / "run.json"), "status": "running"})
    with pytest.raises(BadRun, match="was broken off"):
        read_contest([f"A={run}", f"B={broken}"], split=None, snapshot=None)
    contest = read_contest([f"A={run}", f"B={run}"], split=None, snapshot=None)
    with pytest.raises(BadInput, match="--metric f2: choose one of accuracy, macro_f1, micro_f1"):
        compare(contest, metric="f2", margin=0.5, out=tmp_path / "out", live=False)
    assert not (tmp_path / "out").exists()


def test_a_snapshot_that_was_moved_is_asked_for(snapshot: Snapshot, trained: Trained, tmp_path: Path) -> None:
    run = wrong(trained(snapshot, limit=100), tmp_path / "run", share=0, seed=5)
    write_json(run / "run.json", {**read_json(run / "run.json"), "snapshot_path": str(tmp_path / "gone")})
    with pytest.raises(BadSnapshot, match="say where it is with --snapshot"):
        read_contest([f"A={run}", f"B={run}"], split=None, snapshot=None)
    assert read_contest([f"A={run}", f"B={run}"], split=None, snapshot=snapshot.path).snapshot.hash == snapshot.hash


def test_the_command_shows_the_table_and_says_what_to_take(
    snapshot: Snapshot, trained: Trained, tmp_path: Path
) -> None:
    runs = [str(trained(snapshot, limit=limit)) for limit in (20, 100)]
    out = tmp_path / "out"
    result = CliRunner().invoke(app, ["compare", *runs, "--out", str(out), "--no-live"])
    assert result.exit_code == 0, result.output
    assert read_comparison(out)["recommendation"]["reason"][:6] in result.output.replace("\n", "")
    assert (out / FILE).exists()
    printed = CliRunner().invoke(app, ["compare", *runs, "--out", str(out), "--no-live", "--json"])
    assert json.loads(printed.stdout)["snapshot"] == snapshot.hash
