"""One library in a few figures: what it is, how much it holds, how far that is labelled."""

from dataclasses import dataclass

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue
from app.store.catalogue import conflicting_samples, label_list_counts
from app.store.database import connect, reading
from app.store.libraries import Library, get_library
from app.store.overview import LibraryOverview, library_overview


@dataclass(frozen=True, slots=True)
class Summary:
    """A library, and how many of its samples have labels, have none, and are in conflict."""

    library: Library
    overview: LibraryOverview
    labelled: int
    unlabelled: int
    conflicts: int


def summarise(engine: sa.Engine, name: str) -> Summary:
    """The library of that name in figures.

    Raises:
        UnknownLibrary: there is none.
    """
    ensure_catalogue(engine, name)
    with connect(engine) as connection, reading(connection):
        library = get_library(connection, name)
        counts = label_list_counts(connection, library.id)
        unlabelled = counts.pop((), 0)
        return Summary(
            library=library,
            overview=library_overview(connection, library.id),
            labelled=sum(counts.values()),
            unlabelled=unlabelled,
            conflicts=len(conflicting_samples(connection, library.id)),
        )
