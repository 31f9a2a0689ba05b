"""Take a change of a taxonomy back: the classes are what they were, and so is what labels from before it mean."""

from collections.abc import Sequence
from dataclasses import replace

from app.library.revisions import Revision
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails, Classes, Meanings, Step, TaxonomyChange, Translation
from model.errors import BadTaxonomy
from model.files import canonical_json

GROWTH = ("start", "import")  # versions that nobody asked for


def revert(
    history: Sequence[TaxonomyChange], version: int | None, known: LibraryDefinition, *, rollback: bool = False
) -> Revision:
    """The revision that takes `version` back; None: the last change that was asked for and stands.

    Classes that came since stay. Labels that were given since in the terms of the change get their old meaning where
    there is one; else their samples wait for a label. Taking an undo back makes its change again. rollback: whether
    `version` may be that of a rollback.

    Raises:
        BadTaxonomy: there is no such version, it is taken back already, or later ones stand on it.
    """
    in_force = _in_force(history)
    undone = _undone(history, version, in_force, rollback=rollback)
    for later in history[undone.version :]:
        if later.version in in_force:
            raise BadTaxonomy(
                f"version {later.version} ({later.kind}) came after version {undone.version}; undo that first"
            )
    before = history[undone.version - 2]
    kept = list(before.taxonomy.labels)
    since = [label for label in known.taxonomy.labels if label not in {*undone.taxonomy.labels, *kept}]
    labels = (*kept, *since) if before.declared else tuple(sorted((*kept, *since)))
    restored = {label: _without_names(details, since) for label, details in before.classes.items()}
    classes = {label: known.classes[label] for label in since if label in known.classes} | restored
    definition = as_before(known, before, labels=labels, classes=classes)
    return Revision(
        kind="undo",
        asked={"version": undone.version},
        definition=definition,
        meanings=_meanings(history, undone, before),
        base=before.version,
        undoes=undone.version,
    )


def as_before(
    known: LibraryDefinition,
    before: TaxonomyChange,
    *,
    labels: tuple[str, ...] | None = None,
    classes: Classes | None = None,
) -> LibraryDefinition:
    """The library with the taxonomy that it had in an earlier version, or with some of its classes."""
    taxonomy = before.taxonomy if labels is None else replace(before.taxonomy, labels=labels)
    described = before.classes if classes is None else classes
    return replace(known, taxonomy=taxonomy, declared=before.declared, classes=described)


def _without_names(details: ClassDetails, taken: Sequence[str]) -> ClassDetails:
    """`details` without the names that are classes by now, for an import may have made one of a name that was free."""
    aliases = tuple(alias for alias in details.aliases if alias not in taken)
    return replace(details, code=None if details.code in taken else details.code, aliases=aliases)


def _in_force(history: Sequence[TaxonomyChange]) -> list[int]:
    """The versions that were asked for and hold: changes that nobody took back, and takings back of takings back."""
    taken_back = {change.undoes for change in history}
    made: dict[int, bool] = {}
    for change in history:
        made[change.version] = change.undoes is None or not made[change.undoes]
    return [
        change.version
        for change in history[1:]
        if made[change.version] and change.version not in taken_back and change.kind not in GROWTH
    ]


def _undone(
    history: Sequence[TaxonomyChange], version: int | None, in_force: Sequence[int], *, rollback: bool
) -> TaxonomyChange:
    if version is None:
        if not in_force:
            raise BadTaxonomy(
                "there is no change of the taxonomy to undo; to bring back one that was undone, give the version of "
                "the undo, as wenlei taxonomy versions shows it"
            )
        version = in_force[-1]
    if not 1 < version <= len(history):
        raise BadTaxonomy(
            "version 1 is the taxonomy's first and has nothing before it"
            if version == 1
            else f"there is no version {version} to undo; the newest is {len(history)}"
        )
    change = history[version - 1]
    by = next((later.version for later in history if later.undoes == version), None)
    if by is not None:
        raise BadTaxonomy(f"version {version} is undone already, by version {by}; undo that to bring it back")
    if change.kind == "rollback" and not rollback:
        raise BadTaxonomy(f"version {version} belongs to a rollback; undo that with wenlei library rollback --undo")
    if change.kind == "undo" and _first_undone(history, change).kind == "rollback":
        raise BadTaxonomy(f"version {version} undid a rollback; roll back again with wenlei library rollback")
    if change.kind in GROWTH:
        raise BadTaxonomy(f"version {version} came with an import; remove its classes with wenlei taxonomy remove")
    return change


def _first_undone(history: Sequence[TaxonomyChange], change: TaxonomyChange) -> TaxonomyChange:
    """The change that was taken back first, and maybe made again since, up to `change`."""
    while change.undoes is not None:
        change = history[change.undoes - 1]
    return change


def _meanings(history: Sequence[TaxonomyChange], undone: TaxonomyChange, before: TaxonomyChange) -> Meanings:
    """What labels given since `undone` mean without it."""
    if undone.undoes is not None:
        return history[undone.undoes - 1].meanings
    if undone.kind == "rollback":  # what was said since is meant as if it had been said back then
        until = Translation([Step(each.version, each.meanings, each.base) for each in history[1 : before.version]])
        base = undone.base or 1
        return {label: until(canonical_json([label]).decode(), base) for label in undone.taxonomy.labels}
    back: dict[str, tuple[str, ...]] = {}
    for label in undone.taxonomy.labels:
        if label in before.taxonomy.labels:
            continue
        was = [old for old, new in undone.meanings.items() if label in new]
        if undone.kind == "split":
            was = [undone.asked["label"]]
        back[label] = (was[0],) if len(was) == 1 else ()  # of several that were merged, nobody knows which
    return back
