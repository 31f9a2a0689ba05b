"""Libraries at a glance."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import libraries, samples, snapshots


class LibraryOverview(NamedTuple):
    """A library's name, how many samples and snapshots it has, and when it was made."""

    name: str
    samples: int
    snapshots: int
    created_at: str


def library_overviews(connection: sa.Connection) -> list[LibraryOverview]:
    """All libraries, by name."""
    return [LibraryOverview(*row) for row in connection.execute(_overviews().order_by(libraries.c.name))]


def library_overview(connection: sa.Connection, library_id: int) -> LibraryOverview:
    """The library of that number."""
    return LibraryOverview(*connection.execute(_overviews().where(libraries.c.id == library_id)).one())


def _overviews() -> sa.Select[Any]:
    held = sa.select(sa.func.count()).select_from(samples).where(samples.c.library_id == libraries.c.id)
    frozen = sa.select(sa.func.count()).select_from(snapshots).where(snapshots.c.library_id == libraries.c.id)
    return sa.select(libraries.c.name, held.scalar_subquery(), frozen.scalar_subquery(), libraries.c.created_at)
