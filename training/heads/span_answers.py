"""The best answer that start and end scores allow, when to give it, and how good the answers given are."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray


class Answer(NamedTuple):
    """context[start:end]."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a context, and its answer, if there is one; `source` is the JSON object that said so."""

    question: str
    context: str
    answer: Answer | None
    source: dict[str, Any]

    @property
    def gold(self) -> str | None:
        """The answer's characters."""
        return None if self.answer is None else self.context[slice(*self.answer)]


@dataclass(frozen=True, slots=True)
class Candidate:
    """The best answer in a context, and by how much its score is above that of no answer."""

    answer: Answer
    margin: float


class Span(NamedTuple):
    """The tokens from `first` to `last`, both of them in it."""

    first: int
    last: int
    score: float


def best_span(scores: NDArray[Any], *, longest: int) -> Span | None:
    """The pair first ≤ last with the highest start + end score, of at most `longest` tokens; None if none may be.

    scores: (2, n_tokens), start and end; a token with -inf neither begins nor ends an answer. Pairs whose end is
    before their start don't occur: a row of the table below holds the ends from its start on.
    """
    starts, ends = np.minimum(scores.astype(np.float64), 1e300)  # so that no sum is infinity less infinity
    longest = min(longest, len(starts))
    if longest == 0:
        return None
    padded = np.concatenate([ends, np.full(longest - 1, -np.inf)])
    table = starts[:, None] + sliding_window_view(padded, longest)  # [first, last - first]
    first, further = divmod(int(table.argmax()), longest)
    if (score := float(table[first, further])) == -np.inf:
        return None
    return Span(first, first + further, score)


def span_figures(
    candidates: Sequence[Candidate | None], rows: Sequence[Question], threshold: float | None
) -> dict[str, float]:
    """Exact match and F1 of characters, the means over `rows`."""
    exact, shared = [], []
    for candidate, row in zip(candidates, rows, strict=True):
        answer = decide(candidate, threshold)
        text = None if answer is None else row.context[slice(*answer)]
        exact.append(text == row.gold)
        shared.append(character_f1(text, row.gold))
    return {"exact_match": float(np.mean(exact)), "f1": float(np.mean(shared))}


def decide(candidate: Candidate | None, threshold: float | None) -> Answer | None:
    """The answer, if there is one and it is above the threshold."""
    if candidate is None or (threshold is not None and candidate.margin <= threshold):
        return None
    return candidate.answer


def fit_threshold(candidates: Sequence[Candidate | None], rows: Sequence[Question]) -> float | None:
    """The threshold with the best mean F1; None (always answer) if no row is without an answer."""
    if all(row.answer is not None for row in rows):
        return None
    possible = [(each, row) for each, row in zip(candidates, rows, strict=True) if each is not None]
    possible.sort(key=lambda pair: -pair[0].margin)
    if not possible:
        return 0.0
    margins = np.array([candidate.margin for candidate, _ in possible])
    # what it gains to answer those with the largest margins and no others, for every number of them
    gains = [character_f1(row.context[slice(*each.answer)], row.gold) - (row.answer is None) for each, row in possible]
    total = np.concatenate([[0.0], np.cumsum(gains)])
    apart = np.concatenate([[True], margins[:-1] > margins[1:], [True]])  # equal margins are answered together
    number = int(np.where(apart, total, -np.inf).argmax())
    edges = np.concatenate([[margins[0] + 1], margins, [margins[-1] - 1]])
    return float(edges[number : number + 2].mean())


def character_f1(found: str | None, gold: str | None) -> float:
    """The F1 of SQuAD (Rajpurkar 2016) with characters for words, spaces left out; no answer equals only no answer."""
    if found is None or gold is None:
        return float(found is gold)
    one, other = (Counter(character for character in text if not character.isspace()) for text in (found, gold))
    return 2 * (one & other).total() / max(1, one.total() + other.total())
