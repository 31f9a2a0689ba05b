"""What cells mean: text, labels, a split. Whatever means nothing is a `BadInput` that says why."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from app.library.splits import SPLITS, named_split
from model.errors import BadInput, UnknownLabel
from model.files import canonical_json
from model.text import Normaliser, Width
from model.types import Task, Taxonomy, preview

# A longer "label" is a text from the wrong column.
MAX_LABEL_CHARS = 200
DISTINCT_CELLS_REMEMBERED = 1 << 16  # bounds the memory when a column turns out to hold no labels at all

# Label names stay as they were written, but for what nobody can see.
_NAME = Normaliser(width=Width.KEEP, markup=False)


def label_name(raw: str) -> str:
    """A label as it is stored: without invisible characters and outer or doubled white space."""
    return _NAME(raw)


def cell_text(cell: Any) -> str:
    """The text of a cell: numbers as people write them, nothing as an empty text.

    Raises:
        BadInput: the cell holds a list or an object.
    """
    if isinstance(cell, str):
        return cell
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    if isinstance(cell, list | dict):
        raise BadInput(f"holds a {'list' if isinstance(cell, list) else 'JSON object'}, not text")
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


def has_empty_level(taxonomy: Taxonomy, label: str) -> bool:
    """Whether the path `label` has nothing between two of its separators, or at an end; a flat label never has."""
    return taxonomy.task is Task.HIERARCHICAL and not all(part.strip() for part in taxonomy.levels(label))


class LabelReader:
    """Reads label cells; every distinct cell is worked out once.

    taxonomy: its task, level separator and `multiple` say how many labels a cell holds. label_sep: parts them.
    names: what a cell may say → the label it means, where the taxonomy is declared; else None, any label will do.
    """

    def __init__(self, taxonomy: Taxonomy, *, label_sep: str | None, names: Mapping[str, str] | None) -> None:
        self._taxonomy, self._label_sep, self._names = taxonomy, label_sep, names
        self.seen: set[str] = set()
        self._from_text = lru_cache(DISTINCT_CELLS_REMEMBERED)(self._read)

    def __call__(self, cell: Any) -> str:
        """The labels of a cell as a JSON list, sorted by code point, each once. `seen` grows by them.

        Raises:
            BadInput: there is no label, too many, one that can't be a label. UnknownLabel: one that isn't declared.
        """
        if isinstance(cell, list):
            return self._checked([cell_text(part) for part in cell])
        return self._from_text(cell_text(cell))

    def _read(self, text: str) -> str:
        return self._checked(text.split(self._label_sep) if self._taxonomy.multiple and self._label_sep else [text])

    def _checked(self, parts: list[str]) -> str:
        labels = {self._label(name) for part in parts if (name := label_name(part))}
        if not labels:
            raise BadInput("the label is empty")
        if len(labels) > 1 and not self._taxonomy.multiple:
            raise BadInput(f"{len(labels)} labels ({preview(sorted(labels))}), and the task allows one")
        self.seen |= labels
        return canonical_json(sorted(labels)).decode()

    def _label(self, name: str) -> str:
        if len(name) > MAX_LABEL_CHARS:
            raise BadInput(
                f"the label has {len(name)} characters, more than {MAX_LABEL_CHARS}; is it the right column?"
            )
        if any("\ud800" <= char <= "\udfff" for char in name):
            raise BadInput("the label holds bytes that are not text in the file's encoding")
        if self._names is not None:
            if name not in self._names:
                hint = "; give --label-names if labels are numbers" if name.isdecimal() else ""
                known = preview(dict.fromkeys(self._names.values()))
                raise UnknownLabel(f"label {name!r} is not in the taxonomy ({known}){hint}")
            name = self._names[name]
        if has_empty_level(self._taxonomy, name):
            raise BadInput(f"label {name!r} has an empty level")
        return name
