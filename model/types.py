"""The small frozen types that carry data between stages.

A `Taxonomy` says which labels there are and how many of them a text may carry; a `Sample` is one text of
the standard-sample library; a `Prediction` is what a classifier says about one text.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from model.errors import BadTaxonomy, UnknownLabel

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int64]


class Task(StrEnum):
    """How labels relate to a text. Softmax or sigmoid follows from it, never from the number of labels."""

    SINGLE = "single"
    MULTI = "multi"
    HIERARCHICAL = "hierarchical"


class Choice(StrEnum):
    """How many children of one parent a text may carry at a level of a hierarchical taxonomy."""

    SINGLE = "single"
    MULTI = "multi"


class Activation(StrEnum):
    """What turns logits into scores."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"


class Split(StrEnum):
    """The three parts of a snapshot, in the order in which they are protected: test before dev before train."""

    TEST = "test"
    DEV = "dev"
    TRAIN = "train"


class Text(NamedTuple):
    """One input of a classifier: a text, or an ordered pair of texts."""

    text: str
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """The labels of a task, in their canonical order: a label's position is its index in every logit row.

    In a hierarchical task a label is a whole path, its levels joined by `level_sep` (`组织关系-裁员`).
    `multiple` says whether a text may carry several labels; it is always so for `multi`, never for `single`.
    `choices`: for each level of a hierarchical task, from the root down, whether a text may carry several children of
    one parent there; deeper levels are as the last. Empty: every level is as `multiple` says.

    Raises:
        BadTaxonomy: a label stands twice or is empty, or the task, its separators and its choices disagree.
    """

    task: Task
    labels: tuple[str, ...]
    level_sep: str | None = None
    multiple: bool = False
    choices: tuple[Choice, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels):
            repeated = sorted(label for label, count in Counter(self.labels).items() if count > 1)
            raise BadTaxonomy(f"labels stand twice in the taxonomy: {preview(repeated)}")
        if any(not label.strip() for label in self.labels):
            raise BadTaxonomy("a label of the taxonomy is empty; give every class a name")
        if self.multiple != {Task.SINGLE: False, Task.MULTI: True}.get(self.task, self.multiple):
            raise BadTaxonomy(f"task {self.task} can't have multiple={self.multiple}")
        if (self.task is Task.HIERARCHICAL) != (self.level_sep is not None):
            raise BadTaxonomy("a hierarchical task, and only it, needs a level separator")
        if self.choices and self.task is not Task.HIERARCHICAL:
            raise BadTaxonomy(f"task {self.task} has no levels to choose at; leave the choices out")
        if self.choices and self.multiple != (Choice.MULTI in self.choices):
            raise BadTaxonomy(f"choices {', '.join(self.choices)} can't go with multiple={self.multiple}")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def activation(self) -> Activation:
        """Sigmoid where a text may carry several labels, softmax where it carries exactly one."""
        return Activation.SIGMOID if self.multiple else Activation.SOFTMAX

    def levels(self, label: str) -> tuple[str, ...]:
        """The path of `label` from the root down; a flat label is its own path."""
        return tuple(label.split(self.level_sep)) if self.level_sep else (label,)

    def misfit(self, labels: Collection[str]) -> str | None:
        """Why one text can't carry all of `labels`, different labels of this taxonomy; None where it can."""
        if len(labels) > 1 and not self.multiple:
            return f"{len(labels)} labels ({preview(sorted(labels))}), and the task {self.task} allows one"
        children: dict[tuple[str, ...], str] = {}
        for path in sorted(map(self.levels, labels)) if self.choices else ():
            for depth, child in enumerate(path):
                only = self.choices[min(depth, len(self.choices) - 1)] is Choice.SINGLE
                if only and (other := children.setdefault(path[:depth], child)) != child:
                    under = (self.level_sep or "").join(path[:depth]) or "the root"
                    return f"{other!r} and {child!r} both stand under {under}, and level {depth + 1} allows one"
        return None

    def deepest(self, labels: Iterable[str]) -> set[str]:
        """`labels` without those that others of them imply: a path implies the paths that it begins with."""
        chosen = set(labels)
        if self.level_sep is None or len(chosen) < 2:
            return chosen
        return {label for label in chosen if not any(other.startswith(label + self.level_sep) for other in chosen)}

    def indices(self, labels: Iterable[str]) -> list[int]:
        """Positions of `labels` in logit rows.

        Raises:
            UnknownLabel: one of them is not in this taxonomy.
        """
        positions = {label: index for index, label in enumerate(self.labels)}
        try:
            return [positions[label] for label in labels]
        except KeyError as missing:
            raise UnknownLabel(f"label {missing} is not in the taxonomy ({preview(self.labels)})") from None

    def to_json(self) -> dict[str, Any]:
        """The form in which manifests and hashes carry the taxonomy."""
        return {
            "task": self.task.value,
            "labels": list(self.labels),
            "level_sep": self.level_sep,
            "multiple": self.multiple,
            **({"choices": [choice.value for choice in self.choices]} if self.choices else {}),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Taxonomy":
        """The inverse of `to_json`."""
        return cls(
            task=Task(data["task"]),
            labels=tuple(data["labels"]),
            level_sep=data["level_sep"],
            multiple=data["multiple"],
            choices=tuple(map(Choice, data.get("choices", ()))),
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One labelled text. `id` is the hash of its normalised text and pair (`model.text.sample_id`)."""

    id: str
    text: str
    pair: str | None
    labels: tuple[str, ...]
    split: Split


class LabelScore(NamedTuple):
    """A label and its score, 0 to 1."""

    label: str
    score: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a classifier says about one text: scored labels, best first.

    `abstained`: no label is sure enough. `truncated`: the text was longer than the model reads.
    """

    labels: tuple[LabelScore, ...]
    abstained: bool = False
    truncated: bool = False

    @property
    def label(self) -> str:
        """The best label."""
        return self.labels[0].label

    @property
    def score(self) -> float:
        """The best label's score, 0 to 1."""
        return self.labels[0].score


def preview(items: Iterable[str], limit: int = 8) -> str:
    """The first few of `items` for a message, with an ellipsis where there are more."""
    shown = list(items)
    return ", ".join(shown[:limit]) + (f", … {len(shown)} in all" if len(shown) > limit else "")
