"""Sweeps: a machine labels many samples, or takes their labels away, as one thing that can be undone.

What a person has said stands: samples with a word of one are left out, however sure the machine is. So are samples
whose label has changed since the machine has judged it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from app.library.cataloguing import SAMPLES_AT_ONCE, ensure_catalogue, recatalogue
from app.library.labelling import person_name, remark_text
from app.library.labels import current_labels, label_positions, standing, withdrawn_by
from app.store.audit import record
from app.store.database import connect, reading, writing
from app.store.events import SampleEvents, events_of_samples, lock_samples
from app.store.libraries import Library, get_library, lock_library
from app.store.sweeps import Sweep, SweptLabels, add_swept, add_undoes, record_sweep, sweep_history, swept_samples
from model.errors import BadInput, UnknownSweep

OnSamples = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Swept:
    """A sweep that was written. changed: samples that it speaks about. kept: those left out for a person's word, or
    because their label has changed since it was judged.
    """

    sweep: int
    changed: int
    kept: int


def apply_sweep(
    engine: sa.Engine,
    *,
    library: str,
    kind: str,
    actor: str,
    rows: Sequence[SweptLabels],
    judged: Mapping[str, tuple[str, ...]],
    asked: Mapping[str, Any],
    outcome: Mapping[str, Any],
    by: str,
    version: int,
    note: str | None = None,
    on_samples: OnSamples = lambda _: None,
) -> Swept:
    """Write what the model `actor` decided about samples, all of it or nothing, and what their labels are then.

    rows: a sample each. judged: the labels, sorted, that each sample had when the model judged it; none where it is not
    among them. version: of the taxonomy that the labels are of. by: who has it done. `on_samples` hears of samples that
    are done.

    Raises:
        UnknownLibrary: there is no such library. BadInput: the taxonomy is another by now, or no samples are left that
        may be swept. Nothing is written then.
    """
    person, remark = person_name(by), remark_text(note)
    ensure_catalogue(engine, library)
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        into = get_library(connection, library)
        if into.version != version:
            raise BadInput(
                f"the taxonomy of library {library!r} has become version {into.version}, and the labels are of version "
                f"{version}; do it again"
            )
        free = list(_as_judged(connection, into, sorted(rows), judged))
        if not free:
            raise BadInput(
                f"there is nothing to {kind} in library {library!r}: persons have spoken about all of it, or it has "
                "other labels by now"
            )
        kept = len(rows) - len(free)
        sweep = record_sweep(
            connection,
            into.id,
            kind=kind,
            actor=actor,
            asked=asked,
            outcome={**outcome, "changed": len(free), "kept": kept},
            by=person,
            note=remark,
        )
        for start in range(0, len(free), SAMPLES_AT_ONCE):
            some = free[start : start + SAMPLES_AT_ONCE]
            add_swept(connection, into.id, sweep, some, actor=actor, version=version)
            recatalogue(connection, into, [row.sample_id for row in some], on_samples=on_samples)
        record(connection, actor=person, action=f"library.{kind}", target=library, sweep=f"{sweep}", by_model=actor)
    return Swept(sweep, len(free), kept)


def undo_sweep(
    engine: sa.Engine,
    *,
    library: str,
    sweep: int,
    by: str,
    note: str | None = None,
    on_samples: OnSamples = lambda _: None,
) -> Swept:
    """Withdraw all events of a sweep that nobody has withdrawn yet; what persons and imports say counts again.

    The undoing is a sweep itself: undo that to bring the first one back.

    Raises:
        UnknownLibrary: there is no such library. UnknownSweep: it has no such sweep. BadInput: all of it is withdrawn,
        or was rolled back. Nothing is written then.
    """
    person, remark = person_name(by), remark_text(note)
    ensure_catalogue(engine, library)
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        into = get_library(connection, library)
        undone = _find(connection, into, sweep)
        touched = {
            sample.id: events
            for some in swept_samples(connection, sweep)
            for sample in events_of_samples(connection, into.id, some)
            if (events := _standing_events(sample, sweep))
        }
        if not touched:
            raise BadInput(
                f"nothing of sweep {sweep} counts any more: it was undone or rolled back; "
                f"see wenlei library sweeps --library {library}"
            )
        undo = record_sweep(
            connection,
            into.id,
            kind="undo",
            actor=undone.actor,
            asked={"sweep": sweep},
            outcome={"changed": len(touched), "kept": 0},
            by=person,
            undoes=sweep,
            note=remark,
        )
        ids = sorted(touched)
        for start in range(0, len(ids), SAMPLES_AT_ONCE):
            some = ids[start : start + SAMPLES_AT_ONCE]
            withdrawn = {event: sample for sample in some for event in touched[sample]}
            add_undoes(connection, into.id, undo, withdrawn, person=person, version=into.version)
            recatalogue(connection, into, some, on_samples=on_samples)
        record(connection, actor=person, action="library.undo_sweep", target=library, sweep=f"{sweep}")
    return Swept(undo, len(touched), 0)


def list_sweeps(engine: sa.Engine, library: str) -> list[Sweep]:
    """All sweeps of the library and their undoings, oldest first.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        return sweep_history(connection, get_library(connection, library).id)


def spoken_for(sample: SampleEvents) -> bool:
    """Whether a word of a person about the sample stands."""
    return any(event.actor_kind == "person" for event in standing(sample.events))


def _as_judged(
    connection: sa.Connection,
    library: Library,
    rows: Sequence[SweptLabels],
    judged: Mapping[str, tuple[str, ...]],
) -> Iterator[SweptLabels]:
    """The rows, sorted by sample, about which no person has spoken and whose labels are as they were judged; these are
    locked.
    """
    positions = label_positions(library.definition.taxonomy)
    for start in range(0, len(rows), SAMPLES_AT_ONCE):
        some = {row.sample_id: row for row in rows[start : start + SAMPLES_AT_ONCE]}
        lock_samples(connection, library.id, list(some))
        for sample in events_of_samples(connection, library.id, list(some)):
            current = current_labels(sample.events, positions)
            labels = current.labels if current else ()
            if not spoken_for(sample) and labels == judged.get(sample.id, ()):
                yield some[sample.id]


def _find(connection: sa.Connection, library: Library, sweep: int) -> Sweep:
    for found in sweep_history(connection, library.id):
        if found.id == sweep:
            return found
    name = library.definition.name
    raise UnknownSweep(f"library {name!r} has no sweep {sweep}; see wenlei library sweeps --library {name}")


def _standing_events(sample: SampleEvents, sweep: int) -> list[int]:
    """The numbers of the sample's events of the sweep that count and were not withdrawn, undoings among them."""
    withdrawn = withdrawn_by(sample.events)
    return [event.id for event in sample.events if event.sweep == sweep and event.id not in withdrawn]
