"""Change a library's taxonomy: see what a change would touch, then put it into force as one undoable event."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa

from app.library.cataloguing import ensure_catalogue, recatalogue
from app.library.labelling import person_name, remark_text
from app.library.reverting import revert
from app.library.revisions import Revise, Revision
from app.store.catalogue import conflicting_samples, label_list_counts
from app.store.database import connect, reading, writing
from app.store.events import Stated, label_lists, samples_stating
from app.store.libraries import Library, get_library, lock_library, save_library
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


def preview_change(engine: sa.Engine, library: str, change: Revise | Undo) -> Touched:
    """What `change` would touch; nothing is written.

    Raises:
        UnknownLibrary: there is no such library. UnknownLabel, BadTaxonomy: the change can't be made.
    """
    ensure_catalogue(engine, library)
    with connect(engine) as connection, reading(connection):
        return _plan(connection, get_library(connection, library), change).touched


def change_taxonomy(
    engine: sa.Engine,
    library: str,
    change: Revise | Undo,
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
    ensure_catalogue(engine, library)
    with connect(engine) as connection, writing(connection):
        lock_library(connection, library)
        known = get_library(connection, library)
        plan = _plan(connection, known, change)
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
        touched = set(plan.samples)
        if revision.definition.taxonomy.labels != known.definition.taxonomy.labels:
            touched.update(conflicting_samples(connection, known.id))  # imports that differ go by the order of classes
        recatalogue(connection, changed, sorted(touched), on_samples=on_samples)
    return plan.touched


class _Plan(NamedTuple):
    touched: Touched
    samples: list[str]


def _plan(connection: sa.Connection, library: Library, change: Revise | Undo) -> _Plan:
    known = library.definition
    if isinstance(change, Undo):
        revision = revert(taxonomy_history(connection, library.id), change.version, known)
    else:
        revision = change(known)
    if revision.definition == known:
        raise BadTaxonomy(f"library {known.name!r} is like that already; there is nothing to change")
    version = library.version + 1
    old = load_translation(connection, library.id)
    new = Translation([*old.steps, Step(version, revision.meanings, revision.base, revision.undoes)])
    stated = [said for said in label_lists(connection, library.id) if _differ(said, old, new)]
    samples = samples_stating(connection, library.id, stated)
    counts = label_list_counts(connection, library.id)
    _check_fits(counts, revision)
    touched = Touched(
        version=version,
        revision=revision,
        before=known.taxonomy,
        carrying={
            label: sum(count for labels, count in counts.items() if label in labels) for label in revision.meanings
        },
        samples=len(samples),
        unlabelled=sum(count for labels, count in counts.items() if labels and not _meaning(labels, revision)),
        snapshots=tuple(_touched_snapshots(connection, known.name, revision)),
    )
    return _Plan(touched, samples)


def _differ(said: Stated, old: Translation, new: Translation) -> bool:
    return old(said.labels, said.version) != new(said.labels, said.version)


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
    for record in recorded_snapshots(connection, library):
        try:
            counts = describe_snapshot(record.path).counts["labels"].values()
        except (BadSnapshot, OSError):  # gone or damaged: `wenlei library verify` tells
            continue
        if held := sum(split.get(label, 0) for split in counts for label in revision.meanings):
            yield TouchedSnapshot(record.hash, held)
