"""The gate of promotion: a bundle has to be as good as the one that is live, on texts that neither was trained on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from model.bundle import Bundle
from model.comparing import equivalence, interval, resample
from model.console import progress
from model.errors import BadInput
from model.metrics import BoolArray, gold_matrix, micro_f1, predicted_matrix
from model.runtime.base import logits_of
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Sample, Split, Text


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says. metric: accuracy, or micro-F1 where a text may carry several labels.

    challenger, champion: their figures, shares; champion is None where none is live. low, high: the 95 % interval of
    the difference. margin: a share, by which the challenger may be worse. snapshot, split, samples: what they were
    judged by.
    """

    passed: bool
    metric: str
    challenger: float
    margin: float
    snapshot: str
    split: str
    samples: int
    champion: float | None = None
    low: float | None = None
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The form that is kept."""
        return asdict(self)


def judge(challenger: Bundle, champion: Bundle | None, snapshot: Snapshot, *, split: Split, margin: float) -> Verdict:
    """Whether `challenger` may take the place of `champion`: it is not worse by more than `margin`, a share.

    The lower bound of the 90 % interval of the difference decides, in paired resamples of the texts. Where none is live
    anything passes.

    Raises:
        BadInput: the split is empty, or one of the bundles knows other labels than the snapshot.
    """
    samples = list(snapshot.samples(split))
    if not samples:
        raise BadInput(f"snapshot {snapshot.hash} has no {split} samples to judge by; choose another --split")
    for bundle in filter(None, (challenger, champion)):
        _check_labels(bundle, snapshot)
    taxonomy = snapshot.taxonomy
    metric = "micro_f1" if taxonomy.multiple else "accuracy"
    gold = gold_matrix([sample.labels for sample in samples], taxonomy)
    said = [_said(bundle, samples) for bundle in (challenger, champion) if bundle]
    draws = getattr(resample(gold, said), metric)
    figures = [_figure(predicted, gold) for predicted in said]
    verdict = Verdict(
        passed=True,
        metric=metric,
        challenger=figures[0],
        margin=margin,
        snapshot=snapshot.hash,
        split=split.value,
        samples=len(samples),
    )
    if champion is None:
        return verdict
    difference = draws[0] - draws[1]
    low, high = interval(difference)
    passed = equivalence(difference, margin).not_worse
    return replace(verdict, passed=passed, champion=figures[1], low=low, high=high)


def _check_labels(bundle: Bundle, snapshot: Snapshot) -> None:
    if bundle.manifest.taxonomy != snapshot.taxonomy:
        ours, theirs = set(bundle.manifest.taxonomy.labels), set(snapshot.taxonomy.labels)
        odd = ", ".join(sorted(ours ^ theirs)[:5]) or "their task or order"
        raise BadInput(
            f"{bundle.path} knows other labels than snapshot {snapshot.hash} ({odd}), so it can't be judged by it; "
            "give the snapshot that both were made for, or --force with a --note"
        )


def _said(bundle: Bundle, samples: Sequence[Sample]) -> BoolArray:
    """What the bundle, in the precision that is served, says of each sample: (n, n_labels)."""
    classifier = OnnxClassifier.load(bundle, precision=bundle.smallest_precision)
    texts = [Text(sample.text, sample.pair) for sample in samples]
    with progress(f"判断 judging {bundle.manifest.name}", len(texts)) as advance:
        scores = classifier.decoder.scores(logits_of(classifier, texts, on_texts=advance))
    return predicted_matrix(scores, classifier.taxonomy, classifier.decoder.thresholds)


def _figure(predicted: BoolArray, gold: BoolArray) -> float:
    """Micro-F1, which is accuracy where every text has one label and gets one."""
    hits, chosen, support = (matrix.sum(axis=0, dtype=float) for matrix in (predicted & gold, predicted, gold))
    return float(micro_f1(hits, chosen, support))
