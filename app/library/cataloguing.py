"""Keep the catalogue in step with the events: after an import, a person's word, a change of the taxonomy."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import sqlalchemy as sa

from app.library.labels import CurrentLabels, current_labels, label_positions
from app.store.catalogue import (
    CatalogueRow,
    add_imported,
    add_missing,
    clear_index,
    conflicting_samples,
    mark_fresh,
    to_settle,
    update_rows,
)
from app.store.database import connect, reading, writing
from app.store.events import SampleEvents, events_of_all, events_of_samples, lock_samples
from app.store.integrity import count_samples
from app.store.libraries import Library, get_library, lock_library
from model.files import canonical_json

SAMPLES_AT_ONCE = 5_000
OnSamples = Callable[[int], None]


def catalogue_import(connection: sa.Connection, library: Library, *, known: Library | None, after: int) -> None:
    """Take in what was merged; `after`: the newest event before that. known: the library as it was, if it was there."""
    beyond = add_imported(connection, library, after=after)
    touched = set(to_settle(connection, library, after=after, beyond=beyond))
    if known is not None:
        before, labels = known.definition.taxonomy.labels, library.definition.taxonomy.labels
        was_there = set(before)
        if tuple(label for label in labels if label in was_there) != before:
            touched.update(conflicting_samples(connection, library.id))  # imports that differ go by the classes' order
    recatalogue(connection, library, sorted(touched))


def recatalogue(
    connection: sa.Connection, library: Library, ids: Sequence[str], *, on_samples: OnSamples = lambda _: None
) -> None:
    """Work out anew what the events of some samples come to; nobody else writes about them meanwhile.

    ids: sorted.
    """
    remaining = iter(ids)
    while some := list(islice(remaining, SAMPLES_AT_ONCE)):
        lock_samples(connection, library.id, some)
        _settle(connection, library, events_of_samples(connection, library.id, some), on_samples)


def recatalogue_all(connection: sa.Connection, library: Library, *, on_samples: OnSamples = lambda _: None) -> None:
    """Make the catalogue of a library, which is locked, from its samples and events alone."""
    add_missing(connection, library.id)
    _settle(connection, library, events_of_all(connection, library.id), on_samples)
    mark_fresh(connection, library.id)


def ensure_catalogue(engine: sa.Engine, library: str, *, on_samples: OnSamples = lambda _: None) -> None:
    """Make the catalogue where there is none that can be read, as in a database of an earlier wenlei.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection:
        with connection.begin():
            stale = get_library(connection, library).catalogue_stale
        if stale:
            with writing(connection):
                lock_library(connection, library)
                recatalogue_all(connection, get_library(connection, library), on_samples=on_samples)


def library_size(engine: sa.Engine, library: str) -> int:
    """How many samples the library has.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        return count_samples(connection, get_library(connection, library).id)


def reindex(engine: sa.Engine, library: str, *, on_samples: OnSamples = lambda _: None) -> None:
    """Make the catalogue and the search index anew, whatever they hold.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        found = get_library(connection, library)
        clear_index(connection, found.id)
        recatalogue_all(connection, found, on_samples=on_samples)


def row_of(sample_id: str, current: CurrentLabels | None) -> CatalogueRow:
    """The row of a sample whose current labels are known."""
    if current is None:
        return CatalogueRow(sample_id, None, False, None)
    return CatalogueRow(sample_id, canonical_json(current.labels).decode(), current.conflict, current.event)


def _settle(
    connection: sa.Connection, library: Library, samples: Iterable[SampleEvents], on_samples: OnSamples
) -> None:
    positions = label_positions(library.definition.taxonomy)
    for some in _some(samples):
        rows = [row_of(sample.id, current_labels(sample.events, positions)) for sample in some]
        update_rows(connection, library.id, rows)
        on_samples(len(rows))


def _some(samples: Iterable[SampleEvents]) -> Iterator[list[SampleEvents]]:
    remaining = iter(samples)
    while some := list(islice(remaining, SAMPLES_AT_ONCE)):
        yield some
