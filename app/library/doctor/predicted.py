"""What predictions by folds tell of labels: probable errors, texts of no class, pairs of classes, hard samples."""

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from app.library.doctor.census import Census
from app.library.doctor.findings import Example, Finding, Kind
from app.library.doctor.label_errors import Labels, Verdicts, judge_labels, still_standing
from app.library.doctor.predicted_classes import examine_pairs
from app.library.doctor.predicted_samples import examine_hard_samples, examine_off_taxonomy
from app.library.doctor.shares import graded, named, percent
from app.library.review.queueing import Reason
from app.store.reviews import Wanted
from model.predictions import Predictions
from model.reports.plots import bars
from model.run import Run
from model.types import IntArray, Split, Taxonomy

NOTABLE, SERIOUS = (
    0.002,
    0.03,
)  # of the judged samples; well-kept sets of the field have one to three in a hundred wrong
EXAMPLES = 50  # of errors, which are read one by one
PAIRS = 15  # that are drawn
CONFIDENCES = tuple(round(0.5 + step / 20, 2) for step in range(11))


def predicted_findings(census: Census, run: Run, predictions: Predictions) -> list[Finding]:
    """What the predictions of `run` tell of the labels that the library has today; others are left out.

    Raises:
        UnknownLabel: a label of the predictions is not in the taxonomy of the run.
    """
    verdicts = judge_labels(predictions, run.taxonomy, still_standing(census, predictions))
    command = f"wenlei library doctor --library {census.name} --run {shlex.quote(str(run.path))}"
    by = run.path.name
    return [
        examine_label_errors(verdicts, by=by, command=command),
        examine_off_taxonomy(verdicts, by=by, command=command),
        examine_pairs(verdicts, library=census.name),
        examine_hard_samples(verdicts, by=by, command=command),
    ]


def examine_label_errors(verdicts: Verdicts, *, by: str, command: str) -> Finding:
    """Labels that are more probably wrong than right. by: the name of the run; command: the doctor's, with it."""
    places = verdicts.errors()
    estimated = float(verdicts.wrong.sum())
    share = percent(estimated, len(verdicts))
    skipped = (
        (
            f"；另有 {len(verdicts.unjudged)} 个类别样本太少或都在一折里，判断不了",
            f"; {len(verdicts.unjudged)} classes can't be judged",
        )
        if verdicts.unjudged
        else ("", "")
    )
    found = f"{len(verdicts):,} 条样本的标签中，估计约 {estimated:,.0f} 条（{share}）有误，{len(places):,} 条多半有误"
    found_en = (
        f"of {len(verdicts):,} samples about {estimated:,.0f} ({share}) seem mislabelled, {len(places):,} probably"
    )
    return Finding(
        kind=Kind.LABEL_ERRORS,
        severity=graded(len(places) / max(len(verdicts), 1), notable=NOTABLE, serious=SERIOUS),
        count=len(places),
        summary=found + skipped[0],
        summary_en=found_en + skipped[1],
        figures=_figures(verdicts, places),
        examples=tuple(_example(verdicts, place) for place in places[:EXAMPLES].tolist()),
        commands=(
            f"{command} --to-review label_errors",
            f"{command} --apply relabel --min-confidence 0.9 --dry-run",
            f"{command} --apply drop --min-confidence 0.9 --dry-run",
        )
        if len(places)
        else (),
        reviews=tuple(
            Wanted(
                sample_id=verdicts.ids[place],
                reason=Reason.LABEL_ERROR,
                value=float(verdicts.wrong[place]),
                proposed=verdicts.proposed[place],
                proposed_by=by,
                confidence=None if verdicts.proposed[place] is None else float(verdicts.confidence[place]),
                details={"given": list(verdicts.given[place])},
            )
            for place in places.tolist()
        ),
    )


def _figures(verdicts: Verdicts, places: IntArray) -> dict[str, Any]:
    wrong, confidence = verdicts.wrong, verdicts.confidence
    by_split = {
        split.value: {"judged": len(rows), "estimated": round(float(wrong[rows].sum()), 1)}
        for split in Split
        if (rows := [place for place, its in enumerate(verdicts.splits) if its is split])
    }
    classes = sorted(zip(verdicts.classes, verdicts.false, verdicts.missing, verdicts.counts, strict=True), key=_worst)
    changes = Counter(_change(verdicts, place) for place in places.tolist())
    levels = Counter(
        level
        for place in places.tolist()
        if (level := _level(verdicts.taxonomy, verdicts.given[place], verdicts.proposed[place]))
    )
    plots = [
        {
            "title": "把握：所建议的标签有多大可能正确",
            "title_en": "Confidence: how probable it is that the proposed labels are right",
            "histogram": {
                "edges": list(CONFIDENCES),
                "counts": np.histogram(confidence[places], bins=CONFIDENCES)[0].tolist(),
            },
            "x": "把握 confidence",
            "mark": None,
            "mark_name": "",
        },
        bars("最多的改法", "The most frequent changes", changes.most_common(PAIRS)),
        bars(
            "各类别中估计有误的比例",
            "Share of each class that seems mislabelled",
            [(label, round(100 * float(false) / int(count), 1)) for label, false, _, count in classes[:PAIRS]],
            unit="%",
        ),
    ]
    return {
        "judged": len(verdicts),
        "estimated": round(float(wrong.sum()), 1),
        "splits": by_split,
        "classes": [
            {"label": label, "samples": int(count), "false": round(float(false), 1), "missing": round(float(lacks), 1)}
            for label, false, lacks, count in classes
        ],
        "levels": {str(level): count for level, count in sorted(levels.items())},
        "at_confidence": [
            {
                "min_confidence": lowest,
                "drop": int(np.count_nonzero(wrong[places] >= lowest)),
                "relabel": int(np.count_nonzero(confidence[places] >= lowest)),
            }
            for lowest in CONFIDENCES[:-1]
        ],
        "unjudged": {"classes": list(verdicts.unjudged), "samples": verdicts.left_out},
        "plots": plots if len(places) else [],
    }


def _worst(row: tuple[str, float, float, int]) -> float:
    _, false, _, count = row
    return -float(false) / int(count)


def _example(verdicts: Verdicts, place: int) -> Example:
    proposed = verdicts.proposed[place]
    level = _level(verdicts.taxonomy, verdicts.given[place], proposed)
    told = [
        f"有误的可能 wrong {verdicts.wrong[place]:.3f}",
        *([f"第 {level} 级起不同 differs from level {level}"] if level else []),
        *(["没有别的类别合适 no class fits better"] if proposed is None else []),
    ]
    return Example(
        sample_id=verdicts.ids[place],
        labels=verdicts.given[place],
        proposed=proposed,
        score=float(verdicts.wrong[place]),
        why="，".join(told),
    )


def _change(verdicts: Verdicts, place: int) -> str:
    """Which labels go, and which come instead."""
    given, proposed = verdicts.given[place], verdicts.proposed[place]
    gone = [label for label in given if label not in (proposed or ())]
    come = [label for label in proposed or () if label not in given]
    return f"{named(gone) or '+'} → {named(come) or '×'}"


def _level(taxonomy: Taxonomy, given: Labels, proposed: Sequence[str] | None) -> int | None:
    """The first level, from 1, at which a path goes wrong; None without levels, or where there is no other path."""
    gone = [taxonomy.levels(label) for label in given if label not in (proposed or ())]
    come = [taxonomy.levels(label) for label in proposed or () if label not in given]
    if taxonomy.level_sep is None or not gone or not come:
        return None
    return 1 + max(_shared(one, other) for one in gone for other in come)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many levels two paths have in common from the root."""
    pairs = list(zip(one, other, strict=False))
    return next((level for level, (left, right) in enumerate(pairs) if left != right), len(pairs))
