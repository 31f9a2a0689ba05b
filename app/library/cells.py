"""What cells mean: text, labels, a split. Whatever means nothing is a `BadInput` that says why."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from math import isfinite, nan
from typing import Any, NamedTuple

from app.library.splits import SPLITS, named_split
from app.store.libraries import LibraryDefinition
from model.errors import BadInput, UnknownLabel
from model.files import canonical_json
from model.text import Normaliser, Width
from model.types import Task, Taxonomy, preview

# A longer "label" is a text from the wrong column.
MAX_LABEL_CHARS = 200
USUAL_SEPARATORS = "|,;、，；"
DISTINCT_CELLS_REMEMBERED = 1 << 16  # bounds the memory when a column turns out to hold no labels at all

# Label names stay as they were written, but for what nobody can see.
_NAME = Normaliser(width=Width.KEEP, markup=False)


def label_name(raw: str) -> str:
    """A label as it is stored: without invisible characters and outer or doubled white space."""
    return _NAME(raw)


def label_names(definition: LibraryDefinition) -> dict[str, str]:
    """Everything that a label may be called → the label: its name, its code, its aliases."""
    names = {label: label for label in definition.taxonomy.labels}
    for label, details in definition.classes.items():
        if label in names:  # else it is a branch, which no sample carries
            names |= dict.fromkeys(details.other_names, label)
    return names


def branch_names(definition: LibraryDefinition) -> frozenset[str]:
    """The codes and aliases of branches: they mean no label, and can't become one."""
    branches = (details for label, details in definition.classes.items() if label not in definition.taxonomy.labels)
    return frozenset(name for details in branches for name in details.other_names)


def actor_name(raw: str) -> str:
    """The name of an annotator as it is stored, cleaned as a label is.

    Raises:
        BadInput: nothing is left, or it holds half a character.
    """
    name = label_name(raw)
    if not name or _has_surrogate(name):
        raise BadInput(f"annotator {name!r} is no name")
    return name


def cell_text(cell: Any) -> str:
    """The text of a cell: numbers as people write them, nothing as an empty text.

    Raises:
        BadInput: the cell holds a list, an object, bytes, or a formula without a value.
    """
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float | Decimal) and isfinite(cell) and cell == int(cell):
        return str(int(cell))
    if isinstance(cell, list | dict):
        raise BadInput(f"holds a {'list' if isinstance(cell, list) else 'JSON object'}, not text")
    if isinstance(cell, Uncomputed):
        raise BadInput(
            f"cell {cell.place} holds a formula without a computed value; open the workbook in a spreadsheet program "
            "and save it"
        )
    if isinstance(cell, bytes):
        raise BadInput("holds bytes, not text")
    return str(cell)


def cell_split(cell: Any) -> int | None:
    """The position in `Split` of the split that a cell names; None for an empty cell.

    Raises:
        BadInput: it names none.
    """
    name = cell_text(cell).strip()
    if not name:
        return None
    if split := named_split(name):
        return SPLITS.index(split)
    raise BadInput(f"split {name[:40]!r} is none of train, dev, test")


def cell_confidence(cell: Any) -> float | None:
    """How sure a cell says that something is, 0 to 1; None for an empty cell.

    Raises:
        BadInput: it says nothing of the kind.
    """
    text = cell_text(cell).strip()
    if not text:
        return None
    try:
        confidence = float(text)
    except ValueError:
        confidence = nan
    if not 0 <= confidence <= 1:
        raise BadInput(f"confidence {text[:40]!r} is no number from 0 to 1")
    return confidence


def has_empty_level(taxonomy: Taxonomy, label: str) -> bool:
    """Whether the path `label` has nothing between two of its separators, or at an end; a flat label never has."""
    return taxonomy.task is Task.HIERARCHICAL and not all(part.strip() for part in taxonomy.levels(label))


def several_in_one(labels: Iterable[str]) -> str | None:
    """The first label that looks like several, joined by a usual separator, if there is one."""
    return min((label for label in labels if any(mark in label for mark in USUAL_SEPARATORS)), default=None)


class Uncomputed(NamedTuple):
    """A cell of a spreadsheet whose formula no program has computed yet. `place`: as in `B3`."""

    place: str


class LabelReader:
    """Reads label cells; every distinct cell is worked out once.

    taxonomy: its task, level separator and `multiple` say how many labels a cell holds. label_sep: parts them.
    names: what a cell may say → the label it means. closed: whether it may say nothing else, because the taxonomy is
    declared; else what is not among the names is a new label. branches: what names a branch, and so no label.
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        label_sep: str | None,
        names: Mapping[str, str],
        closed: bool,
        branches: frozenset[str] = frozenset(),
    ) -> None:
        self._taxonomy, self._label_sep, self._names, self._closed = taxonomy, label_sep, names, closed
        self._branches = branches
        self.seen: set[str] = set()
        self._from_text = lru_cache(DISTINCT_CELLS_REMEMBERED)(self._read)

    def __call__(self, cell: Any) -> str:
        """The labels of a cell as a JSON list, sorted by code point, each once. `seen` grows by them.

        Raises:
            BadInput: there is no label, too many, one that can't be a label. UnknownLabel: one that isn't declared.
        """
        if isinstance(cell, list):
            return self._remembered(self._checked([self._name(part) for part in cell]))
        return self._from_text(cell_text(cell))

    def several(self, cells: Sequence[Sequence[Any]]) -> list[str]:
        """As a call for each list of labels, but when one of them can't be used, none enters `seen`."""
        checked = [self._checked([self._name(part) for part in cell]) for cell in cells]
        return [self._remembered(labels) for labels in checked]

    def _name(self, part: Any) -> str:
        """A label; in a hierarchical task it may be given as the list of its levels."""
        if isinstance(part, list) and self._taxonomy.level_sep is not None:
            return self._taxonomy.level_sep.join(map(cell_text, part))
        return cell_text(part)

    def _read(self, text: str) -> str:
        parts = text.split(self._label_sep) if self._taxonomy.multiple and self._label_sep else [text]
        return self._remembered(self._checked(parts))

    def _checked(self, parts: list[str]) -> set[str]:
        labels = {self._label(name) for part in parts if (name := label_name(part))}
        if not labels:
            raise BadInput("the label is empty")
        labels = self._taxonomy.deepest(labels)
        if misfit := self._taxonomy.misfit(labels):
            hint = "" if self._taxonomy.multiple else "; a library that was made with --task multi takes several"
            raise BadInput(misfit + hint)
        return labels

    def _remembered(self, labels: set[str]) -> str:
        self.seen |= labels
        return canonical_json(sorted(labels)).decode()

    def _label(self, name: str) -> str:
        if len(name) > MAX_LABEL_CHARS:
            raise BadInput(
                f"the label has {len(name)} characters, more than {MAX_LABEL_CHARS}; is it the right column?"
            )
        if _has_surrogate(name):
            raise BadInput("the label holds bytes that are not text in the file's encoding")
        if name in self._branches and name not in self._names:
            raise BadInput(f"label {name!r} is another name of a branch; give a class below it")
        if self._closed and name not in self._names:
            hint = "; give --label-names if labels are numbers" if name.isdecimal() else ""
            known = preview(self._taxonomy.labels)
            raise UnknownLabel(f"label {name!r} is not in the taxonomy ({known}){hint}")
        name = self._names.get(name, name)
        if has_empty_level(self._taxonomy, name):
            raise BadInput(f"label {name!r} has an empty level")
        return name


def _has_surrogate(name: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in name)
