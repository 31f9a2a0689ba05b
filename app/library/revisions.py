"""Revisions of a taxonomy: what each change makes of the classes, and of the labels that were given before it.

They are pure functions from a library's definition to a `Revision`; `app.library.taxonomies` shows what one would
touch and puts it into force.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from app.library.cells import label_name, label_names
from app.library.declarations import Declaration
from app.library.naming import (
    check_new,
    clean_details,
    find_class,
    find_node,
    new_label,
    path_beside,
    with_classes,
)
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails, Classes, Meanings
from model.errors import BadTaxonomy
from model.types import Taxonomy, preview


@dataclass(frozen=True, slots=True)
class Revision:
    """A library as a change would leave it.

    meanings: label → what becomes of it; others mean themselves. base, undoes: see `app.store.taxonomies`.
    """

    kind: str
    asked: Mapping[str, Any]
    definition: LibraryDefinition
    meanings: Meanings = field(default_factory=dict)
    base: int | None = None
    undoes: int | None = None


Revise = Callable[[LibraryDefinition], Revision]


def add(label: str, details: ClassDetails = ClassDetails(), *, before: str | None = None) -> Revise:
    """One class more, at the end or `before` another; where the taxonomy grows by imports, it keeps its own order."""

    def revise(known: LibraryDefinition) -> Revision:
        name, given = new_label(known, label), clean_details(details)
        branch = known.classes.get(name, ClassDetails())  # it may stand there already, with classes below it
        checked = ClassDetails(
            code=given.code or branch.code,
            description=given.description or branch.description,
            aliases=given.aliases or branch.aliases,
            reviewers=max(given.reviewers, branch.reviewers),
        )
        labels = list(known.taxonomy.labels)
        labels.insert(labels.index(find_class(known, before)) if before else len(labels), name)
        asked = {"label": name, **checked.to_json()}
        return Revision("add", asked, with_classes(known, labels, {**known.classes, name: checked}))

    return revise


def describe(
    label: str,
    *,
    code: str | None = None,
    description: str | None = None,
    aliases: Sequence[str] | None = None,
    reviewers: int | None = None,
) -> Revise:
    """Change what is known of a class; None leaves a thing as it is, an empty one takes it away.

    reviewers: how many persons have to agree in a review of the class, or of those below the branch: 1 or 2.
    """

    def revise(known: LibraryDefinition) -> Revision:
        name = find_node(known, label)
        old = known.classes.get(name, ClassDetails())
        details = clean_details(
            ClassDetails(
                code=old.code if code is None else code,
                description=old.description if description is None else description,
                aliases=old.aliases if aliases is None else tuple(aliases),
                reviewers=old.reviewers if reviewers is None else reviewers,
            )
        )
        asked = {"label": name, **details.to_json()} | ({} if reviewers is None else {"reviewers": reviewers})
        return Revision("describe", asked, with_classes(known, known.taxonomy.labels, {**known.classes, name: details}))

    return revise


def remove(label: str) -> Revise:
    """One class less; its samples have no label until somebody gives them another."""

    def revise(known: LibraryDefinition) -> Revision:
        name = find_class(known, label)
        labels = [each for each in known.taxonomy.labels if each != name]
        return Revision(
            "remove", {"label": name}, with_classes(known, labels, _without(known.classes, name)), {name: ()}
        )

    return revise


def rename(label: str, to: str) -> Revise:
    """Another name for a class, or for a branch with all below it; the old names stay on as aliases.

    to: in a hierarchical taxonomy a name keeps the class under its parent, a whole path may move it.
    """

    def revise(known: LibraryDefinition) -> Revision:
        old = find_node(known, label)
        return _moved("rename", {"label": old, "to": label_name(to)}, known, old, path_beside(known.taxonomy, old, to))

    return revise


def move(label: str, *, under: str | None) -> Revise:
    """Bring a class, or a branch with all below it, under another parent, or with None to the top."""

    def revise(known: LibraryDefinition) -> Revision:
        taxonomy = known.taxonomy
        separator = _hierarchical(taxonomy)
        old = find_node(known, label)
        parent = None if under is None else find_node(known, under)
        if parent is not None and (parent == old or parent.startswith(old + separator)):
            raise BadTaxonomy(
                f"{old!r} can't stand under {parent!r}, which is itself or below it; that would be a circle"
            )
        name = taxonomy.levels(old)[-1]
        new = name if parent is None else f"{parent}{separator}{name}"
        return _moved("move", {"label": old, "under": parent}, known, old, new)

    return revise


def merge(labels: Sequence[str], *, into: str) -> Revise:
    """Several classes become one, which is among them, another, or new; the old names stay on as its aliases."""

    def revise(known: LibraryDefinition) -> Revision:
        taxonomy = known.taxonomy
        sources = list(dict.fromkeys(find_class(known, label) for label in labels))
        target = path_beside(taxonomy, sources[0], into) if sources else label_name(into)
        target = label_names(known).get(target, target)
        gone = [label for label in sources if label != target]
        if not gone:
            raise BadTaxonomy(f"nothing to merge into {target!r}; name the classes that become it")
        if target not in taxonomy.labels:
            check_new(known, target, besides=gone)
        remaining = [label for label in taxonomy.labels if label not in gone]
        if target not in remaining:
            first = taxonomy.labels.index(sources[0])
            remaining.insert(sum(label in remaining for label in taxonomy.labels[:first]), target)
        details = _absorb(known.classes.get(target, ClassDetails()), gone, known.classes)
        classes = {**_without(known.classes, *gone), target: details}
        meanings = dict.fromkeys(gone, (target,))
        return Revision("merge", {"labels": sources, "into": target}, with_classes(known, remaining, classes), meanings)

    return revise


def split(label: str, *, into: Sequence[str], rest: str | None = None) -> Revise:
    """One class becomes several. Its samples go to `rest`, one of them; else they wait without a label."""

    def revise(known: LibraryDefinition) -> Revision:
        taxonomy = known.taxonomy
        old = find_class(known, label)
        parts = list(dict.fromkeys(path_beside(taxonomy, old, part) for part in into))
        if len(parts) < 2:
            raise BadTaxonomy(f"{old!r} is split into {preview(parts) or 'nothing'}; give two classes or more")
        kept = None if rest is None else path_beside(taxonomy, old, rest)
        if kept is not None and kept not in parts:
            raise BadTaxonomy(f"the rest goes to {kept!r}, which is none of {preview(parts)}")
        for part in parts:
            if part != old and part not in taxonomy.labels:
                check_new(known, part, besides=[old])
        labels: list[str] = []
        for each in taxonomy.labels:
            labels += [part for part in parts if part == old or part not in taxonomy.labels] if each == old else [each]
        classes = dict(known.classes) if old in parts else _without(known.classes, old)
        if (reviewers := known.classes.get(old, ClassDetails()).reviewers) > 1:
            classes |= {part: _reviewed(classes.get(part), reviewers) for part in parts}
        asked = {"label": old, "into": parts, "rest": kept}
        meanings = {} if kept == old else {old: (kept,) if kept else ()}
        return Revision("split", asked, with_classes(known, labels, classes), meanings)

    return revise


def declare(declaration: Declaration) -> Revise:
    """Say once and for all which classes there are; those that the library has may be called by alias or code.

    Raises (when it revises):
        BadTaxonomy: the tasks differ, or the library has labels that the declaration lacks.
    """

    def revise(known: LibraryDefinition) -> Revision:
        definition = declaration.definition(known.name, known)
        old, new = known.taxonomy, definition.taxonomy
        if (new.task, new.level_sep) != (old.task, old.level_sep):
            raise BadTaxonomy(
                f"library {known.name!r} holds task {_spelled(old)}, not {_spelled(new)}; "
                "declare into another one with --library"
            )
        declared = with_classes(definition, new.labels, definition.classes)
        meant = label_names(declared)
        lacking = [label for label in old.labels if label not in meant]
        if lacking:
            raise BadTaxonomy(
                f"{declaration.file} lacks {preview(lacking)}, which library {known.name!r} has; add them, or name "
                "them as aliases of what they become"
            )
        meanings = {label: (meant[label],) for label in old.labels if meant[label] != label}
        return Revision("declare", {"labels": len(new.labels)}, declared, meanings)

    return revise


def declare_new(declaration: Declaration, library: str) -> Revision:
    """A library that is not there yet, as it is declared.

    Raises:
        BadTaxonomy, BadInput: it can't be declared so.
    """
    definition = declaration.definition(library, None)
    declared = with_classes(definition, definition.taxonomy.labels, definition.classes)
    return Revision("declare", {"labels": len(declared.taxonomy.labels)}, declared)


def _moved(kind: str, asked: Mapping[str, Any], known: LibraryDefinition, old: str, new: str) -> Revision:
    """`old`, and in a hierarchy all below it, under the name or path `new`."""
    taxonomy = known.taxonomy
    separator = taxonomy.level_sep

    def renamed(label: str) -> str:
        if label == old:
            return new
        return new + label[len(old) :] if separator and label.startswith(old + separator) else label

    if new == old:
        raise BadTaxonomy(f"{old!r} stays what it is; give another name or place")
    touched = [label for label in taxonomy.labels if renamed(label) != label]
    for label in touched:
        check_new(known, renamed(label), besides=touched)
    labels = [renamed(label) for label in taxonomy.labels]
    # a branch that joins another one takes on what is known of that
    classes = {label: details for label, details in known.classes.items() if renamed(label) == label}
    for label, details in known.classes.items():
        joined = classes.setdefault(renamed(label), details)
        classes[renamed(label)] = _reviewed(joined, details.reviewers)
    for label in touched:
        details = classes.get(renamed(label), ClassDetails())
        classes[renamed(label)] = replace(details, aliases=tuple(dict.fromkeys((*details.aliases, label))))
    return Revision(kind, asked, with_classes(known, labels, classes), {label: (renamed(label),) for label in touched})


def _absorb(target: ClassDetails, gone: Sequence[str], classes: Classes) -> ClassDetails:
    """What a class is called after others have become it."""
    names, reviewers = list(target.aliases), target.reviewers
    for label in gone:
        details = classes.get(label, ClassDetails())
        names += [label, *details.other_names]
        reviewers = max(reviewers, details.reviewers)
    return replace(target, aliases=tuple(dict.fromkeys(names)), reviewers=reviewers)


def _reviewed(details: ClassDetails | None, reviewers: int) -> ClassDetails:
    """`details` with at least so many reviewers."""
    known = details or ClassDetails()
    return replace(known, reviewers=max(known.reviewers, reviewers))


def _without(classes: Classes, *labels: str) -> dict[str, ClassDetails]:
    return {label: details for label, details in classes.items() if label not in labels}


def _hierarchical(taxonomy: Taxonomy) -> str:
    if taxonomy.level_sep is None:
        raise BadTaxonomy(f"task {taxonomy.task} has no levels to move between; rename or merge instead")
    return taxonomy.level_sep


def _spelled(taxonomy: Taxonomy) -> str:
    return f"{taxonomy.task}, levels parted by {taxonomy.level_sep!r}" if taxonomy.level_sep else str(taxonomy.task)
