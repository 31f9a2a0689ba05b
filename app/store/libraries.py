"""Libraries: one task, one taxonomy and one normaliser each."""

import json
from dataclasses import dataclass

import sqlalchemy as sa

from app.store.tables import libraries
from model.errors import UnknownLibrary
from model.run import now
from model.text import Normaliser
from model.types import Taxonomy


@dataclass(frozen=True, slots=True)
class LibraryDefinition:
    """What a library is. `declared`: its labels were given as a list, so no import adds any.

    label_sep: what parts the labels in a cell, unless an import says otherwise.
    """

    name: str
    taxonomy: Taxonomy
    declared: bool
    label_sep: str | None
    normaliser: Normaliser


@dataclass(frozen=True, slots=True)
class Library:
    """A library that the database holds, under its number."""

    id: int
    definition: LibraryDefinition


def lock_library(connection: sa.Connection, name: str) -> None:
    """Keep other imports off the library of that name, there already or not, until the transaction ends."""
    if connection.dialect.name == "postgresql":  # on SQLite, whoever writes has the whole database
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(sa.func.hashtext(f"wenlei library {name}"))))


def find_library(connection: sa.Connection, name: str) -> Library | None:
    """The library of that name, if there is one."""
    row = connection.execute(sa.select(libraries).where(libraries.c.name == name)).one_or_none()
    if row is None:
        return None
    definition = LibraryDefinition(
        name=row.name,
        taxonomy=Taxonomy.from_json(json.loads(row.taxonomy)),
        declared=row.declared,
        label_sep=row.label_sep,
        normaliser=Normaliser.from_json(json.loads(row.normaliser)),
    )
    return Library(id=row.id, definition=definition)


def get_library(connection: sa.Connection, name: str) -> Library:
    """The library of that name.

    Raises:
        UnknownLibrary: there is none; the message lists those there are.
    """
    if library := find_library(connection, name):
        return library
    names = ", ".join(library_names(connection)) or "none yet"
    raise UnknownLibrary(f"there is no library {name!r} (libraries: {names}); fill it with wenlei library import")


def library_names(connection: sa.Connection) -> list[str]:
    """The names of all libraries, sorted."""
    return list(connection.scalars(sa.select(libraries.c.name).order_by(libraries.c.name)))


def save_library(connection: sa.Connection, definition: LibraryDefinition, *, known: Library | None) -> Library:
    """Write `definition` as a new library, or as what the `known` one has become."""
    values = {
        "name": definition.name,
        "taxonomy": json.dumps(definition.taxonomy.to_json(), ensure_ascii=False),
        "declared": definition.declared,
        "label_sep": definition.label_sep,
        "normaliser": json.dumps(definition.normaliser.to_json()),
    }
    if known is None:
        statement = sa.insert(libraries).values(**values, created_at=now()).returning(libraries.c.id)
        return Library(id=connection.execute(statement).scalar_one(), definition=definition)
    if definition != known.definition:
        connection.execute(sa.update(libraries).where(libraries.c.id == known.id).values(**values))
    return Library(id=known.id, definition=definition)
