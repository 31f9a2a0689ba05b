"""Disputes: samples on whose label persons disagree, or imports do and no person has decided."""

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue
from app.library.labels import CurrentLabels, candidates, current_labels, label_positions
from app.store.catalogue import conflicting_samples
from app.store.database import connect, reading
from app.store.events import RecordedEvent, SampleEvents, events_of_samples
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
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        positions = label_positions(source.definition.taxonomy)
        contested = sorted(conflicting_samples(connection, source.id))
        shown = events_of_samples(connection, source.id, contested[offset : offset + limit])
        page = tuple(_dispute(sample, positions) for sample in shown)
    return DisputePage(total=len(contested), disputes=page)


def _dispute(sample: SampleEvents, positions: Mapping[str, int]) -> Dispute:
    current = current_labels(sample.events, positions)
    if current is None:
        raise ValueError(f"sample {sample.id} is in conflict and has no label")
    chosen_from = {word.id for word in candidates(sample.events)}
    return Dispute(sample, current, tuple(known for known in sample.recorded if known.event.id in chosen_from))
