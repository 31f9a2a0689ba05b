"""Change a library's taxonomy: see what a change would touch, then put it into force as one undoable event."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue, recatalogue
from app.library.declarations import Declaration
from app.library.labelling import person_name, remark_text
from app.library.reverting import revert
from app.library.revisions import Revise, Revision, declare, declare_new
from app.store.audit import record
from app.store.catalogue import conflicting_samples, label_list_counts
from app.store.database import connect, reading, writing
from app.store.events import label_lists, samples_stating
from app.store.libraries import Library, find_library, get_library, lock_library, save_library
from app.store.snapshots import recorded_snapshots
from app.store.taxonomies import Step, TaxonomyChange, Translation, load_translation, taxonomy_history
from model.errors import BadSnapshot, BadTaxonomy
from model.snapshot import describe_snapshot
from model.types import Taxonomy


class TouchedSnapshot(NamedTuple):
    """A snapshot that holds labels which a change renames or takes away; it stays as it is. samples: those that do."""

    hash: str
    samples: int


@dataclass(frozen=True, slots=True)
class Touched:
    """A change of a taxonomy, and what it touches.

    version: the one that it makes. carrying: label → samples that carry it before the change. samples: those of which
    an event has another meaning afterwards. unlabelled: those that are left without a label.
    """

    version: int
    revision: Revision
    before: Taxonomy
    carrying: dict[str, int]
    samples: int
    unlabelled: int
    snapshots: tuple[TouchedSnapshot, ...]


@dataclass(frozen=True, slots=True)
class Undo:
    """Take a version back; by default the last one that was asked for and stands."""

    version: int | None = None


Change = Revise | Undo | Declaration


def show_taxonomy(engine: sa.Engine, library: str) -> tuple[Library, dict[str, int]]:
    """The library with its taxonomy, and how many samples carry each label now.

    Raises:
        UnknownLibrary: there is no such library.
    """
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        found = get_library(connection, library)
        counts = dict.fromkeys(found.definition.taxonomy.labels, 0)
        for labels, count in label_list_counts(connection, found.id).items():
            for label in labels:
                counts[label] += count
    return found, counts


def list_versions(engine: sa.Engine, library: str) -> list[TaxonomyChange]:
    """All versions of the library's taxonomy, oldest first.

    Raises:
        UnknownLibrary: there is no such library.
    """
    with connect(engine) as connection, reading(connection):
        return taxonomy_history(connection, get_library(connection, library).id)


def preview_change(engine: sa.Engine, library: str, change: Change) -> Touched:
    """What `change` would touch; nothing is written.

    Raises:
        UnknownLibrary: there is no such library. UnknownLabel, BadTaxonomy: the change can't be made.
    """
    _prepare(engine, library, change)
    with connect(engine) as connection, reading(connection):
        return _plan(connection, library, _known(connection, library, change), change).touched


def samples_restated(connection: sa.Connection, library: Library, revision: Revision) -> list[str]:
    """The ids, sorted, of the samples of which an event means something else after `revision`."""
    old = load_translation(connection, library.id)
    step = Step(library.version + 1, revision.meanings, revision.base)
    new = Translation([*old.steps, step])
    stated = [said for said in label_lists(connection, library.id) if old(*said) != new(*said)]
    return samples_stating(connection, library.id, stated)


def change_taxonomy(
    engine: sa.Engine,
    library: str,
    change: Change,
    *,
    by: str,
    note: str | None = None,
    on_samples: Callable[[int], None] = lambda _: None,
) -> Touched:
    """Put `change` into force; what it touched. `on_samples` hears of samples whose labels were worked out anew.

    Raises:
        As `preview_change`; nothing is written then.
    """
    actor, said = person_name(by), remark_text(note)
    _prepare(engine, library, change)
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        known = _known(connection, library, change)
        plan = _plan(connection, library, known, change)
        revision = plan.touched.revision
        changed = save_library(
            connection,
            revision.definition,
            known=known,
            kind=revision.kind,
            actor=actor,
            asked=revision.asked,
            meanings=revision.meanings,
            base=revision.base,
            undoes=revision.undoes,
            note=said,
        )
        record(
            connection, actor=actor, action=f"taxonomy.{revision.kind}", target=library, version=f"{changed.version}"
        )
        touched = set(plan.samples)
        if revision.definition.taxonomy.labels != plan.touched.before.labels:
            touched.update(conflicting_samples(connection, changed.id))  # imports that differ go by the classes' order
        recatalogue(connection, changed, sorted(touched), on_samples=on_samples)
    return plan.touched


class _Plan(NamedTuple):
    touched: Touched
    samples: list[str]


def _known(connection: sa.Connection, library: str, change: Change) -> Library | None:
    """The library that is to be changed; only a declaration makes one that is not there yet."""
    return find_library(connection, library) if isinstance(change, Declaration) else get_library(connection, library)


def _prepare(engine: sa.Engine, library: str, change: Change) -> None:
    with connect(engine) as connection, reading(connection):
        known = _known(connection, library, change)
    if known is not None and known.catalogue_stale:
        ensure_catalogue(engine, library)


def _plan(connection: sa.Connection, name: str, library: Library | None, change: Change) -> _Plan:
    if library is None:
        if not isinstance(change, Declaration):
            raise TypeError(f"{change} needs a library")
        made = declare_new(change, name)
        return _Plan(Touched(1, made, replace(made.definition.taxonomy, labels=()), {}, 0, 0, ()), [])
    revision = _revision(connection, library, change)
    if revision.definition == library.definition:
        raise BadTaxonomy(f"library {name!r} is like that already; there is nothing to change")
    version = library.version + 1
    samples = samples_restated(connection, library, revision)
    counts = label_list_counts(connection, library.id)
    _check_fits(counts, revision)
    touched = Touched(
        version=version,
        revision=revision,
        before=library.definition.taxonomy,
        carrying={
            label: sum(count for labels, count in counts.items() if label in labels) for label in revision.meanings
        },
        samples=len(samples),
        unlabelled=sum(count for labels, count in counts.items() if labels and not _meaning(labels, revision)),
        snapshots=tuple(_touched_snapshots(connection, name, revision)),
    )
    return _Plan(touched, samples)


def _revision(connection: sa.Connection, library: Library, change: Change) -> Revision:
    match change:
        case Undo(version):
            return revert(taxonomy_history(connection, library.id), version, library.definition)
        case Declaration():
            return declare(change)(library.definition)
    return change(library.definition)


def _meaning(labels: tuple[str, ...], revision: Revision) -> set[str]:
    return {new for label in labels for new in revision.meanings.get(label, (label,))}


def _check_fits(counts: dict[tuple[str, ...], int], revision: Revision) -> None:
    """The labels that samples carry may stand together afterwards.

    Raises:
        BadTaxonomy: they may not.
    """
    for labels, count in counts.items():
        if misfit := revision.definition.taxonomy.misfit(_meaning(labels, revision)):
            raise BadTaxonomy(f"{count:,} samples could not keep their labels: {misfit}; label them anew first")


def _touched_snapshots(connection: sa.Connection, library: str, revision: Revision) -> Iterator[TouchedSnapshot]:
    for recorded in recorded_snapshots(connection, library):
        try:
            counts = describe_snapshot(recorded.path).counts["labels"].values()
        except (BadSnapshot, OSError):  # gone or damaged: `wenlei library verify` tells
            continue
        if held := sum(split.get(label, 0) for split in counts for label in revision.meanings):
            yield TouchedSnapshot(recorded.hash, held)
