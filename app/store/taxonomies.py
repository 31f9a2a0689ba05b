"""Versions of taxonomies: every change on record, and what labels of earlier versions mean in the newest one."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import taxonomy_changes
from model.types import Taxonomy

DISTINCT_LABELS_REMEMBERED = 1 << 14  # most samples share theirs with many others
Meanings = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ClassDetails:
    """What is known of a class besides its name. `aliases`: other names that imports may use for it. reviewers: how
    many persons have to decide the same where it is reviewed, 1 or 2.
    """

    code: str | None = None
    description: str | None = None
    aliases: tuple[str, ...] = ()
    reviewers: int = 1

    @property
    def other_names(self) -> tuple[str, ...]:
        """What the class may be called besides its name: its code and its aliases."""
        return tuple(filter(None, (self.code, *self.aliases)))

    def to_json(self) -> dict[str, Any]:
        """What is known, as JSON."""
        known = {"code": self.code, "description": self.description, "aliases": list(self.aliases)}
        more = {"reviewers": self.reviewers} if self.reviewers > 1 else {}
        return {name: value for name, value in known.items() if value} | more

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "ClassDetails":
        """The inverse of `to_json`."""
        return cls(data.get("code"), data.get("description"), tuple(data.get("aliases", ())), data.get("reviewers", 1))


Classes = Mapping[str, ClassDetails]


@dataclass(frozen=True, slots=True)
class TaxonomyChange:
    """A version of a taxonomy, and the change that made it.

    asked: what was asked for. meanings: label of the version before → its labels in this one; a label that is not a
    key means itself. base: a version whose labels mean in this one just what they meant there, because what came
    between was taken back. undoes: the version that this one takes back.
    """

    version: int
    kind: str
    taxonomy: Taxonomy
    classes: Classes
    declared: bool
    actor: str
    created_at: str
    asked: Mapping[str, Any] = field(default_factory=dict)
    meanings: Meanings = field(default_factory=dict)
    base: int | None = None
    undoes: int | None = None
    note: str | None = None


class Step(NamedTuple):
    """The part of a change that says what became of labels."""

    version: int
    meanings: Meanings
    base: int | None = None


class Translation:
    """What label lists mean today, that were given in any version of a taxonomy.

    steps: of all versions after the first, oldest first. changes_labels: whether a label ever changed its meaning.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.changes_labels = any(step.meanings or step.base for step in steps)
        self._latest = steps[-1].version if steps else 1
        self._by_version = {step.version: step for step in steps}
        self._read = lru_cache(DISTINCT_LABELS_REMEMBERED)(self._translate)
        self._changes = lru_cache(len(steps) + 1)(self._changes_since)

    def __call__(self, stored: str, version: int) -> tuple[str, ...]:
        """The labels, sorted, that the JSON list `stored` of that version stands for; maybe none."""
        return self._read(stored, version)

    def _translate(self, stored: str, version: int) -> tuple[str, ...]:
        labels: tuple[str, ...] = tuple(json.loads(stored))
        for meanings in self._changes(version):
            labels = tuple(sorted({new for label in labels for new in meanings.get(label, (label,))}))
        return labels

    def _changes_since(self, version: int) -> list[Meanings]:
        """What became of labels of that version, one change after another, oldest first.

        A version that goes back to a base continues what the labels meant there; what came between does not count.
        """
        changes: list[Meanings] = []
        reached = self._latest
        while reached > version:
            step = self._by_version[reached]
            if step.base is not None and step.base >= version:
                reached = step.base
                continue
            changes.append(step.meanings)
            reached -= 1
        return [meanings for meanings in reversed(changes) if meanings]


def load_translation(connection: sa.Connection, library_id: int) -> Translation:
    """What the library's labels of all versions mean in its newest one."""
    columns = (taxonomy_changes.c[name] for name in ("version", "meanings", "base"))
    query = sa.select(*columns).where(taxonomy_changes.c.library_id == library_id, taxonomy_changes.c.version > 1)
    return Translation(
        [
            Step(row.version, read_meanings(row.meanings), row.base)
            for row in connection.execute(query.order_by(taxonomy_changes.c.version))
        ]
    )


def taxonomy_history(connection: sa.Connection, library_id: int) -> list[TaxonomyChange]:
    """All versions of the library's taxonomy, oldest first."""
    query = sa.select(taxonomy_changes).where(taxonomy_changes.c.library_id == library_id)
    return [_change(row) for row in connection.execute(query.order_by(taxonomy_changes.c.version))]


def record_change(connection: sa.Connection, library_id: int, change: TaxonomyChange) -> None:
    """Append a version; the library itself is brought to it by `app.store.libraries.save_library`."""
    values = {
        "library_id": library_id,
        "version": change.version,
        "kind": change.kind,
        "asked": to_json(change.asked),
        "meanings": to_json(change.meanings),
        "base": change.base,
        "undoes": change.undoes,
        "taxonomy": to_json(change.taxonomy.to_json()),
        "classes": write_classes(change.classes),
        "declared": change.declared,
        "actor": change.actor,
        "created_at": change.created_at,
        "note": change.note,
    }
    connection.execute(sa.insert(taxonomy_changes).values(values))


def read_meanings(stored: str) -> Meanings:
    """Meanings from the JSON object that the database keeps."""
    return {label: tuple(labels) for label, labels in json.loads(stored).items()}


def read_classes(stored: str) -> Classes:
    """The details of classes from the JSON object that the database keeps."""
    return {label: ClassDetails.from_json(details) for label, details in json.loads(stored).items()}


def write_classes(classes: Classes) -> str:
    """The inverse of `read_classes`; classes of which nothing is known are left out."""
    return to_json({label: known for label, details in classes.items() if (known := details.to_json())})


def to_json(value: Any) -> str:
    """JSON as people can read it in the database."""
    return json.dumps(value, ensure_ascii=False)


def _change(row: Any) -> TaxonomyChange:
    return TaxonomyChange(
        version=row.version,
        kind=row.kind,
        taxonomy=Taxonomy.from_json(json.loads(row.taxonomy)),
        classes=read_classes(row.classes),
        declared=row.declared,
        actor=row.actor,
        created_at=row.created_at,
        asked=json.loads(row.asked),
        meanings=read_meanings(row.meanings),
        base=row.base,
        undoes=row.undoes,
        note=row.note,
    )
