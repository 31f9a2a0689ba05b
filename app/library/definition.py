"""Settle what a library is, from what an import asks for and what the library is already."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from app.store.libraries import LibraryDefinition
from model.errors import BadInput, BadTaxonomy
from model.text import Normaliser
from model.types import Task, Taxonomy, preview

# A softmax over more is nothing that is trained here; it is a column of texts or ids taken for labels.
MAX_LABELS = 10_000
# It is part of file names.
_LIBRARY_NAME = re.compile(r"\w[\w.-]{0,63}")


@dataclass(frozen=True, slots=True)
class Wish:
    """What an import asks of its library; None leaves it to the library, or to what follows from the rest.

    names: the declared classes in their order.
    """

    library: str
    task: Task | None = None
    label_sep: str | None = None
    level_sep: str | None = None
    names: tuple[str, ...] | None = None


def define(wish: Wish, known: LibraryDefinition | None) -> LibraryDefinition:
    """The library that the import fills: a new one, or the `known` one, its labels declared where they were not.

    Raises:
        BadTaxonomy: the wish contradicts itself or the library. BadInput: the library's name can't be one.
    """
    if not _LIBRARY_NAME.fullmatch(wish.library):
        raise BadInput(f"library name {wish.library!r}: take letters, digits, _ - and . (not first), at most 64")
    for option, separator in (("--label-sep", wish.label_sep), ("--level-sep", wish.level_sep)):
        if separator == "":
            raise BadTaxonomy(f"{option} is empty; give the characters that part the labels")
    if known is None:
        return _new(wish)
    _check_same(wish, known)
    label_sep = wish.label_sep or known.label_sep
    if wish.names is None:
        return replace(known, label_sep=label_sep)
    outside = set(known.taxonomy.labels) - set(wish.names)
    if outside or (known.declared and wish.names != known.taxonomy.labels):
        what = f"lacks its labels {preview(sorted(outside))}" if outside else "differs from its declared list"
        raise BadTaxonomy(f"--label-names {what}: library {known.name!r} has {preview(known.taxonomy.labels)}")
    return replace(known, taxonomy=replace(known.taxonomy, labels=wish.names), declared=True, label_sep=label_sep)


def grown(definition: LibraryDefinition, labels: Iterable[str]) -> LibraryDefinition:
    """The library after `labels` have come in: in the order of code points, whatever the order of import.

    Raises:
        BadTaxonomy: there are too many of them to be classes.
    """
    if definition.declared:
        return definition
    merged = tuple(sorted({*definition.taxonomy.labels, *labels}))
    if len(merged) > MAX_LABELS:
        raise BadTaxonomy(
            f"{len(merged):,} different labels, more than {MAX_LABELS:,} ({preview(merged)}); "
            "is --label the right column?"
        )
    return replace(definition, taxonomy=replace(definition.taxonomy, labels=merged))


def _new(wish: Wish) -> LibraryDefinition:
    task = wish.task or (Task.HIERARCHICAL if wish.level_sep else Task.MULTI if wish.label_sep else Task.SINGLE)
    if task is Task.HIERARCHICAL and wish.level_sep is None:
        raise BadTaxonomy("a hierarchical task needs --level-sep, what parts the levels of a label (组织关系-裁员: -)")
    if task is not Task.HIERARCHICAL and wish.level_sep is not None:
        raise BadTaxonomy(f"task {task} has no levels; leave out --level-sep or take --task hierarchical")
    if task is Task.SINGLE and wish.label_sep is not None:
        raise BadTaxonomy("task single has one label a text; leave out --label-sep or take --task multi")
    if wish.level_sep is not None and wish.level_sep == wish.label_sep:
        raise BadTaxonomy(f"--label-sep and --level-sep are both {wish.label_sep!r}; they must differ")
    taxonomy = Taxonomy(
        task=task,
        labels=wish.names or (),
        level_sep=wish.level_sep,
        multiple=task is Task.MULTI or (task is Task.HIERARCHICAL and wish.label_sep is not None),
    )
    return LibraryDefinition(
        name=wish.library,
        taxonomy=taxonomy,
        declared=wish.names is not None,
        label_sep=wish.label_sep,
        normaliser=Normaliser(),
    )


def _check_same(wish: Wish, known: LibraryDefinition) -> None:
    taxonomy = known.taxonomy
    way_out = "import into another one with --library"
    if wish.task not in (None, taxonomy.task):
        raise BadTaxonomy(f"library {known.name!r} holds task {taxonomy.task}, not {wish.task}; {way_out}")
    if wish.level_sep not in (None, taxonomy.level_sep):
        has = f"levels parted by {taxonomy.level_sep!r}" if taxonomy.level_sep else "no levels"
        raise BadTaxonomy(f"library {known.name!r} has {has}, not by {wish.level_sep!r}; {way_out}")
    if wish.label_sep is not None and not taxonomy.multiple:
        raise BadTaxonomy(
            f"library {known.name!r} (task {taxonomy.task}) holds one label a text; leave out --label-sep or {way_out}"
        )
