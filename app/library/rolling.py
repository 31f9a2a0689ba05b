"""Roll a library back to one of its snapshots: what was said since does not count any more, and nothing is deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from app.library.cataloguing import recatalogue
from app.library.labelling import person_name, remark_text
from app.library.recorded import HASH_START
from app.library.reverting import as_before, revert
from app.library.revisions import Revision
from app.library.taxonomies import samples_restated, save_revision
from app.store.audit import record
from app.store.catalogue import conflicting_samples
from app.store.database import connect, reading, writing
from app.store.libraries import Library, get_library, lock_library
from app.store.rollbacks import (
    Rollback,
    events_between,
    excluded,
    last_event,
    record_rollback,
    rollback_history,
    standing_rollbacks,
)
from app.store.snapshots import Frozen, moments
from app.store.taxonomies import taxonomy_history
from model.errors import BadInput, BadSnapshot
from model.types import Taxonomy, preview


@dataclass(frozen=True, slots=True)
class RolledBack:
    """events: how many do not count any more, or do again. samples: those of which one does so, or has another meaning.

    before, after: the taxonomy.
    """

    snapshot: str
    events: int
    samples: int
    before: Taxonomy
    after: Taxonomy


class _Plan(NamedTuple):
    rolled_back: RolledBack
    revision: Revision
    rollback: Rollback
    samples: list[str]


def preview_rollback(engine: sa.Engine, library: str, snapshot: str | None) -> RolledBack:
    """What rolling back to `snapshot` would touch; with None, what undoing the last rollback would.

    snapshot: the first 4 or more digits of the hash of one that was frozen from the library.

    Raises:
        UnknownLibrary: there is no such library. BadSnapshot: it has no such snapshot, or several. BadInput: there is
        nothing to roll back or to undo.
    """
    with connect(engine) as connection, reading(connection):
        return _plan(connection, get_library(connection, library), snapshot).rolled_back


def roll_back(
    engine: sa.Engine,
    library: str,
    snapshot: str | None,
    *,
    by: str,
    note: str | None = None,
    on_samples: Callable[[int], None] = lambda _: None,
) -> RolledBack:
    """Roll the library back to `snapshot`, so that freezing it again gives the same one; None undoes the last rollback.

    Raises:
        As `preview_rollback`; nothing is written then.
    """
    actor, said = person_name(by), remark_text(note)
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        known = get_library(connection, library)
        plan = _plan(connection, known, snapshot)
        changed = save_revision(connection, known, plan.revision, actor=actor, note=said)
        rollback = plan.rollback._replace(taxonomy_version=changed.version, actor=actor, note=said)
        record_rollback(connection, known.id, rollback)
        action = "library.rollback" if rollback.undoes is None else "library.rollback.undo"
        record(connection, actor=actor, action=action, target=library, snapshot=plan.rolled_back.snapshot)
        touched = {*plan.samples, *conflicting_samples(connection, known.id)}
        recatalogue(connection, changed, sorted(touched), on_samples=on_samples)
    return plan.rolled_back


def _plan(connection: sa.Connection, library: Library, snapshot: str | None) -> _Plan:
    known, history = library.definition, rollback_history(connection, library.id)
    if snapshot is None:
        gone = _last_rollback(library, history)
        revision = revert(taxonomy_history(connection, library.id), gone.taxonomy_version, known, rollback=True)
        rollback = gone._replace(id=_next(history), undoes=gone.id)
    else:
        moment = _moment(connection, library, snapshot)
        version = moment.taxonomy_version or 1
        before = taxonomy_history(connection, library.id)[version - 1]
        revision = Revision("rollback", {"snapshot": moment.hash}, as_before(known, before), base=version)
        rollback = Rollback(
            id=_next(history),
            snapshot=moment.hash,
            after=moment.last_event or 0,
            until=last_event(connection),
            base=moment.last_rollback or 0,
            taxonomy_version=0,  # it is yet to be made
            undoes=None,
            actor="",
            created_at="",
            note=None,
        )
    events, samples = events_between(connection, library.id, excluded(history), excluded([*history, rollback]))
    touched = sorted({*samples, *samples_restated(connection, library, revision)})
    if snapshot is not None and not touched and revision.definition == known:
        raise BadInput(
            f"library {known.name!r} is as it was in snapshot {rollback.snapshot}; there is nothing to roll back"
        )
    done = RolledBack(rollback.snapshot, events, len(touched), known.taxonomy, revision.definition.taxonomy)
    return _Plan(done, revision, rollback, touched)


def _next(history: list[Rollback]) -> int:
    return history[-1].id + 1 if history else 1


def _moment(connection: sa.Connection, library: Library, start: str) -> Frozen:
    """The last time that the snapshot was frozen; what was said before it is kept."""
    name = library.definition.name
    if not HASH_START.fullmatch(start):
        raise BadSnapshot(f"{start!r} is not a hash (4 to 32 of its digits); see wenlei library snapshots")
    found = moments(connection, library.id, start)
    hashes = sorted({moment.hash for moment in found})
    if len(hashes) != 1:
        what = f"several snapshots ({preview(hashes, 3)}); give more digits" if hashes else "no snapshot on record"
        raise BadSnapshot(f"{start!r} begins {what} of library {name!r}; see wenlei library snapshots")
    if found[-1].last_event is None:
        raise BadSnapshot(
            f"snapshot {hashes[0]} was frozen by an earlier wenlei, which did not record when; freeze it again to "
            "be able to roll back to it later"
        )
    return found[-1]


def _last_rollback(library: Library, history: list[Rollback]) -> Rollback:
    standing = standing_rollbacks(history)
    if not standing:
        raise BadInput(f"library {library.definition.name!r} has no rollback to undo")
    return standing[-1]
