"""What each candidate is worth by itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from model.comparing import Draws, Resampled, interval, over_seeds
from model.comparison import METRICS, CandidateShape, FigureShape
from model.curves import reliability, risk_coverage
from model.metrics import BoolArray, evaluate, sureness
from model.selective import confidences
from training.comparison.candidates import Candidate, Contest
from training.comparison.slicing import Slice

MIB = 1 << 20
SLICE_RESAMPLES = 1000


def standing(
    candidate: Candidate,
    contest: Contest,
    draws: Resampled,
    parts: Sequence[Slice],
) -> CandidateShape:
    """All figures that its predictions give; draws: of its runs alone."""
    taxonomy, gold = contest.snapshot.taxonomy, contest.gold
    found = [
        evaluate(scores, gold, taxonomy, thresholds=run.calibration.get("thresholds"), resamples=1)
        for run, scores in zip(candidate.runs, candidate.scores, strict=True)
    ]
    exact = np.stack([(predicted == gold).all(axis=1) for predicted in candidate.predicted])
    scores, predicted = candidate.scores[0], candidate.predicted[0]
    curve = risk_coverage(confidences(scores, predicted, multiple=taxonomy.multiple), exact[0])
    return {
        "name": candidate.name,
        "runs": [{"path": str(run.path.resolve()), "arch": run.arch, "seed": run.seed} for run in candidate.runs],
        "figures": {metric: figure(_mean(found, metric), over_seeds(getattr(draws, metric))) for metric in METRICS},
        "per_label": {label: _mean([one["per_label"][label] for one in found], "f1") for label in taxonomy.labels},
        "per_level": {
            level: _mean([one["per_level"] for one in found], level) for level in found[0].get("per_level", {})
        },
        "confusion": [] if taxonomy.multiple else _confusion(candidate, gold),
        "ece": _mean(found, "ece"),
        "temperature": float(np.mean([run.calibration["temperature"] for run in candidate.runs])),
        "reliability": [
            {"sure": each.sure, "right": each.right, "n": each.n}
            for each in reliability(*sureness(scores, gold, exact[0], taxonomy))
        ],
        "risk_coverage": {"coverage": curve.coverage, "risk": curve.risk, "area": curve.area},
        "slices": [
            {"kind": part.kind, "name": part.name, "n": int(part.rows.sum()), "accuracy": accuracy(exact[:, part.rows])}
            for part in parts
        ],
        "seconds": float(np.mean([run.cost["seconds"] for run in candidate.runs])),
        "memory_mib": max(run.cost["peak_memory_mib"] for run in candidate.runs),
        "size_mib": _size(candidate.runs[0].model_path),
        "speed": {},
    }


def figure(value: float, draws: Draws) -> FigureShape:
    """A figure with the interval of its resamples."""
    low, high = interval(draws)
    return {"value": value, "low": low, "high": high}


def _mean(figures: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([its[name] for its in figures]))


def _confusion(candidate: Candidate, gold: BoolArray) -> list[list[float]]:
    counts = [gold.T.astype(np.float64) @ predicted for predicted in candidate.predicted]
    found: list[list[float]] = np.mean(counts, axis=0).tolist()
    return found


def accuracy(exact: BoolArray) -> FigureShape:
    """exact: (n_runs, n), whether each run has each text right."""
    n = exact.shape[1]
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), SLICE_RESAMPLES)
    return figure(float(exact.mean()), over_seeds((exact @ drawn.T) / n))


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors")) / MIB
