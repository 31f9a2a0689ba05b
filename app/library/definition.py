"""Settle what a library is, from what an import asks for and what the library is already."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.library.cells import actor_name, has_empty_level
from app.store.libraries import LibraryDefinition
from model.errors import BadInput, BadTaxonomy
from model.text import Normaliser
from model.types import Task, Taxonomy, preview

PROPOSERS = ("rule", "model")
# A softmax over more is nothing that is trained here; it is a column of texts or ids taken for labels.
MAX_LABELS = 10_000
# It is part of file names.
_LIBRARY_NAME = re.compile(r"\w[\w.-]{0,63}")


class Proposer(NamedTuple):
    """A rule or a model that proposes labels; they are on record, and no label until a person says so."""

    kind: str
    name: str

    @classmethod
    def read(cls, given: str) -> "Proposer":
        """The proposer that `rule:NAME` or `model:NAME` names.

        Raises:
            BadInput: it names none.
        """
        kind, _, name = given.partition(":")
        if kind not in PROPOSERS or not name.strip():
            raise BadInput(f"--proposed-by {given!r}: give rule:NAME or model:NAME")
        return cls(kind, actor_name(name))


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What an import asks of its library; None leaves it to the library, or to what follows from the rest.

    label_sep: a new library keeps it; in a known one it holds for this import alone. names: the declared classes in
    their order. simplify: whether traditional characters become simplified ones. proposer: what proposes the labels,
    if they are not to count.
    """

    library: str
    task: Task | None = None
    label_sep: str | None = None
    level_sep: str | None = None
    names: tuple[str, ...] | None = None
    simplify: bool | None = None
    proposer: Proposer | None = None


def define(options: ImportOptions, known: LibraryDefinition | None) -> LibraryDefinition:
    """The library that the import fills: a new one, or the `known` one, its labels declared where they were not.

    Raises:
        BadTaxonomy: the options contradict each other or the library. BadInput: the library's name can't be one.
    """
    check_library_name(options.library)
    _check_separators(options, options.level_sep if known is None else known.taxonomy.level_sep)
    if known is not None:
        _check_same(options, known)
    return _declared(known or _new(options), options.names)


def check_library_name(name: str) -> None:
    """A library may be called `name`.

    Raises:
        BadInput: it may not.
    """
    if not _LIBRARY_NAME.fullmatch(name):
        raise BadInput(f"library name {name!r}: take letters, digits, _ - and . (not first), at most 64")


def grown(definition: LibraryDefinition, labels: Iterable[str]) -> LibraryDefinition:
    """The library after `labels` have come in: in the order of code points, whatever the order of import.

    Raises:
        BadTaxonomy: there are too many of them to be classes.
    """
    if definition.declared:
        return definition
    merged = tuple(sorted({*definition.taxonomy.labels, *labels}))
    check_number(merged, "--label the right column")
    return replace(definition, taxonomy=replace(definition.taxonomy, labels=merged))


def _declared(definition: LibraryDefinition, names: tuple[str, ...] | None) -> LibraryDefinition:
    if names is None:
        return definition
    labels = definition.taxonomy.labels
    outside = set(labels) - set(names)
    if outside or (definition.declared and names != labels):
        what = f"lacks its labels {preview(sorted(outside))}" if outside else "differs from its declared list"
        raise BadTaxonomy(f"--label-names {what}: library {definition.name!r} has {preview(labels)}")
    owners = {name: label for label, details in definition.classes.items() for name in details.other_names}
    if taken := [f"{name!r} of {owners[name]!r}" for name in names if name in owners]:
        raise BadTaxonomy(
            f"--label-names: library {definition.name!r} has these as other names of classes: {'; '.join(taken[:5])}; "
            "leave them out, or take them away with wenlei taxonomy describe"
        )
    check_number(names, "--label-names the right file")
    taxonomy = replace(definition.taxonomy, labels=names)
    if odd := [name for name in names if has_empty_level(taxonomy, name)]:
        raise BadTaxonomy(
            f"--label-names: an empty level in {preview(odd)}; levels are parted by {taxonomy.level_sep!r}"
        )
    return replace(definition, taxonomy=taxonomy, declared=True)


def _new(options: ImportOptions) -> LibraryDefinition:
    task = options.task or (
        Task.HIERARCHICAL if options.level_sep else Task.MULTI if options.label_sep else Task.SINGLE
    )
    if task is Task.HIERARCHICAL and options.level_sep is None:
        raise BadTaxonomy("a hierarchical task needs --level-sep, what parts the levels of a label (组织关系-裁员: -)")
    if task is not Task.HIERARCHICAL and options.level_sep is not None:
        raise BadTaxonomy(f"task {task} has no levels; leave out --level-sep or take --task hierarchical")
    if task is Task.SINGLE and options.label_sep is not None:
        raise BadTaxonomy("task single has one label a text; leave out --label-sep or take --task multi")
    taxonomy = Taxonomy(
        task=task,
        labels=(),
        level_sep=options.level_sep,
        multiple=task is Task.MULTI or (task is Task.HIERARCHICAL and options.label_sep is not None),
    )
    return LibraryDefinition(
        name=options.library,
        taxonomy=taxonomy,
        declared=False,
        label_sep=options.label_sep,
        normaliser=Normaliser(simplify=bool(options.simplify)),
    )


def _check_separators(options: ImportOptions, level_sep: str | None) -> None:
    for option, separator in (("--label-sep", options.label_sep), ("--level-sep", options.level_sep)):
        if separator == "":
            raise BadTaxonomy(f"{option} is empty; give the characters that part the labels")
    if level_sep is not None and level_sep == options.label_sep:
        raise BadTaxonomy(f"--label-sep and the level separator are both {level_sep!r}; they must differ")


def check_number(labels: tuple[str, ...], right: str) -> None:
    """Stop where there are more labels than classes can be; `right`: what to look at again.

    Raises:
        BadTaxonomy: there are.
    """
    if len(labels) > MAX_LABELS:
        raise BadTaxonomy(
            f"{len(labels):,} different labels, more than {MAX_LABELS:,} ({preview(labels)}); is {right}?"
        )


def _check_same(options: ImportOptions, known: LibraryDefinition) -> None:
    taxonomy = known.taxonomy
    way_out = "import into another one with --library"
    if options.task not in (None, taxonomy.task):
        raise BadTaxonomy(f"library {known.name!r} holds task {taxonomy.task}, not {options.task}; {way_out}")
    if options.level_sep not in (None, taxonomy.level_sep):
        has = f"levels parted by {taxonomy.level_sep!r}" if taxonomy.level_sep else "no levels"
        raise BadTaxonomy(f"library {known.name!r} has {has}, not by {options.level_sep!r}; {way_out}")
    if options.label_sep is not None and not taxonomy.multiple:
        raise BadTaxonomy(
            f"library {known.name!r} (task {taxonomy.task}) holds one label a text; leave out --label-sep or {way_out}"
        )
    if options.simplify not in (None, known.normaliser.simplify):
        does = "simplifies its texts" if known.normaliser.simplify else "keeps traditional characters"
        raise BadTaxonomy(f"library {known.name!r} {does}; leave out --[no-]simplify or {way_out}")
