"""Score the pool: what a bundle says of the samples that nobody has labelled, on the path that serving takes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue
from app.library.labels import standing
from app.store.catalogue import LABELLERS
from app.store.database import connect, reading
from app.store.events import events_of_samples
from app.store.libraries import Library, get_library
from app.store.pool import Unlabelled, count_swept, count_unlabelled, swept_after, unlabelled_after
from app.store.samples import LabelEvent
from app.store.texts import SampleText
from model.errors import BadInput, BadTaxonomy, BadText
from model.runtime.base import Classifier, logits_of
from model.types import FloatArray, Taxonomy, Text, preview

SAMPLES_AT_ONCE = 5_000
OnTexts = Callable[[int], None]


class Scored(NamedTuple):
    """Some samples, and what the model says of them, (n, n_labels), columns in the order of its taxonomy."""

    samples: list[SampleText]
    scores: FloatArray


def pool_size(engine: sa.Engine, library: str) -> int:
    """At most so many samples `pool_samples` gives: those without a label, the dropped ones among them.

    Raises:
        UnknownLibrary: there is no such library.
    """
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        return count_unlabelled(connection, get_library(connection, library).id)


def swept_size(engine: sa.Engine, library: str, kind: str) -> int:
    """How many samples `swept_samples` gives.

    Raises:
        UnknownLibrary: there is no such library.
    """
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        return count_swept(connection, get_library(connection, library).id, kind)


def pool_samples(engine: sa.Engine, library: str) -> Iterator[SampleText]:
    """The samples of the library that were never labelled, sorted by id, in flat memory.

    Neither those whose label a sweep took away nor those whose class is gone are among them: they were chosen for what
    they are, and are not like the others. What was undone or rolled back was never said.

    Raises:
        UnknownLibrary: there is no such library.
    """
    ensure_catalogue(engine, library)
    after = ""
    while some := _some_unlabelled(engine, library, after):
        after = some[-1].sample.id
        yield from (each.sample for each in some if not each.spoken_of)


def swept_samples(engine: sa.Engine, library: str, kind: str) -> Iterator[SampleText]:
    """The samples whose labels come from sweeps of `kind`, sorted by id, in flat memory.

    Raises:
        UnknownLibrary: there is no such library.
    """
    ensure_catalogue(engine, library)
    after = ""
    while True:
        with connect(engine) as connection, reading(connection):
            found = get_library(connection, library)
            some = swept_after(connection, found.id, kind, after, limit=SAMPLES_AT_ONCE)
        if not some:
            return
        after = some[-1].id
        yield from some


def score_pool(
    classifier: Classifier, samples: Iterable[SampleText], *, on_texts: OnTexts = lambda _: None
) -> Iterator[Scored]:
    """What `classifier` says of `samples`, `SAMPLES_AT_ONCE` at a time, in their order. `on_texts` hears of those done.

    Raises:
        BadText: the bundle's normaliser leaves nothing of a text; the message names the sample.
    """
    remaining = iter(samples)
    while some := list(islice(remaining, SAMPLES_AT_ONCE)):
        yield Scored(some, score_texts(classifier, some, on_texts=on_texts))


def score_texts(
    classifier: Classifier, samples: Sequence[SampleText], *, on_texts: OnTexts = lambda _: None
) -> FloatArray:
    """Calibrated scores, (n, n_labels), as a server gives them: normalised, tokenized, run and decoded by the bundle.

    Raises:
        BadText: the bundle's normaliser leaves nothing of a text; the message names the sample.
    """
    texts = [Text(sample.text, sample.pair) for sample in samples]
    try:
        return classifier.decoder.scores(logits_of(classifier, texts, on_texts=on_texts))
    except BadText as error:
        raise BadText(f"{_culprit(classifier, samples)} can't be read by model {classifier.name!r}: {error}") from None


def library_for(engine: sa.Engine, library: str, classifier: Classifier) -> Library:
    """The library, if the model was trained for its taxonomy of today.

    Raises:
        UnknownLibrary: there is no such library. BadTaxonomy: they differ.
    """
    with connect(engine) as connection, reading(connection):
        found = get_library(connection, library)
    check_labels(classifier, found.definition.taxonomy, f"library {library!r}")
    return found


def check_labels(classifier: Classifier, taxonomy: Taxonomy, place: str) -> None:
    """Refuse a model that knows other labels than `place` has; their order may differ, for they are told by name.

    Raises:
        BadTaxonomy: they differ; the message says how.
    """
    ours = classifier.taxonomy
    if _unordered(ours) == _unordered(taxonomy):
        return
    only_model, only_there = sorted({*ours.labels} - {*taxonomy.labels}), sorted({*taxonomy.labels} - {*ours.labels})
    differences = [
        f"only the model has {preview(only_model)}" if only_model else "",
        f"only {place} has {preview(only_there)}" if only_there else "",
        f"the model's task is {ours.task}, there it is {taxonomy.task}" if ours.task != taxonomy.task else "",
    ]
    said = "; ".join(filter(None, differences)) or "how many labels a text may carry, or what parts levels"
    raise BadTaxonomy(
        f"model {classifier.name!r} was trained for another taxonomy than {place} has now: {said}; make a snapshot of "
        "the library and train on that, or change the taxonomy back"
    )


def only_of_pool(connection: sa.Connection, library: Library, ids: Sequence[str]) -> set[str]:
    """Of some samples, those of which neither a person nor an import nor a sweep has said anything that stands."""
    return {
        sample.id
        for sample in events_of_samples(connection, library.id, ids)
        if not any(map(_labels, standing(sample.events)))
    }


def _some_unlabelled(engine: sa.Engine, library: str, after: str) -> list[Unlabelled]:
    """The next samples without a label; `spoken_of`: something that was said of them stands."""
    with connect(engine) as connection, reading(connection):
        found = get_library(connection, library)
        some = unlabelled_after(connection, found.id, after, limit=SAMPLES_AT_ONCE)
        doubtful = [each.sample.id for each in some if each.spoken_of]
        free = only_of_pool(connection, found, doubtful) if doubtful else set()
        return [each._replace(spoken_of=each.spoken_of and each.sample.id not in free) for each in some]


def _labels(event: LabelEvent) -> bool:
    return event.actor_kind in LABELLERS or event.sweep is not None


def _culprit(classifier: Classifier, samples: Sequence[SampleText]) -> str:
    for sample in samples:
        try:
            classifier.encode([Text(sample.text, sample.pair)])
        except BadText:
            return f"sample {sample.id}"
    raise BadInput("the model refused texts together that it reads alone")


def _unordered(taxonomy: Taxonomy) -> tuple[object, ...]:
    return taxonomy.task, {*taxonomy.labels}, taxonomy.level_sep, taxonomy.multiple, taxonomy.choices
