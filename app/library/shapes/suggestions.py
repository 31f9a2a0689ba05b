"""Suggestions of what to label next, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.shapes.reviews import QueuedShape, queued_shape
from app.library.suggesting import Suggestion, Suggestions
from app.store.reviews import Queued


class ScoredLabel(TypedDict):
    """A label and its score, 0 to 1."""

    label: str
    score: float


class SuggestionShape(TypedDict):
    """A sample to label next. best: the model's best labels. uncertainty: 0 to 1; None without a model."""

    sample: str
    text: str
    pair: str | None
    best: list[ScoredLabel]
    uncertainty: float | None


class SuggestionsShape(TypedDict):
    """What to label next, the first to be chosen first.

    pool: samples that were looked at. waiting: suggested before and still in review, so left out. model: name and
    version. queued: what was put into review; None where nothing was to be.
    """

    library: str
    model: str | None
    strategy: str
    seed: int
    pool: int
    waiting: int
    suggestions: list[SuggestionShape]
    queued: QueuedShape | None


def suggestions_shape(found: Suggestions, queued: Queued | None) -> SuggestionsShape:
    """What was suggested, and `queued` if it was."""
    return {
        "library": found.library,
        "model": found.model,
        "strategy": found.plan.strategy.value,
        "seed": found.plan.seed,
        "pool": found.pool,
        "waiting": found.waiting,
        "suggestions": list(map(_suggestion, found.suggestions)),
        "queued": queued_shape(queued) if queued else None,
    }


def _suggestion(each: Suggestion) -> SuggestionShape:
    return {
        "sample": each.sample.id,
        "text": each.sample.text,
        "pair": each.sample.pair,
        "best": [{"label": label, "score": score} for label, score in each.best],
        "uncertainty": each.uncertainty,
    }
