"""A comparison from its runs to its folder: figures, pairs, a recommendation, and the report."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from model.comparing import RESAMPLES, Resampled, over_seeds, resample
from model.comparison import FILE, METRICS, REPORT, SCHEMA_VERSION, CandidateShape, ComparisonShape
from model.console import say
from model.errors import BadInput
from model.files import write_json
from model.provenance import describe_environment, now
from model.reports.page import write_page
from model.types import Text
from training.comparison.candidates import Contest
from training.comparison.live import exported, measure_robustness, measure_speed
from training.comparison.pairing import Ranked, pairs
from training.comparison.recommending import recommend
from training.comparison.report import render_report
from training.comparison.slicing import slices
from training.comparison.standing import standing

BUNDLES = "bundles"  # the folder of what was exported to measure its speed


def compare(contest: Contest, *, metric: str | None, margin: float, out: Path, live: bool = True) -> ComparisonShape:
    """Judge the candidates of `contest`, and leave what was found and its report in the folder `out`.

    metric: one of `METRICS`, by which the best is chosen; unless given, micro-F1 where a text may carry several labels,
    else accuracy. margin: in points, by how much another may be worse and still count as no worse. live: export the
    first run of each, and see how fast it answers, and how it takes odd writing.

    Raises:
        BadInput: there is no such metric.
    """
    metric = metric or ("micro_f1" if contest.snapshot.taxonomy.multiple else "accuracy")
    if metric not in METRICS:
        raise BadInput(f"--metric {metric}: choose one of {', '.join(METRICS)}")
    say(f"判断 {len(contest.samples):,} 条 {contest.split} | judging {len(contest.samples):,} {contest.split} samples")
    draws = _draws(contest)
    parts = slices(contest)
    candidates = [standing(candidate, contest, draws[candidate.name], parts) for candidate in contest.candidates]
    if live:
        _look_at_bundles(contest, candidates, out / BUNDLES)
    candidates.sort(key=lambda its: -its["figures"][metric]["value"])
    by_name = {candidate.name: candidate for candidate in contest.candidates}
    ranked = [
        Ranked(
            by_name[its["name"]],
            {name: its["figures"][name]["value"] for name in METRICS},
            {name: over_seeds(getattr(draws[its["name"]], name)) for name in METRICS},
        )
        for its in candidates
    ]
    found = pairs(contest, ranked, metric=metric, margin=margin / 100)
    comparison: ComparisonShape = {
        "schema_version": SCHEMA_VERSION,
        "made_at": now(),
        "environment": describe_environment(),
        "snapshot": contest.snapshot.hash,
        "split": contest.split.value,
        "samples": len(contest.samples),
        "labels": list(contest.snapshot.taxonomy.labels),
        "metric": metric,
        "margin": margin,
        "resamples": RESAMPLES,
        "candidates": candidates,
        "pairs": found,
        "recommendation": recommend(candidates, found, metric=metric, margin=margin),
    }
    out.mkdir(parents=True, exist_ok=True)
    write_page(render_report(comparison), out / REPORT)
    write_json(out / FILE, comparison)
    return comparison


def _draws(contest: Contest) -> Mapping[str, Resampled]:
    """Of each candidate the figures of its runs, all on the same resamples."""
    every = [predicted for candidate in contest.candidates for predicted in candidate.predicted]
    drawn = resample(contest.gold, every)
    ends = np.cumsum([len(candidate.runs) for candidate in contest.candidates])
    own = {
        candidate.name: slice(end - len(candidate.runs), end)
        for candidate, end in zip(contest.candidates, ends.tolist(), strict=True)
    }
    return {name: Resampled(*(getattr(drawn, metric)[rows] for metric in METRICS)) for name, rows in own.items()}


def _look_at_bundles(contest: Contest, candidates: Sequence[CandidateShape], folder: Path) -> None:
    runs = {candidate.name: candidate.runs[0] for candidate in contest.candidates}
    bundles = exported(runs, snapshot=contest.snapshot, folder=folder)
    speed = measure_speed(bundles, [Text(sample.text, sample.pair) for sample in contest.samples])
    robustness = measure_robustness(bundles, contest)
    for candidate in candidates:
        if candidate["name"] in bundles:
            candidate["speed"] = speed[candidate["name"]]
            candidate["slices"] += robustness[candidate["name"]]
