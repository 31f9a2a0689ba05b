"""What classes may be called, and which class or branch a name means."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from app.library.cells import MAX_LABEL_CHARS, has_empty_level, label_name, label_names
from app.library.definition import check_number
from app.store.libraries import LibraryDefinition
from app.store.taxonomies import ClassDetails, Classes
from model.errors import BadTaxonomy, UnknownLabel
from model.types import Taxonomy, preview

MAX_DESCRIPTION_CHARS = 2000
MAX_REVIEWERS = 2


def find_class(known: LibraryDefinition, label: str) -> str:
    """The class that is called `label`.

    Raises:
        UnknownLabel: none is.
    """
    name = label_name(label)
    if found := label_names(known).get(name):
        return found
    taxonomy = known.taxonomy
    if taxonomy.level_sep and any(each.startswith(name + taxonomy.level_sep) for each in taxonomy.labels):
        raise UnknownLabel(
            f"{name!r} is a branch, not a class; name one below it: {preview(_below(taxonomy, name), 3)}"
        )
    raise UnknownLabel(f"label {name!r} is not in the taxonomy ({preview(taxonomy.labels) or 'it has none yet'})")


def find_node(known: LibraryDefinition, label: str) -> str:
    """The class that is called `label`, or the branch of that path, code or alias.

    Raises:
        UnknownLabel: there is none.
    """
    name = label_name(label)
    separator = known.taxonomy.level_sep
    if separator and name not in label_names(known):
        branches = {called: branch for branch, details in known.classes.items() for called in details.other_names}
        branch = branches.get(name, name)
        if any(each.startswith(branch + separator) for each in known.taxonomy.labels):
            return branch
    return find_class(known, name)


def path_beside(taxonomy: Taxonomy, old: str, name: str) -> str:
    """The path that `name` means beside `old`: under the same parent, unless it is a whole path itself.

    Raises:
        BadTaxonomy: it is empty.
    """
    new = label_name(name)
    if not new:
        raise BadTaxonomy("the class's name is empty")
    separator = taxonomy.level_sep
    if separator is None or separator in new or separator not in old:
        return new
    return separator.join((*taxonomy.levels(old)[:-1], new))


def new_label(known: LibraryDefinition, label: str) -> str:
    """The name of a class that there is not yet.

    Raises:
        BadTaxonomy: it is empty, or some class is called so.
    """
    name = label_name(label)
    if not name:
        raise BadTaxonomy("the class's name is empty")
    check_new(known, name, besides=())
    return name


def check_new(known: LibraryDefinition, label: str, *, besides: Sequence[str]) -> None:
    """`label` may become a class, now that those of `besides` go.

    Raises:
        BadTaxonomy: another class is called so.
    """
    owner = label_names(known).get(label)
    if owner is not None and owner not in besides:
        way = "merge the two with wenlei taxonomy merge" if owner == label else f"it is another name of {owner!r}"
        raise BadTaxonomy(f"there is a class {label!r} already; {way}")


def with_classes(known: LibraryDefinition, labels: Iterable[str], classes: Classes) -> LibraryDefinition:
    """`known` with other classes, in the order of code points unless their order is declared.

    Raises:
        BadTaxonomy: two classes could be called by one name, there are too many, or a name can't be one.
    """
    ordered = tuple(labels) if known.declared else tuple(sorted(labels))
    taxonomy = replace(known.taxonomy, labels=ordered)
    for label in ordered:
        _check_name(taxonomy, label)
    check_number(ordered, "the list the right one")
    kept = {label: tidy for label, details in classes.items() if (tidy := _without_itself(label, details)).to_json()}
    definition = replace(known, taxonomy=taxonomy, classes=kept)
    _check_unique(definition)
    return definition


def clean_details(details: ClassDetails) -> ClassDetails:
    """`details` as they are kept: names cleaned as those of labels are, and nothing that is empty.

    Raises:
        BadTaxonomy: the description is too long, or the reviewers are none or too many.
    """
    check_reviewers(details.reviewers)
    description = (details.description or "").strip()
    if len(description) > MAX_DESCRIPTION_CHARS:
        raise BadTaxonomy(
            f"the description has {len(description)} characters, more than {MAX_DESCRIPTION_CHARS}; shorten it"
        )
    aliases = dict.fromkeys(name for alias in details.aliases if (name := label_name(alias)))
    return ClassDetails(label_name(details.code or "") or None, description or None, tuple(aliases), details.reviewers)


def check_reviewers(reviewers: int) -> int:
    """How many persons review a class, if that is one or two.

    Raises:
        BadTaxonomy: it is not.
    """
    if not 1 <= reviewers <= MAX_REVIEWERS:
        raise BadTaxonomy(f"{reviewers} reviewers: a class is reviewed by 1 person, or by 2 who have to agree")
    return reviewers


def _check_unique(definition: LibraryDefinition) -> None:
    """No name, code or alias may mean two classes.

    Raises:
        BadTaxonomy: one does.
    """
    owners = {label: label for label in definition.taxonomy.labels}
    for label, details in definition.classes.items():
        for name in details.other_names:
            if (owner := owners.setdefault(name, label)) != label:
                raise BadTaxonomy(
                    f"{name!r} would mean both {owner!r} and {label!r}; a name, code or alias means one class"
                )


def _check_name(taxonomy: Taxonomy, label: str) -> None:
    if len(label) > MAX_LABEL_CHARS:
        raise BadTaxonomy(f"the class {label[:20]!r}… has {len(label)} characters, more than {MAX_LABEL_CHARS}")
    if has_empty_level(taxonomy, label):
        raise BadTaxonomy(f"class {label!r} has an empty level; levels are parted by {taxonomy.level_sep!r}")


def _without_itself(label: str, details: ClassDetails) -> ClassDetails:
    """No alias says again what the class is called anyway, as after it was renamed to one of them."""
    aliases = tuple(alias for alias in details.aliases if alias not in (label, details.code))
    return replace(details, code=None if details.code == label else details.code, aliases=aliases)


def _below(taxonomy: Taxonomy, branch: str) -> list[str]:
    return [label for label in taxonomy.labels if label.startswith(f"{branch}{taxonomy.level_sep}")]
