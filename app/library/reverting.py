"""Take a change of a taxonomy back: the classes are what they were, and so is what labels from before it mean."""

from collections.abc import Sequence
from dataclasses import replace

from app.library.revisions import Revision
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import Meanings, TaxonomyChange
from model.errors import BadTaxonomy

GROWTH = ("start", "import")  # versions that nobody asked for


def revert(history: Sequence[TaxonomyChange], version: int | None, known: LibraryDefinition) -> Revision:
    """The revision that takes `version` back; None: the last change that was asked for and stands.

    Classes that came since stay. Labels that were given since in the terms of the change get their old meaning where
    there is one; else their samples wait for a label. Taking an undo back makes its change again.

    Raises:
        BadTaxonomy: there is no such version, it is taken back already, or later ones stand on it.
    """
    standing = _standing(history)
    undone = _undone(history, version, standing)
    for later in history[undone.version :]:
        if later.version in standing and later.kind not in GROWTH:
            raise BadTaxonomy(
                f"version {later.version} ({later.kind}) came after version {undone.version}; undo that first"
            )
    before = history[undone.version - 2]
    kept = list(before.taxonomy.labels)
    since = [label for label in known.taxonomy.labels if label not in {*undone.taxonomy.labels, *kept}]
    labels = (*kept, *since) if before.declared else tuple(sorted((*kept, *since)))
    definition = replace(
        known,
        taxonomy=replace(before.taxonomy, labels=labels),
        declared=before.declared,
        classes={label: known.classes[label] for label in since if label in known.classes} | dict(before.classes),
    )
    return Revision(
        kind="undo",
        asked={"version": undone.version},
        definition=definition,
        meanings=_meanings(history, undone, before),
        base=before.version,
        undoes=undone.version,
    )


def _standing(history: Sequence[TaxonomyChange]) -> set[int]:
    """The versions that hold: not taken back, nor takings back of what came later than all that holds."""
    void: set[int] = set()
    for change in reversed(history):
        if change.version not in void and change.undoes is not None:
            # the two cancel out
            void |= {change.version, change.undoes}
    return {change.version for change in history} - void


def _undone(history: Sequence[TaxonomyChange], version: int | None, standing: set[int]) -> TaxonomyChange:
    if version is None:
        asked = [change for change in history if change.version in standing and change.kind not in GROWTH]
        if not asked or asked[-1].version == 1:
            raise BadTaxonomy("there is no change of the taxonomy to undo; see wenlei taxonomy versions")
        return asked[-1]
    if not 1 < version <= len(history):
        raise BadTaxonomy(f"there is no version {version} to undo; versions go from 2 to {len(history)}")
    change = history[version - 1]
    taken_back = [later.version for later in history if later.undoes == version]
    if taken_back and change.version not in standing:
        raise BadTaxonomy(
            f"version {version} is undone already, by version {taken_back[-1]}; undo that to bring it back"
        )
    if change.kind == "rollback":
        raise BadTaxonomy(f"version {version} belongs to a rollback; undo that with wenlei library rollback --undo")
    if change.kind in GROWTH:
        raise BadTaxonomy(f"version {version} came with an import; remove its classes with wenlei taxonomy remove")
    return change


def _meanings(history: Sequence[TaxonomyChange], undone: TaxonomyChange, before: TaxonomyChange) -> Meanings:
    """What labels given since `undone` mean without it."""
    if undone.undoes is not None:
        return history[undone.undoes - 1].meanings
    back: dict[str, tuple[str, ...]] = {}
    for label in undone.taxonomy.labels:
        if label in before.taxonomy.labels:
            continue
        was = [old for old, new in undone.meanings.items() if label in new]
        if undone.kind == "split":
            was = [undone.asked["label"]]
        back[label] = (was[0],) if len(was) == 1 else ()  # of several that were merged, nobody knows which
    return back
