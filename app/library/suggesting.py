"""Suggest what to label next: active learning over the samples of a library that nobody has labelled."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest

import numpy as np
import sqlalchemy as sa

from app.library.review.queueing import Reason, queue_reviews
from app.library.scoring import library_for, pool_samples, score_pool, score_texts
from app.library.selecting import Strategy, choose, lots, uncertainty
from app.store.database import connect, reading
from app.store.libraries import Library, get_library
from app.store.reviews import Queued, Wanted
from app.store.texts import SampleText, texts_of
from app.store.waiting import waiting_for
from model.errors import BadInput
from model.metrics import predicted_matrix
from model.runtime.base import Classifier
from model.types import FloatArray, IntArray, LabelScore, Text

MOST = 1_000  # suggestions at a time: past that, a new model knows better, and the time to spread them out is squared
SHOWN_LABELS = 3
UNKNOWN_WORTH = 0.5  # of a look at a sample that no model has judged
OnSamples = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """How many to suggest, and how they are chosen. among: at most so many of the pool are looked at, drawn by lot.

    Raises:
        BadInput: a number is out of range.
    """

    count: int
    strategy: Strategy
    seed: int = 0
    among: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.count <= MOST:
            raise BadInput(
                f"--count {self.count}: give a number from 1 to {MOST:,}; label these, train on them, and ask again"
            )
        if self.among is not None and self.among < 1:
            raise BadInput(f"--among {self.among}: give a number of samples, 1 or more")

    @property
    def needs_model(self) -> bool:
        """Whether nothing can be chosen before a model has judged the pool."""
        return self.strategy in (Strategy.MARGIN, Strategy.ENTROPY)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A sample to label next.

    best: the model's best labels. predicted: those that it would give; none where it abstains, or where they can't go
    together. uncertainty: 0 to 1, by the strategy's measure. Without a model there is none of these.
    """

    sample: SampleText
    best: tuple[LabelScore, ...] = ()
    predicted: tuple[LabelScore, ...] = ()
    uncertainty: float | None = None


@dataclass(frozen=True, slots=True)
class Suggestions:
    """What to label next, the first to be chosen first.

    pool: samples that were looked at. waiting: suggested before and still in review, so left out. version: of the
    library's taxonomy. model: name and version of what judged them, None without.
    """

    library: str
    plan: Plan
    pool: int
    waiting: int
    version: int
    model: str | None
    suggestions: tuple[Suggestion, ...]


def suggest(
    engine: sa.Engine,
    *,
    library: str,
    classifier: Classifier | None,
    plan: Plan,
    on_samples: OnSamples = lambda _: None,
) -> Suggestions:
    """Choose from the samples that were never labelled and don't wait in review as suggestions already.

    Of near duplicates one at most is chosen. Memory: some 150 bytes a sample of the pool, and the candidates' texts.
    `on_samples` hears of samples that the model has judged, or that were read where it judges none.

    Raises:
        UnknownLibrary: there is no such library. BadTaxonomy: the model has another taxonomy than the library now.
        BadInput: the strategy needs a model and there is none, or the pool is empty. BadText: the model can't read one.
    """
    if classifier is None and plan.needs_model:
        raise BadInput(
            f"strategy {plan.strategy} asks a model what it is unsure of; name one with --bundle, or begin without one "
            "by --strategy diversity or random"
        )
    found = library_for(engine, library, classifier) if classifier else _library(engine, library)
    with connect(engine) as connection, reading(connection):
        waiting = waiting_for(connection, found.id, Reason.SUGGESTED)
    pool = _Pool(found, _drawn(_without(pool_samples(engine, library), waiting), plan))
    worth = pool.judge(None if plan.strategy is Strategy.RANDOM else classifier, plan, on_samples)
    if not pool.ids:
        raise BadInput(_why_empty(library, len(waiting)))
    positions = choose(
        worth,
        pool.ids,
        lambda wanted: [Text(each.text, each.pair) for each in pool.texts(engine, wanted)],
        count=plan.count,
        strategy=plan.strategy,
        judged=classifier is not None and plan.strategy is not Strategy.RANDOM,
    )
    chosen = pool.texts(engine, positions)
    return Suggestions(
        library=library,
        plan=plan,
        pool=len(pool.ids),
        waiting=len(waiting),
        version=found.version,
        model=f"{classifier.name}@{classifier.version}" if classifier else None,
        suggestions=tuple(_judged(classifier, chosen, plan) if classifier else map(Suggestion, chosen)),
    )


def queue_suggestions(engine: sa.Engine, found: Suggestions, *, by: str) -> Queued:
    """Put what was suggested into the review queue, the most uncertain first; all of it or nothing.

    Raises:
        BadInput: the library's taxonomy has changed since.
    """
    wanted = [
        Wanted(
            sample_id=each.sample.id,
            reason=Reason.SUGGESTED,
            value=UNKNOWN_WORTH if each.uncertainty is None else each.uncertainty,
            proposed=tuple(label for label, _ in each.predicted) or None,
            proposed_by=found.model if each.predicted else None,
            confidence=min((score for _, score in each.predicted), default=None),  # as sure as of the least sure label
            details={
                "strategy": found.plan.strategy,
                "seed": found.plan.seed,
                "scores": {label: round(score, 6) for label, score in each.best},
            },
        )
        for each in found.suggestions
    ]
    return queue_reviews(engine, library=found.library, wanted=wanted, by=by, version=found.version)


class _Pool:
    """The samples to choose from: their ids are kept, their texts are read again for those that matter."""

    def __init__(self, library: Library, samples: Iterator[SampleText]) -> None:
        self.ids: list[str] = []
        self._library, self._samples = library, samples

    def judge(self, classifier: Classifier | None, plan: Plan, on_samples: OnSamples) -> FloatArray:
        """What each sample is worth, (n,): how unsure the model is of it, or, without one, a lot."""
        parts = [np.empty(0, np.float32)]
        if classifier:
            for scored in score_pool(classifier, self._samples, on_texts=on_samples):
                self.ids += [sample.id for sample in scored.samples]
                parts.append(_uncertainty(classifier, scored.scores, plan))
        else:
            for sample in self._samples:
                self.ids.append(sample.id)
                on_samples(1)
            parts.append(lots(self.ids, plan.seed))
        return np.concatenate(parts)

    def texts(self, engine: sa.Engine, positions: IntArray) -> list[SampleText]:
        """The samples at `positions`, in their order."""
        ids = [self.ids[position] for position in positions]
        with connect(engine) as connection, reading(connection):
            texts = texts_of(connection, self._library.id, ids)
        return [texts[each] for each in ids]


def _drawn(samples: Iterator[SampleText], plan: Plan) -> Iterator[SampleText]:
    """All of them, or as many as the plan looks at."""
    if plan.among is None:
        return samples
    return iter(nlargest(plan.among, samples, key=lambda sample: (lots([sample.id], plan.seed)[0], sample.id)))


def _without(samples: Iterator[SampleText], left_out: set[str]) -> Iterator[SampleText]:
    return (sample for sample in samples if sample.id not in left_out)


def _library(engine: sa.Engine, name: str) -> Library:
    with connect(engine) as connection, reading(connection):
        return get_library(connection, name)


def _uncertainty(classifier: Classifier, scores: FloatArray, plan: Plan) -> FloatArray:
    thresholds = classifier.decoder.thresholds
    return uncertainty(scores, classifier.taxonomy, thresholds=thresholds, strategy=plan.strategy)


def _judged(classifier: Classifier, samples: Sequence[SampleText], plan: Plan) -> Iterator[Suggestion]:
    """The samples with what the model says of them."""
    scores = score_texts(classifier, samples)
    decoder, labels = classifier.decoder, classifier.taxonomy.labels
    predicted = predicted_matrix(scores, classifier.taxonomy, decoder.thresholds)
    predicted &= scores.max(axis=1, keepdims=True) >= decoder.abstain_below
    best = np.argsort(-scores, axis=1, kind="stable")[:, :SHOWN_LABELS]
    for row, (sample, unsure) in enumerate(zip(samples, _uncertainty(classifier, scores, plan).tolist(), strict=True)):
        chosen = classifier.taxonomy.deepest(labels[column] for column in np.flatnonzero(predicted[row]))
        if classifier.taxonomy.misfit(chosen):
            chosen = set()  # nobody could accept it
        yield Suggestion(
            sample=sample,
            best=tuple(LabelScore(labels[column], float(scores[row, column])) for column in best[row]),
            predicted=tuple(
                LabelScore(label, float(scores[row, column])) for column, label in enumerate(labels) if label in chosen
            ),
            uncertainty=unsure,
        )


def _why_empty(library: str, waiting: int) -> str:
    if waiting:
        return (
            f"library {library!r}: all {waiting:,} samples without a label were suggested already and wait in "
            "review; review them, or import more texts"
        )
    return f"library {library!r} has no samples without a label; import more texts, or review the labels that are there"
