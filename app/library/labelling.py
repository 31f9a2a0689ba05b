"""What persons say about samples: a label, that none fits, or that an earlier event shall not count; each an event."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from app.library.cataloguing import row_of
from app.library.cells import label_name, label_names
from app.library.finding import find_sample
from app.library.labels import CurrentLabels, current_labels, label_positions, withdrawn_by
from app.store.catalogue import update_rows
from app.store.database import connect, writing
from app.store.events import events_of_sample, find_event, lock_sample, record_word
from app.store.libraries import Library, LibraryDefinition, get_library, share_library
from model.errors import BadInput, UnknownEvent, UnknownLabel
from model.types import Task, Taxonomy, preview

MAX_NAME_CHARS, MAX_NOTE_CHARS = 64, 1000


@dataclass(frozen=True, slots=True)
class Spoken:
    """The event that was written about a sample, its library and text, and what its label is now."""

    event: int
    library: str
    sample: str
    text: str
    current: CurrentLabels | None


def label_sample(
    engine: sa.Engine,
    *,
    library: str,
    sample: str,
    is_text: bool = False,
    labels: Sequence[str] = (),
    none: bool = False,
    by: str,
    confidence: float | None = None,
    note: str | None = None,
) -> Spoken:
    """Record that the person `by` gives `labels` to a sample, found by its id, the id's beginning, or its text.

    none: it belongs to none of the classes, and no labels are given. confidence: 0 to 1.

    Raises:
        UnknownLibrary, UnknownSample: there is none. UnknownLabel: a label is not in the taxonomy. BadInput: there are
        too many, or none without `none`, or the name, the confidence or the note can't be one. Nothing is written then.
    """
    person, remark = person_name(by), remark_text(note)
    if none and labels:
        raise BadInput(f"labels {preview(labels)} are given, and that there are none; give either the labels or --none")
    if confidence is not None and not 0 <= confidence <= 1:
        raise BadInput(f"--confidence {confidence:g}: give a number from 0 to 1")
    with connect(engine) as connection, writing(connection):
        share_library(connection, library)
        into = get_library(connection, library)
        chosen = [] if none else check_labels(into.definition, labels)
        sample_id = find_sample(connection, into, sample, is_text=is_text)
        return speak(connection, into, sample_id, labels=chosen, person=person, confidence=confidence, note=remark)


def speak(
    connection: sa.Connection,
    into: Library,
    sample_id: str,
    *,
    labels: Sequence[str],
    person: str,
    confidence: float | None = None,
    note: str | None = None,
) -> Spoken:
    """As `label_sample`, in a transaction that shares the library; all that is given was checked.

    labels: sorted; none where no class fits.
    """
    lock_sample(connection, into.id, sample_id)
    event = record_word(
        connection,
        into.id,
        sample_id,
        person=person,
        taxonomy_version=into.version,
        labels=labels,
        confidence=confidence,
        note=note,
    )
    return _spoken(connection, into, sample_id, event)


def undo_event(engine: sa.Engine, event: int, *, by: str, note: str | None = None) -> Spoken:
    """Record that the person `by` withdraws an event; withdrawing an undo brings back what it withdrew.

    Raises:
        UnknownEvent: there is none of that number. BadInput: it is undone already, or the name or the note can't be
        one. Nothing is written then.
    """
    person, remark = person_name(by), remark_text(note)
    with connect(engine) as connection, writing(connection):
        place = find_event(connection, event)
        if place is None:
            raise UnknownEvent(f"there is no event {event}; wenlei library history SAMPLE shows those of a sample")
        share_library(connection, place.library)
        into = get_library(connection, place.library)
        return withdraw(connection, into, place.sample_id, event, person=person, note=remark)


def withdraw(
    connection: sa.Connection, into: Library, sample_id: str, event: int, *, person: str, note: str | None = None
) -> Spoken:
    """As `undo_event`, in a transaction that shares the library; the name and the note were checked.

    Raises:
        BadInput: it is undone already, or was rolled back.
    """
    lock_sample(connection, into.id, sample_id)
    said = events_of_sample(connection, into.id, sample_id)
    if any(recorded.event.id == event and recorded.rolled_back for recorded in said.recorded):
        raise BadInput(f"event {event} was rolled back and does not count; see wenlei library rollback --help")
    withdrawn = withdrawn_by(said.events)
    if event in withdrawn:
        undo = withdrawn[event]
        raise BadInput(f"event {event} is undone already, by event {undo}; undo event {undo} to bring it back")
    undo = record_word(
        connection,
        into.id,
        sample_id,
        person=person,
        taxonomy_version=into.version,
        note=note,
        undoes=event,
    )
    return _spoken(connection, into, sample_id, undo)


def check_labels(definition: LibraryDefinition, labels: Sequence[str]) -> list[str]:
    """`labels` as an event holds them: each once, sorted by code point, aliases and codes as the labels they mean.

    Raises:
        UnknownLabel: one is not in the taxonomy; whole paths are, their levels are not. BadInput: there are none, or
        they can't stand together.
    """
    taxonomy, meant = definition.taxonomy, label_names(definition)
    names = {name for label in labels if (name := label_name(label))}
    if not names:
        raise BadInput("the label is empty; give one of the taxonomy")
    for name in sorted(names):
        if name not in meant:
            raise UnknownLabel(f"label {name!r} is not in the taxonomy ({_known(taxonomy)}){_way_out(taxonomy, name)}")
    chosen = taxonomy.deepest(meant[name] for name in names)
    if misfit := taxonomy.misfit(chosen):
        raise BadInput(misfit)
    return sorted(chosen)


def _known(taxonomy: Taxonomy) -> str:
    return preview(taxonomy.labels) or "it has no labels yet: add them with wenlei taxonomy add"


def _way_out(taxonomy: Taxonomy, name: str) -> str:
    paths = [label for label in taxonomy.labels if name in taxonomy.levels(label)]
    if taxonomy.task is Task.HIERARCHICAL and paths:
        return f"; give the whole path: {preview(paths, 3)}"
    return "; a new class comes in with wenlei taxonomy add" if taxonomy.labels else ""


def person_name(by: str) -> str:
    """Who says something, as events hold it.

    Raises:
        BadInput: it is empty, too long, or not text.
    """
    name = _line(by, "--by", MAX_NAME_CHARS)
    if not name:
        raise BadInput("--by is empty; say who labels")
    return name


def remark_text(note: str | None) -> str | None:
    """What is noted beside an event, as events hold it; None for nothing.

    Raises:
        BadInput: it is too long, or not text.
    """
    return _line(note, "--note", MAX_NOTE_CHARS) or None if note is not None else None


def _line(value: str, option: str, limit: int) -> str:
    """`value` without invisible characters and doubled white space, so that one name is one person."""
    line = label_name(value)
    if len(line) > limit:
        raise BadInput(f"{option} has {len(line)} characters, more than {limit}; shorten it")
    if any("\ud800" <= char <= "\udfff" for char in line):
        raise BadInput(f"{option} holds bytes that are not text in the terminal's encoding")
    return line


def _spoken(connection: sa.Connection, library: Library, sample_id: str, event: int) -> Spoken:
    said = events_of_sample(connection, library.id, sample_id)
    current = current_labels(said.events, label_positions(library.definition.taxonomy))
    update_rows(connection, library.id, [row_of(sample_id, current)])
    return Spoken(event, library.definition.name, sample_id, said.text, current)
