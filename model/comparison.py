"""Comparison: the folder that says which of several classifiers is best, and how sure that is.

`comparison.json` holds what `ComparisonShape` says, `report.html` shows it to people. Every figure comes from the runs
that are named in it: their `predictions.parquet`, judged on one split of one snapshot.
"""

from math import isclose
from pathlib import Path
from typing import Any, TypedDict

from model.errors import BadRun
from model.files import read_json

SCHEMA_VERSION = 1
FILE, REPORT = "comparison.json", "report.html"
NAMES = {
    "accuracy": ("准确率", "accuracy"),
    "macro_f1": ("宏平均 F1", "macro-F1"),
    "micro_f1": ("微平均 F1", "micro-F1"),
}
METRICS = tuple(NAMES)


class FigureShape(TypedDict):
    """A figure and the 95 % interval of its resamples."""

    value: float
    low: float
    high: float


class RunShape(TypedDict):
    """A run of a candidate, as its folder has it."""

    path: str
    arch: str
    seed: int


class BinShape(TypedDict):
    """Of a reliability curve: mean score, share that is right, number of decisions."""

    sure: float
    right: float
    n: int


class RiskShape(TypedDict):
    """Risk against coverage, and the area under it."""

    coverage: list[float]
    risk: list[float]
    area: float


class SpeedShape(TypedDict):
    """Of one precision of a candidate's bundle on this machine, one text at a time and in batches."""

    p50_ms: float
    p99_ms: float
    texts_per_second: float
    file_mib: float


class SliceShape(TypedDict):
    """Accuracy on some of the texts. kind: what they were chosen by; name: which of them."""

    kind: str
    name: str
    n: int
    accuracy: FigureShape


class CandidateShape(TypedDict):
    """What is compared: the runs of one recipe, which differ in their seed alone.

    figures: of `METRICS`, in the mean of the runs. per_label, per_level: F1 and accuracy, in the mean of the runs.
    confusion: (gold, predicted) counts, in the order of the labels, in the mean of the runs; none where a text may
    carry several labels. seconds, memory_mib: of training, in the mean and at most. parameters: of the first run.
    """

    name: str
    runs: list[RunShape]
    figures: dict[str, FigureShape]
    per_label: dict[str, float]
    per_level: dict[str, float]
    confusion: list[list[float]]
    ece: float
    temperature: float
    reliability: list[BinShape]
    risk_coverage: RiskShape
    slices: list[SliceShape]
    seconds: float
    memory_mib: int
    size_mib: float
    speed: dict[str, SpeedShape]


class DifferenceShape(FigureShape):
    """A difference, `one` less `other`; p: two-sided; p_holm: adjusted for all pairs."""

    p: float
    p_holm: float


class McNemarShape(TypedDict):
    """Of the first run of each: texts that only one has right."""

    only_one: int
    only_other: int
    p: float
    p_holm: float


class EquivalenceShape(TypedDict):
    """Within the margin: `other` is not worse than `one`; both are as good."""

    not_worse: bool
    equivalent: bool


class FlipShape(TypedDict):
    """A text that the first runs of two candidates read differently."""

    sample: str
    text: str
    gold: list[str]
    one: list[str]
    other: list[str]


class PairShape(TypedDict):
    """Two candidates; `one` has the better figure."""

    one: str
    other: str
    differences: dict[str, DifferenceShape]
    mcnemar: McNemarShape
    equivalence: EquivalenceShape
    flips: dict[str, int]
    examples: list[FlipShape]


class RecommendationShape(TypedDict):
    """Which candidate to take, none where the data do not decide; why, in Chinese and in English."""

    candidate: str | None
    reason: str
    reason_en: str


class ComparisonShape(TypedDict):
    """All of it, the best candidate first. margin: in points, what counts as no worse."""

    schema_version: int
    made_at: str
    environment: dict[str, Any]
    snapshot: str
    split: str
    samples: int
    labels: list[str]
    metric: str
    margin: float
    resamples: int
    candidates: list[CandidateShape]
    pairs: list[PairShape]
    recommendation: RecommendationShape


def shown_metrics(comparison: ComparisonShape) -> list[str]:
    """Those to show: where every text has one label, and gets one, micro-F1 is accuracy."""
    alike = all(
        isclose(its["figures"]["accuracy"]["value"], its["figures"]["micro_f1"]["value"])
        for its in comparison["candidates"]
    )
    return [name for name in METRICS if not (alike and name == "micro_f1")]


def shown(figure: FigureShape, between: str = " ") -> str:
    """A share as points, with its interval."""
    return f"{100 * figure['value']:.2f}{between}({100 * figure['low']:.2f}–{100 * figure['high']:.2f})"


def read_comparison(path: Path) -> ComparisonShape:
    """The comparison in the folder `path`.

    Raises:
        BadRun: there is none, or a newer wenlei wrote it.
    """
    try:
        found: ComparisonShape = read_json(path / FILE)
        version = found["schema_version"]
    except (FileNotFoundError, NotADirectoryError):
        raise BadRun(f"{path} is no comparison: no {FILE} in it; make one with wenlei compare") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadRun(f"{path}/{FILE} can't be read ({error!r}); make it again with wenlei compare") from None
    if version > SCHEMA_VERSION:
        raise BadRun(f"{path} has schema {version}, this wenlei reads {SCHEMA_VERSION}; update it")
    return found
