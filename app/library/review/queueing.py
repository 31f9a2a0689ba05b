"""Put samples into the review queue, whoever asks: the doctor, the gate, active learning, or a person."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import sqlalchemy as sa

from app.library.finding import find_sample
from app.library.labelling import person_name
from app.store.audit import record
from app.store.database import connect, reading, writing
from app.store.libraries import Library, get_library, share_library
from app.store.reviews import Queued, Wanted, add_items, lock_queue
from app.store.texts import SampleText, texts_of
from model.errors import BadInput, UnknownLabel, UnknownSample
from model.near import near_groups
from model.types import preview


class Reason(StrEnum):
    """Why a sample should be looked at."""

    CONFLICT = "conflict"  # persons or imports disagree
    DUPLICATE = "duplicate"  # near duplicates have other labels
    LABEL_ERROR = "label_error"  # models that have not seen it contradict its label
    HARD = "hard"  # models that have not seen it are unsure of its label
    OUTLIER = "outlier"  # it is unlike the others
    OFF_TAXONOMY = "off_taxonomy"  # no class seems to fit
    UNSURE = "unsure"  # the gate did not accept the model's label
    SUGGESTED = "suggested"  # a model would learn most from it
    BY_HAND = "by_hand"  # somebody asked for it


def queue_reviews(
    engine: sa.Engine, *, library: str, wanted: Sequence[Wanted], by: str, version: int | None = None
) -> Queued:
    """Queue samples for review, all of them or none; what a look at near duplicates is worth sinks with each of them.

    Of samples that are near each other the one that is worth most keeps its value, the k-th gets a k-th of its own: so
    one of each group comes first. version: of the taxonomy that labels are proposed in, if any are.

    Raises:
        UnknownLibrary: there is no such library. UnknownSample: it has no such sample. UnknownLabel: a label that is
        proposed is not in its taxonomy. BadInput: that is by now another one, or a value or a confidence is no number
        from 0 to 1. Nothing is queued then.
    """
    person = person_name(by)
    for item in wanted:
        _check_numbers(item)
    with connect(engine) as connection, reading(connection):
        texts = _texts(connection, get_library(connection, library), wanted)
    sunk = _sink(wanted, texts)
    with connect(engine) as connection, writing(connection):
        share_library(connection, library)
        into = get_library(connection, library)
        if version is not None and into.version != version:
            raise BadInput(
                f"the taxonomy of library {library!r} has become version {into.version}, and the proposals are of "
                f"version {version}; do it again"
            )
        _check_labels(into, wanted)
        lock_queue(connection, into.id)
        queued = add_items(connection, into.id, sunk, by=person, version=into.version)
        record(connection, actor=person, action="review.queue", target=library, items=f"{queued.added}")
    return queued


def queue_by_hand(
    engine: sa.Engine,
    *,
    library: str,
    samples: Sequence[str],
    is_text: bool = False,
    value: float = 1.0,
    by: str,
) -> Queued:
    """Queue samples that a person wants looked at, found by id, beginning of the id, or text. value: as in `Wanted`.

    Raises:
        As `queue_reviews`; BadText: a text is none.
    """
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        ids = [find_sample(connection, source, sample, is_text=is_text) for sample in samples]
    wanted = [Wanted(sample_id, Reason.BY_HAND, value) for sample_id in ids]
    return queue_reviews(engine, library=library, wanted=wanted, by=by)


def _sink(wanted: Sequence[Wanted], texts: Mapping[str, SampleText]) -> list[Wanted]:
    """Each sample once, as it is worth most; near ones worth less and less. Sorted by what they were worth."""
    best: dict[str, Wanted] = {}
    for item in sorted(wanted, key=lambda item: -item.value):
        best.setdefault(item.sample_id, item)
    items = list(best.values())
    if len(items) < 2:
        return items
    near = near_groups((texts[item.sample_id].text, texts[item.sample_id].pair) for item in items)
    seen: Counter[int] = Counter()
    sunk = []
    for item, group in zip(items, near.groups.tolist(), strict=True):
        seen[group] += 1
        sunk.append(replace(item, value=item.value / seen[group]))
    return sunk


def _texts(connection: sa.Connection, library: Library, wanted: Sequence[Wanted]) -> dict[str, SampleText]:
    ids = list({item.sample_id for item in wanted})
    texts = texts_of(connection, library.id, ids)
    if missing := sorted(set(ids) - texts.keys()):
        raise UnknownSample(f"library {library.definition.name!r} has no sample {preview(missing, 3)}")
    return texts


def _check_numbers(item: Wanted) -> None:
    for name, number in (("value", item.value), ("confidence", item.confidence)):
        if number is not None and not 0 <= number <= 1:  # nor NaN
            raise BadInput(f"sample {item.sample_id}: its {name} is {number:g}; give a number from 0 to 1")


def _check_labels(library: Library, wanted: Sequence[Wanted]) -> None:
    known = set(library.definition.taxonomy.labels)
    for item in wanted:
        if unknown := [label for label in item.proposed or () if label not in known]:
            raise UnknownLabel(
                f"sample {item.sample_id}: the proposed label {unknown[0]!r} is not in the taxonomy of library "
                f"{library.definition.name!r} ({preview(library.definition.taxonomy.labels)})"
            )
