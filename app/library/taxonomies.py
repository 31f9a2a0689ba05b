"""Change a library's taxonomy: see what a change would touch, then put it into force as one undoable event."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import sqlalchemy as sa

from app.library.cataloguing import SAMPLES_AT_ONCE, ensure_catalogue, recatalogue
from app.library.declarations import Declaration
from app.library.labelling import person_name, remark_text
from app.library.labels import current_labels, label_positions
from app.library.reverting import revert
from app.library.revisions import Revise, Revision, declare, declare_new
from app.store.audit import record
from app.store.catalogue import conflicting_samples, label_list_counts
from app.store.database import connect, reading, writing
from app.store.events import SampleEvents, events_of_samples, label_lists, samples_stating
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


class Outcome(NamedTuple):
    """How many samples carry the labels `before` now, and would carry those of `after`; none: they have no label."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    samples: int


@dataclass(frozen=True, slots=True)
class Touched:
    """A change of a taxonomy, and what it touches.

    version: the one that it makes. carrying: label → samples that carry it before the change. samples: those of which
    an event has another meaning afterwards. unlabelled: those that are left without a label. outcomes: what they carry
    before and after, where that differs; most samples first.
    """

    version: int
    revision: Revision
    before: Taxonomy
    carrying: dict[str, int]
    samples: int
    unlabelled: int
    snapshots: tuple[TouchedSnapshot, ...]
    outcomes: tuple[Outcome, ...] = ()


@dataclass(frozen=True, slots=True)
class Undo:
    """Take a version back; by default the last one that was asked for and stands."""

    version: int | None = None


Change = Revise | Undo | Declaration
LabelCounts = Mapping[tuple[str, ...], int]  # labels → samples that carry just them


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
    old, new = load_translation(connection, library.id), _translation_after(connection, library, revision)
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
        changed = save_revision(connection, known, revision, actor=actor, note=said)
        record(
            connection, actor=actor, action=f"taxonomy.{revision.kind}", target=library, version=f"{changed.version}"
        )
        touched = set(plan.samples)
        if revision.definition.taxonomy.labels != plan.touched.before.labels:
            touched.update(conflicting_samples(connection, changed.id))  # imports that differ go by the classes' order
        recatalogue(connection, changed, sorted(touched), on_samples=on_samples)
    return plan.touched


def save_revision(
    connection: sa.Connection, known: Library | None, revision: Revision, *, actor: str, note: str | None
) -> Library:
    """Write the library as `revision` leaves it, as a new version of its taxonomy; it is locked, or new."""
    return save_library(
        connection,
        revision.definition,
        known=known,
        kind=revision.kind,
        actor=actor,
        asked=revision.asked,
        meanings=revision.meanings,
        base=revision.base,
        undoes=revision.undoes,
        note=note,
    )


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
    outcomes = _outcomes(connection, library, revision, samples, counts)
    _check_fits(counts, outcomes, revision)
    touched = Touched(
        version=version,
        revision=revision,
        before=library.definition.taxonomy,
        carrying={
            label: sum(count for labels, count in counts.items() if label in labels) for label in revision.meanings
        },
        samples=len(samples),
        unlabelled=sum(outcome.samples for outcome in outcomes if not outcome.after),
        snapshots=tuple(_touched_snapshots(connection, name, revision)),
        outcomes=outcomes,
    )
    return _Plan(touched, samples)


def _revision(connection: sa.Connection, library: Library, change: Change) -> Revision:
    match change:
        case Undo(version):
            return revert(taxonomy_history(connection, library.id), version, library.definition)
        case Declaration():
            return declare(change)(library.definition)
    return change(library.definition)


def _outcomes(
    connection: sa.Connection, library: Library, revision: Revision, touched: Sequence[str], counts: LabelCounts
) -> tuple[Outcome, ...]:
    """What samples carry before and after, of those that then carry something else. touched: ids, sorted."""
    becoming: Counter[tuple[tuple[str, ...], tuple[str, ...]]] = Counter()
    if revision.base is None:
        for labels, count in counts.items():
            meaning = {new for label in labels for new in revision.meanings.get(label, (label,))}
            becoming[labels, tuple(sorted(meaning))] += count
    else:  # labels from before what is taken back become what they were, whatever they mean now
        for before, after in _relabelled(connection, library, revision, touched):
            becoming[before, after] += 1
    found = (Outcome(*both, count) for both, count in becoming.items() if both[0] != both[1])
    return tuple(sorted(found, key=lambda outcome: (-outcome.samples, outcome)))


def _relabelled(
    connection: sa.Connection, library: Library, revision: Revision, ids: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The labels of each sample before and after, worked out from its events."""
    old, new = library.definition.taxonomy, revision.definition.taxonomy
    translation = _translation_after(connection, library, revision)
    for start in range(0, len(ids), SAMPLES_AT_ONCE):
        some = ids[start : start + SAMPLES_AT_ONCE]
        now = [_carried(sample, old) for sample in events_of_samples(connection, library.id, some)]
        then = events_of_samples(connection, library.id, some, translate=translation)
        yield from zip(now, (_carried(sample, new) for sample in then), strict=True)


def _carried(sample: SampleEvents, taxonomy: Taxonomy) -> tuple[str, ...]:
    current = current_labels(sample.events, label_positions(taxonomy))
    return tuple(sorted(current.labels)) if current else ()


def _translation_after(connection: sa.Connection, library: Library, revision: Revision) -> Translation:
    """What labels of all versions mean once `revision` is in force."""
    step = Step(library.version + 1, revision.meanings, revision.base)
    return Translation([*load_translation(connection, library.id).steps, step])


def _check_fits(counts: LabelCounts, outcomes: Sequence[Outcome], revision: Revision) -> None:
    """The labels that samples carry may stand together afterwards.

    Raises:
        BadTaxonomy: they may not.
    """
    carried = Counter(counts)
    for outcome in outcomes:
        carried[outcome.before] -= outcome.samples
        carried[outcome.after] += outcome.samples
    for labels, count in carried.items():
        if count and (misfit := revision.definition.taxonomy.misfit(labels)):
            raise BadTaxonomy(f"{count:,} samples could not keep their labels: {misfit}; label them anew first")


def _touched_snapshots(connection: sa.Connection, library: str, revision: Revision) -> Iterator[TouchedSnapshot]:
    for recorded in recorded_snapshots(connection, library):
        try:
            counts = describe_snapshot(recorded.path).counts["labels"].values()
        except (BadSnapshot, OSError):  # gone or damaged: `wenlei library verify` tells
            continue
        if held := sum(split.get(label, 0) for split in counts for label in revision.meanings):
            yield TouchedSnapshot(recorded.hash, held)
