"""Guess from the first rows of a table which column holds the text, which the label, which the split."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

from app.library.cells import cell_text
from app.library.splits import named_split
from model.errors import BadInput

TEXT_NAMES = {
    "text",
    "sentence",
    "content",
    "review",
    "comment",
    "文本",
    "内容",
    "正文",
    "评论",
    "标题",
    "句子",
    "问题",
}
LABEL_NAMES = {
    "label",
    "labels",
    "category",
    "class",
    "sentiment",
    "intent",
    "标签",
    "类别",
    "分类",
    "情感",
    "意图",
    "主题",
}
MAX_LABEL_CHARS = 30.0  # on average; longer cells are texts
FEW_ROWS = 10  # among so few, classes need not repeat


class Role(StrEnum):
    """What a column is for."""

    TEXT = "text"
    LABEL = "label"
    SPLIT = "split"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What the first rows tell of a column. chars: mean length of its filled cells."""

    name: str
    filled: int
    distinct: int
    chars: float
    example: str
    numbers: bool
    splits: bool


def column_facts(name: str, cells: Sequence[Any]) -> ColumnFacts:
    """Look at the cells of a column; lists count as the values in them."""
    values = [value for value in chain.from_iterable(map(_values, cells)) if value.strip()]
    return ColumnFacts(
        name=name,
        filled=len(values),
        distinct=len(set(values)),
        chars=sum(map(len, values)) / max(1, len(values)),
        example=values[0] if values else "",
        numbers=all(value.lstrip("-").replace(".", "", 1).isdecimal() for value in values),
        splits=bool(values) and all(named_split(value) for value in values),
    )


def guess_roles(columns: Sequence[ColumnFacts]) -> dict[str, Role]:
    """The role of each column that seems to have one: by its name, else long varied cells, else short repeated ones."""
    roles = {column.name: Role.SPLIT for column in columns if column.splits}
    rest = [column for column in columns if column.filled and not column.splits]
    texts = [column for column in rest if not column.numbers and not _named(column, LABEL_NAMES)]
    if texts:
        text = max(texts, key=lambda column: (_named(column, TEXT_NAMES), column.chars * _variety(column)))
        roles[text.name] = Role.TEXT
    labels = [column for column in rest if column.name not in roles and _may_be_label(column)]
    if labels:
        label = min(labels, key=lambda column: (not _named(column, LABEL_NAMES), _variety(column)))
        roles[label.name] = Role.LABEL
    return roles


def _may_be_label(column: ColumnFacts) -> bool:
    if _named(column, LABEL_NAMES):
        return True
    repeats = column.distinct <= column.filled / 2 or (
        column.filled < FEW_ROWS and (column.distinct < column.filled or not column.numbers)
    )
    return column.chars <= MAX_LABEL_CHARS and column.distinct > 1 and repeats


def _named(column: ColumnFacts, names: set[str]) -> bool:
    return column.name.strip().lower() in names


def _variety(column: ColumnFacts) -> float:
    return column.distinct / column.filled


def _values(cell: Any) -> list[str]:
    try:
        return [cell_text(part) for part in cell] if isinstance(cell, list) else [cell_text(cell)]
    except BadInput:
        return []
