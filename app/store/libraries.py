"""Libraries: one task, one taxonomy and one normaliser each."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from app.store.tables import libraries
from app.store.taxonomies import (
    Classes,
    Meanings,
    TaxonomyChange,
    read_classes,
    record_change,
    to_json,
    write_classes,
)
from model.errors import UnknownLibrary
from model.provenance import now
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
    classes: Classes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """A library that the database holds, under its number.

    version: of its taxonomy. catalogue_stale: its catalogue has to be made anew before it is read.
    """

    id: int
    definition: LibraryDefinition
    version: int
    catalogue_stale: bool


def lock_library(connection: sa.Connection, name: str) -> None:
    """Keep all others from writing to the library of that name, there already or not, until the transaction ends."""
    if connection.dialect.name == "postgresql":  # on SQLite, whoever writes has the whole database
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_lock_number(name))))


def share_library(connection: sa.Connection, name: str) -> None:
    """Write to samples of the library, each locked by itself, while nobody has the whole library locked."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_lock_number(name))))


@contextmanager
def nobody_writing(engine: sa.Engine, name: str) -> Iterator[None]:
    """While nobody writes to the library: what a reading transaction sees that starts in here, it sees without gaps.

    Else an event could come to light later that has a smaller number than others that were seen.
    """
    if engine.dialect.name != "postgresql":  # on SQLite, events appear in the order of their numbers
        yield
        return
    with engine.begin() as connection:
        lock_library(connection, name)
        yield


def _lock_number(name: str) -> sa.Function[int]:
    return sa.func.hashtext(f"wenlei library {name}")


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
        classes=read_classes(row.classes),
    )
    return Library(id=row.id, definition=definition, version=row.taxonomy_version, catalogue_stale=row.catalogue_stale)


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


def save_library(
    connection: sa.Connection,
    definition: LibraryDefinition,
    *,
    known: Library | None,
    kind: str,
    actor: str,
    asked: Mapping[str, Any] | None = None,
    meanings: Meanings | None = None,
    base: int | None = None,
    undoes: int | None = None,
    note: str | None = None,
) -> Library:
    """Write `definition` as a new library, or as what the `known` one has become.

    Where its taxonomy has changed, or has gone back to a `base`, that is a new version of it: `kind`, `actor` and the
    rest tell of the change, as in `app.store.taxonomies.TaxonomyChange`.
    """
    if known is not None and definition == known.definition and base is None:
        return known
    changed = known is None or base is not None or _classes_of(definition) != _classes_of(known.definition)
    version = (known.version if known else 0) + changed
    values = {
        "name": definition.name,
        "taxonomy": to_json(definition.taxonomy.to_json()),
        "declared": definition.declared,
        "label_sep": definition.label_sep,
        "normaliser": json.dumps(definition.normaliser.to_json()),
        "classes": write_classes(definition.classes),
        "taxonomy_version": version,
    }
    if known is None:
        statement = sa.insert(libraries).values(**values, created_at=now(), catalogue_stale=False)
        library_id = connection.execute(statement.returning(libraries.c.id)).scalar_one()
        stale = False
    else:
        library_id, stale = known.id, known.catalogue_stale
        connection.execute(sa.update(libraries).where(libraries.c.id == library_id).values(**values))
    if changed:
        change = TaxonomyChange(
            version=version,
            kind=kind,
            taxonomy=definition.taxonomy,
            classes=definition.classes,
            declared=definition.declared,
            actor=actor,
            created_at=now(),
            asked=asked or {},
            meanings=meanings or {},
            base=base,
            undoes=undoes,
            note=note,
        )
        record_change(connection, library_id, change)
    return Library(id=library_id, definition=definition, version=version, catalogue_stale=stale)


def _classes_of(definition: LibraryDefinition) -> tuple[Taxonomy, Classes, bool]:
    return definition.taxonomy, definition.classes, definition.declared
