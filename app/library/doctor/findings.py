"""What the doctor finds: each finding with its figures, some examples, the next command, and what to review."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from app.store.reviews import Wanted


class Kind(StrEnum):
    """What can be found. Those after `SCRIPTS` need predictions of a training by folds."""

    DUPLICATES = "duplicates"  # near duplicates
    LEAKAGE = "leakage"  # near duplicates in different splits
    CONFLICTS = "conflicts"  # persons or imports disagree on a text, or on near duplicates
    SPARSE_CLASSES = "sparse_classes"
    BALANCE = "balance"
    LENGTHS = "lengths"  # against what the model reads
    SCRIPTS = "scripts"  # languages and writing systems
    OUTLIERS = "outliers"  # unlike all others
    LABEL_ERRORS = "label_errors"
    OFF_TAXONOMY = "off_taxonomy"  # no class seems to fit
    AMBIGUOUS_CLASSES = "ambiguous_classes"  # pairs that are mistaken for each other
    HARD_SAMPLES = "hard_samples"  # labelled right, as it seems, and still uncertain


class Severity(StrEnum):
    """How much a finding matters. `fine`: nothing was found."""

    SERIOUS = "serious"
    NOTABLE = "notable"
    FINE = "fine"


@dataclass(frozen=True, slots=True)
class Example:
    """A sample that shows what a finding means.

    proposed: the labels that would fit better. score: how sure the finding is of it, 0 to 1. why: in a few words.
    """

    sample_id: str
    labels: tuple[str, ...] | None
    proposed: tuple[str, ...] | None = None
    score: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    count: samples, groups, classes or pairs that it is about. summary: what was found, in Chinese; summary_en: in
    English. figures: kind-specific numbers, ready for JSON and for plots (see below). examples: the worst come first.
    commands: what to run next. reviews: all samples that people should look at.

    What stands in `figures["plots"]` is drawn in the report, one plot after the other; each has a `title` and a
    `title_en`, and one of
        "bars": [[name, value], …]; "unit": "" or "%" (then values are from 0 to 100).
        "histogram": {"edges": [n + 1 ascending numbers], "counts": [n numbers]}; "mark": a number that is marked on
            the axis, None for none, with its "mark_name"; "x": what the axis shows.
        "matrix": {"rows": [names], "columns": [names], "values": rows of columns of numbers, None where there is none}.
    """

    kind: Kind
    severity: Severity
    count: int
    summary: str
    summary_en: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    commands: tuple[str, ...] = ()
    reviews: tuple[Wanted, ...] = ()
