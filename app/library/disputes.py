"""Disputes: samples on whose label persons disagree, or imports do and no person has decided."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.library.labels import CurrentLabels, candidates, current_labels, label_positions
from app.store.database import connect, reading
from app.store.events import RecordedEvent, SampleEvents, events_of_contested
from app.store.libraries import get_library


@dataclass(frozen=True, slots=True)
class Dispute:
    """A sample, its label for the time being, and the events that it was chosen from."""

    sample: SampleEvents
    current: CurrentLabels
    candidates: tuple[RecordedEvent, ...]


@dataclass(frozen=True, slots=True)
class DisputePage:
    """Some of a library's disputes, and how many there are in all."""

    total: int
    disputes: tuple[Dispute, ...]


def list_disputes(engine: sa.Engine, *, library: str, limit: int, offset: int = 0) -> DisputePage:
    """At most `limit` disputes after the first `offset`, in the order of the samples' ids.

    Raises:
        UnknownLibrary: there is no such library.
    """
    page: list[Dispute] = []
    total = 0
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        positions = label_positions(source.definition.taxonomy)
        for sample in events_of_contested(connection, source.id):
            current = current_labels(sample.events, positions)
            if current is None or not current.conflict:
                continue
            if offset <= total < offset + limit:
                chosen_from = {word.id for word in candidates(sample.events)}
                recorded = tuple(known for known in sample.recorded if known.event.id in chosen_from)
                page.append(Dispute(sample, current, recorded))
            total += 1
    return DisputePage(total=total, disputes=tuple(page))
