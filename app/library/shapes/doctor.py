"""What the doctor found, as the command prints it and HTTP answers it."""

from typing import Any

from typing_extensions import TypedDict

from app.library.doctor.applying import Applied
from app.library.doctor.examining import Examination
from app.library.doctor.findings import Example, Finding


class ExampleShape(TypedDict):
    """A sample that shows what a finding means. text, pair: None where the sample is gone meanwhile."""

    sample: str
    text: str | None
    pair: str | None
    labels: list[str] | None
    proposed: list[str] | None
    score: float | None
    why: str


class FindingShape(TypedDict):
    """One thing that was looked at. to_review: how many samples `--to-review` would queue."""

    kind: str
    severity: str
    count: int
    summary: str
    summary_en: str
    figures: dict[str, Any]
    examples: list[ExampleShape]
    commands: list[str]
    to_review: int


class JudgedShape(TypedDict):
    """The training by folds whose predictions were read; how many were, and how many were left out, and why."""

    run: str
    snapshot: str
    predictions: int
    gone: int
    relabelled: int
    leaked: int


class AppliedShape(TypedDict):
    """What cleaning did, or would do: then `sweep` is None. found: labels that are so probably wrong.

    changed: samples that have other labels or none then. kept: left out for a person's word. held_out: left to people,
    for they are in dev or test.
    """

    action: str
    min_confidence: float
    found: int
    changed: int
    kept: int
    held_out: int
    sweep: int | None


class ExaminationShape(TypedDict):
    """What was found in a library. by_person: samples whose labels are a person's."""

    library: str
    at: str
    taxonomy_version: int
    samples: int
    labelled: int
    by_person: int
    near: float
    max_length: int
    snapshot: str | None
    run: JudgedShape | None
    findings: list[FindingShape]


def examination_shape(found: Examination) -> ExaminationShape:
    """All of it, as JSON."""
    judged = found.judged
    return {
        "library": found.library,
        "at": found.at,
        "taxonomy_version": found.version,
        "samples": found.samples,
        "labelled": found.labelled,
        "by_person": found.by_person,
        "near": found.questions.near,
        "max_length": found.max_length,
        "snapshot": found.snapshot,
        "run": None
        if judged is None
        else {
            "run": judged.run.path.name,
            "snapshot": judged.run.snapshot,
            "predictions": len(judged.predictions),
            "gone": judged.gone,
            "relabelled": judged.relabelled,
            "leaked": judged.leaked,
        },
        "findings": [_finding(found, each) for each in found.findings],
    }


def _finding(found: Examination, finding: Finding) -> FindingShape:
    return {
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "count": finding.count,
        "summary": finding.summary,
        "summary_en": finding.summary_en,
        "figures": dict(finding.figures),
        "examples": [_example(found, each) for each in finding.examples],
        "commands": list(finding.commands),
        "to_review": len(finding.reviews),
    }


def _example(found: Examination, example: Example) -> ExampleShape:
    sample = found.texts.get(example.sample_id)
    return {
        "sample": example.sample_id,
        "text": sample.text if sample else None,
        "pair": sample.pair if sample else None,
        "labels": None if example.labels is None else list(example.labels),
        "proposed": None if example.proposed is None else list(example.proposed),
        "score": example.score,
        "why": example.why,
    }


def applied_shape(applied: Applied) -> AppliedShape:
    """What cleaning did."""
    return {
        "action": applied.action.value,
        "min_confidence": applied.min_confidence,
        "found": applied.found,
        "changed": applied.changed,
        "kept": applied.kept,
        "held_out": applied.held_out,
        "sweep": applied.sweep,
    }
