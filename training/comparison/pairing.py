"""Two candidates against each other: how far apart, whether by chance, and on which texts."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from model.comparing import Draws, equivalence, holm, mcnemar, two_sided_p
from model.comparison import METRICS, DifferenceShape, FlipShape, PairShape
from model.metrics import BoolArray
from model.types import Taxonomy
from training.comparison.candidates import Candidate, Contest
from training.comparison.standing import figure

EXAMPLES = 20  # of texts that two candidates read differently


class Ranked(NamedTuple):
    """A candidate with its figures, and each of them in every resample."""

    candidate: Candidate
    values: Mapping[str, float]
    draws: Mapping[str, Draws]


def pairs(contest: Contest, ranked: Sequence[Ranked], *, metric: str, margin: float) -> list[PairShape]:
    """Every pair of `ranked`, the better one by `metric` first; p-values are adjusted for all pairs.

    margin: a share, by which `other` may be worse than `one` and still count as no worse.
    """
    found = [_pair(contest, one, other, metric=metric, margin=margin) for one, other in combinations(ranked, 2)]
    for name in METRICS:
        for pair, p_holm in zip(found, holm([pair["differences"][name]["p"] for pair in found]), strict=True):
            pair["differences"][name]["p_holm"] = p_holm
    for pair, p_holm in zip(found, holm([pair["mcnemar"]["p"] for pair in found]), strict=True):
        pair["mcnemar"]["p_holm"] = p_holm
    return found


def _pair(contest: Contest, one: Ranked, other: Ranked, *, metric: str, margin: float) -> PairShape:
    said, theirs = one.candidate.predicted[0], other.candidate.predicted[0]
    right, their_right = ((each == contest.gold).all(axis=1) for each in (said, theirs))
    test = mcnemar(right, their_right)
    verdict = equivalence(other.draws[metric] - one.draws[metric], margin)
    return {
        "one": one.candidate.name,
        "other": other.candidate.name,
        "differences": {name: _difference(one, other, name) for name in METRICS},
        "mcnemar": {"only_one": test.only_one, "only_other": test.only_other, "p": test.p, "p_holm": test.p},
        "equivalence": {"not_worse": verdict.not_worse, "equivalent": verdict.equivalent},
        "flips": _flips(right, their_right, (said != theirs).any(axis=1)),
        "examples": list(_examples(contest, said, theirs)),
    }


def _difference(one: Ranked, other: Ranked, name: str) -> DifferenceShape:
    draws = one.draws[name] - other.draws[name]
    p = two_sided_p(draws)
    return {**figure(one.values[name] - other.values[name], draws), "p": p, "p_holm": p}


def _flips(right: BoolArray, their_right: BoolArray, differ: BoolArray) -> dict[str, int]:
    """How many texts the two read differently, by which of them is right."""
    return {
        "only_one": int((right & ~their_right).sum()),
        "only_other": int((their_right & ~right).sum()),
        "both_wrong": int((differ & ~right & ~their_right).sum()),
    }


def _examples(contest: Contest, said: BoolArray, theirs: BoolArray) -> Iterator[FlipShape]:
    """Texts that are read differently, those first whose kind of difference comes most often."""
    rows = np.flatnonzero((said != theirs).any(axis=1)).tolist()
    taxonomy = contest.snapshot.taxonomy
    kinds = {row: (_names(said[row], taxonomy), _names(theirs[row], taxonomy)) for row in rows}
    counts = Counter(kinds.values())
    for row in sorted(rows, key=lambda row: (-counts[kinds[row]], kinds[row], row))[:EXAMPLES]:
        sample = contest.samples[row]
        yield {
            "sample": sample.id,
            "text": " ‖ ".join(part for part in (sample.text, sample.pair) if part is not None),
            "gold": list(sample.labels),
            "one": list(kinds[row][0]),
            "other": list(kinds[row][1]),
        }


def _names(chosen: BoolArray, taxonomy: Taxonomy) -> tuple[str, ...]:
    return tuple(label for label, its in zip(taxonomy.labels, chosen.tolist(), strict=True) if its)
