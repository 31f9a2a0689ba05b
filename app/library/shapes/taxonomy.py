"""Taxonomies, their versions and what changes touch, as commands print them and HTTP answers them."""

from collections.abc import Sequence
from typing import Any, NotRequired

from typing_extensions import TypedDict

from app.library.taxonomies import Touched
from app.store.libraries import Library
from app.store.taxonomies import ClassDetails, TaxonomyChange

OUTCOMES_SHOWN = 100


class DetailsShape(TypedDict):
    """What is known of a branch besides its path; what is not known is left out.

    reviewers: how many persons have to decide the same where it is reviewed; left out where one does.
    """

    code: NotRequired[str]
    description: NotRequired[str]
    aliases: NotRequired[list[str]]
    reviewers: NotRequired[int]


class ClassShape(TypedDict):
    """A class, how many samples carry it, and what is known of it."""

    label: str
    samples: int
    code: NotRequired[str]
    description: NotRequired[str]
    aliases: NotRequired[list[str]]
    reviewers: NotRequired[int]


class TaxonomyShape(TypedDict):
    """A library's taxonomy. declared: imports add no classes. multiple: a sample may carry several.

    level_sep: what parts the levels of a path. choices: for each level single or multi, where that was declared.
    branches: path → what is known of a branch.
    """

    library: str
    version: int
    declared: bool
    task: str
    labels: list[ClassShape]
    level_sep: str | None
    multiple: bool
    choices: NotRequired[list[str]]
    branches: dict[str, DetailsShape]


class VersionShape(TypedDict):
    """A version of a taxonomy, and the change that made it.

    asked: what was asked for. undoes: the version that this one takes back.
    """

    version: int
    kind: str
    asked: dict[str, Any]
    undoes: int | None
    labels: list[str]
    declared: bool
    by: str
    at: str
    note: str | None


class VersionsShape(TypedDict):
    """Versions of a taxonomy, oldest first. total: how many there are."""

    library: str
    total: int
    versions: list[VersionShape]


class HeldShape(TypedDict):
    """A snapshot that holds labels which a change renames or takes away; it stays as it is."""

    hash: str
    samples: int


class OutcomeShape(TypedDict):
    """How many samples carry the labels `before`, and then those of `after`."""

    before: list[str]
    after: list[str]
    samples: int


class TouchedShape(TypedDict):
    """A change and what it touches, before or after it is put into force (`applied`).

    version: that it makes. meanings: label → what becomes of it. carrying: label → samples that carry it before.
    samples: of which an event means something else afterwards. unlabelled: that are left without a label. outcomes:
    what samples carry before and after, where that differs, most samples first; at most `OUTCOMES_SHOWN`.
    """

    applied: bool
    version: int
    kind: str
    asked: dict[str, Any]
    added: list[str]
    removed: list[str]
    meanings: dict[str, list[str]]
    carrying: dict[str, int]
    samples: int
    unlabelled: int
    outcomes: list[OutcomeShape]
    snapshots: list[HeldShape]


def taxonomy_shape(found: Library, counts: dict[str, int]) -> TaxonomyShape:
    """The taxonomy of a library; `counts`: label → samples that carry it."""
    definition = found.definition
    taxonomy = definition.taxonomy
    shape: TaxonomyShape = {
        "library": definition.name,
        "version": found.version,
        "declared": definition.declared,
        "task": taxonomy.task.value,
        "level_sep": taxonomy.level_sep,
        "multiple": taxonomy.multiple,
        "labels": [
            {"label": label, "samples": count, **_details(definition.classes.get(label, ClassDetails()))}
            for label, count in counts.items()
        ],
        "branches": {
            branch: _details(details) for branch, details in definition.classes.items() if branch not in counts
        },
    }
    if taxonomy.choices:
        shape["choices"] = [choice.value for choice in taxonomy.choices]
    return shape


def versions_shape(
    library: str, found: Sequence[TaxonomyChange], *, offset: int = 0, limit: int | None = None
) -> VersionsShape:
    """The versions that were found after the first `offset`, at most `limit` of them."""
    shown = found[offset:][:limit]
    return {"library": library, "total": len(found), "versions": [_version(version) for version in shown]}


def touched_shape(touched: Touched, *, applied: bool) -> TouchedShape:
    """A change, foreseen or made."""
    revision = touched.revision
    before, after = touched.before.labels, revision.definition.taxonomy.labels
    old, new = set(before), set(after)
    return {
        "applied": applied,
        "version": touched.version,
        "kind": revision.kind,
        "asked": dict(revision.asked),
        "added": [label for label in after if label not in old],
        "removed": [label for label in before if label not in new],
        "meanings": {label: list(meaning) for label, meaning in revision.meanings.items()},
        "carrying": touched.carrying,
        "samples": touched.samples,
        "unlabelled": touched.unlabelled,
        "outcomes": [
            {"before": list(outcome.before), "after": list(outcome.after), "samples": outcome.samples}
            for outcome in touched.outcomes[:OUTCOMES_SHOWN]
        ],
        "snapshots": [{"hash": snapshot.hash, "samples": snapshot.samples} for snapshot in touched.snapshots],
    }


def _version(version: TaxonomyChange) -> VersionShape:
    return {
        "version": version.version,
        "kind": version.kind,
        "asked": dict(version.asked),
        "undoes": version.undoes,
        "labels": list(version.taxonomy.labels),
        "declared": version.declared,
        "by": version.actor,
        "at": version.created_at,
        "note": version.note,
    }


def _details(details: ClassDetails) -> DetailsShape:
    known: DetailsShape = {}
    if details.code:
        known["code"] = details.code
    if details.description:
        known["description"] = details.description
    if details.aliases:
        known["aliases"] = list(details.aliases)
    if details.reviewers > 1:
        known["reviewers"] = details.reviewers
    return known
