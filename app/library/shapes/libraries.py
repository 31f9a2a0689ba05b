"""Libraries, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.summary import Summary
from app.store.overview import LibraryOverview


class LibraryShape(TypedDict):
    """A library at a glance."""

    library: str
    samples: int
    snapshots: int
    created_at: str


class NormaliserShape(TypedDict):
    """What texts go through before they are kept."""

    width: str
    simplify: bool
    markup: bool


class LibraryDetails(LibraryShape):
    """One library. labels: how many classes it has; declared: imports add none.

    labelled, unlabelled, conflicts: samples with labels, without, and on which persons or imports disagree.
    """

    task: str
    multiple: bool
    level_sep: str | None
    label_sep: str | None
    labels: int
    declared: bool
    taxonomy_version: int
    normaliser: NormaliserShape
    labelled: int
    unlabelled: int
    conflicts: int


class LibraryList(TypedDict):
    """All libraries."""

    libraries: list[LibraryShape]


def library_list(found: list[LibraryOverview]) -> LibraryList:
    """All libraries, by name."""
    return {"libraries": [_glance(overview) for overview in found]}


def library_details(found: Summary) -> LibraryDetails:
    """One library."""
    definition = found.library.definition
    taxonomy, normaliser = definition.taxonomy, definition.normaliser
    return {
        **_glance(found.overview),
        "task": taxonomy.task.value,
        "multiple": taxonomy.multiple,
        "level_sep": taxonomy.level_sep,
        "label_sep": definition.label_sep,
        "labels": len(taxonomy.labels),
        "declared": definition.declared,
        "taxonomy_version": found.library.version,
        "normaliser": {
            "width": normaliser.width.value,
            "simplify": normaliser.simplify,
            "markup": normaliser.markup,
        },
        "labelled": found.labelled,
        "unlabelled": found.unlabelled,
        "conflicts": found.conflicts,
    }


def _glance(overview: LibraryOverview) -> LibraryShape:
    return {
        "library": overview.name,
        "samples": overview.samples,
        "snapshots": overview.snapshots,
        "created_at": overview.created_at,
    }
