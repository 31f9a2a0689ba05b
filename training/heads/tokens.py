"""Token labelling: which stretches of a text are what. `{"text": …, "entities": [{"start", "end", "label"}]}`

Entities become a label for every token: B-X begins one of kind X, I-X goes on with it, O is outside (BIO).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.heads import TokenClassifier
from model.errors import BadInput
from model.tokenization.base import Encoded, collate
from training.data import LENGTH_MULTIPLE
from training.device import NumberFormat
from training.heads.data import (
    IGNORED,
    BadRow,
    Tokenised,
    WindowSet,
    WindowTokenizer,
    checked_text,
    number_of,
    overlapping,
    text_of,
)
from training.heads.predicting import outputs

OUTSIDE = "O"


@dataclass(frozen=True, slots=True, order=True)
class Entity:
    """text[start:end] is a `label`."""

    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class TaggedText:
    """A text and its entities in order; `source` is the JSON object that said so."""

    text: str
    entities: tuple[Entity, ...]
    source: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TaggedSet(WindowSet):
    """Windows of tagged texts; tags: the gold tag of every token of every text."""

    rows: Sequence[TaggedText]
    tags: Sequence[list[str]]
    numbers: dict[str, int]

    def targets(self, rows: Sequence[int]) -> NDArray[Any]:
        """Numbers of the gold tags: (batch, length); `IGNORED` where a position has none."""
        labels = []
        for window in (self.windows[row] for row in rows):
            own = np.full(window.encoded.length, IGNORED, np.int64)
            at, first, count = window.at, window.first, window.count
            begins, ends = self.texts[window.row].offsets[first : first + count].T
            tags = self.tags[window.row][first : first + count]
            # dev may have a tag that train lacks; nothing is trained on it
            known = np.array([self.numbers.get(tag, IGNORED) for tag in tags], np.int64)
            own[at : at + count] = np.where(begins < ends, known, IGNORED)
            labels.append(Encoded({"labels": own}))
        return collate(labels, {"labels": IGNORED}, multiple=LENGTH_MULTIPLE)["labels"]


@dataclass(frozen=True, slots=True)
class TokenLabelling:
    """The kinds of entity; judged by the F1 of whole entities."""

    labels: tuple[str, ...] = ()
    name: ClassVar[str] = "tokens"
    decoder: ClassVar[bool] = False
    score: ClassVar[str] = "f1"

    @property
    def chosen(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    def learned_from(self, rows: Sequence[TaggedText]) -> Self:
        """The task with the labels that the train rows have.

        Raises:
            BadInput: no row has an entity.
        """
        labels = sorted({entity.label for row in rows for entity in row.entities})
        if not labels:
            raise BadInput(f"none of the {len(rows)} train rows has an entity; there is nothing to learn")
        return replace(self, labels=tuple(labels))

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(tuple(data["labels"]))

    def to_json(self) -> dict[str, Any]:
        """The labels."""
        return {"labels": list(self.labels)}

    @staticmethod
    def parse(data: dict[str, Any], *, labelled: bool) -> TaggedText:
        """A text with its entities.

        Raises:
            BadRow: a key is missing or of another type, or entities are outside the text, empty or overlap.
        """
        text = text_of(data, "text")
        if not labelled:
            return TaggedText(text, (), data)
        if not isinstance(data.get("entities"), list):
            raise BadRow('it has no list of "entities"; give [] for a text without any')
        entities = sorted(_entity(each, text) for each in data["entities"])
        for one, other in pairwise(entities):
            if other.start < one.end:
                raise BadRow(
                    f"entities {text[one.start : one.end]!r} ({one.start} to {one.end}, {one.label}) and "
                    f"{text[other.start : other.end]!r} ({other.start} to {other.end}, {other.label}) overlap; keep one"
                )
        return TaggedText(text, tuple(entities), data)

    @property
    def tags(self) -> tuple[str, ...]:
        """Every tag, in the order of the logits."""
        return (OUTSIDE, *(f"{place}-{label}" for label in self.labels for place in "BI"))

    def reader(self, folder: Path, *, max_length: int, stride: int) -> Callable[[Sequence[TaggedText]], TaggedSet]:
        """What makes windows of texts, with a gold tag for every token.

        Tokens are characters where the vocabulary has them, since an entity may begin and end at any.
        """
        tokenizer = WindowTokenizer.load(folder, max_length=max_length, stride=stride, by_character=True)
        numbers = {tag: number for number, tag in enumerate(self.tags)}

        def encode(rows: Sequence[TaggedText]) -> TaggedSet:
            texts = tokenizer.read([row.text for row in rows])
            return TaggedSet(
                texts=texts,
                windows=[window for text in texts for window in text.windows],
                padding=tokenizer.padding,
                rows=rows,
                tags=[tags_of(row.entities, text) for row, text in zip(rows, texts, strict=True)],
                numbers=numbers,
            )

        return encode

    def losses(self, examples: TaggedSet) -> dict[str, int]:
        """Entities that begin or end inside a token, and so can never be found exactly."""
        lost = sum(
            len(set(row.entities) - set(entities_of(tags, text)))
            for row, tags, text in zip(examples.rows, examples.tags, examples.texts, strict=True)
        )
        return {
            "个实体起止在词元之内，无法准确找到 | entities begin or end in a token, and can't be found exactly": lost
        }

    def start(self, folder: Path, *, dropout: float) -> TokenClassifier:
        """A pretrained encoder under a new head."""
        return TokenClassifier.start(folder, n_labels=len(self.tags), dropout=dropout)

    def load(self, folder: Path) -> TokenClassifier:
        """A trained network."""
        return TokenClassifier.load(folder)

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Cross-entropy, the mean over all tokens of a batch; targets: (batch, length)."""
        logits: Tensor = network(**inputs)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=IGNORED)

    def figures(self, network: nn.Module, dev_set: TaggedSet, *, precision: NumberFormat) -> dict[str, float]:
        """Precision, recall and F1 of entities, accuracy of tokens."""
        return self._figures(self._tags(network, dev_set, precision), dev_set)

    def settled(self, network: nn.Module, dev_set: TaggedSet, *, precision: NumberFormat) -> Self:  # noqa: ARG002
        """The same: nothing is chosen on dev."""
        return self

    def evaluate(self, network: nn.Module, examples: TaggedSet, *, precision: NumberFormat) -> dict[str, Any]:
        """`figures`, and those of the entities of every label."""
        tags = self._tags(network, examples, precision)
        found = [entities_of(each, text) for each, text in zip(tags, examples.texts, strict=True)]
        gold = [row.entities for row in examples.rows]
        labels = sorted({*self.labels, *(entity.label for entities in gold for entity in entities)})
        by_label = {
            label: entity_figures(*([[e for e in each if e.label == label] for each in side] for side in (found, gold)))
            for label in labels
        }
        return {**self._figures(tags, examples), "by_label": by_label}

    def answers(self, network: nn.Module, examples: TaggedSet, *, precision: NumberFormat) -> list[dict[str, Any]]:
        """The rows with the entities that were found in them."""
        answers = []
        found = self._tags(network, examples, precision)
        for row, text, tags in zip(examples.rows, examples.texts, found, strict=True):
            entities = [
                {"start": each.start, "end": each.end, "label": each.label, "text": row.text[each.start : each.end]}
                for each in entities_of(tags, text)
            ]
            answers.append({**row.source, "entities": entities})
        return answers

    @staticmethod
    def _figures(found: Sequence[Sequence[str]], examples: TaggedSet) -> dict[str, float]:
        entities = [entities_of(tags, text) for tags, text in zip(found, examples.texts, strict=True)]
        right = [
            one == other
            for text, tags, gold in zip(examples.texts, found, examples.tags, strict=True)
            for (begin, end), one, other in zip(text.offsets, tags, gold, strict=True)
            if begin < end
        ]
        accuracy = sum(right) / max(1, len(right))
        return {**entity_figures(entities, [row.entities for row in examples.rows]), "token_accuracy": accuracy}

    def _tags(self, network: nn.Module, examples: TaggedSet, precision: NumberFormat) -> list[list[str]]:
        """The best tag of every token, from the window that shows most on both its sides."""
        best = [np.zeros(len(text.offsets), np.int64) for text in examples.texts]
        context = [np.full(len(text.offsets), -1, np.int64) for text in examples.texts]
        for window, logits in zip(examples.windows, outputs(network, examples, precision=precision), strict=True):
            inside = slice(window.first, window.first + window.count)
            places = np.arange(window.count)
            shown = np.minimum(places, places[::-1])
            better = shown > context[window.row][inside]
            numbers = logits[window.at : window.at + window.count].argmax(1)
            best[window.row][inside] = np.where(better, numbers, best[window.row][inside])
            context[window.row][inside] = np.where(better, shown, context[window.row][inside])
        return [[self.tags[number] for number in numbers] for numbers in best]


def tags_of(entities: Iterable[Entity], text: Tokenised) -> list[str]:
    """A tag for every token. A token across an entity's edge belongs to it; of two entities, to the one with more."""
    tags = [OUTSIDE] * len(text.offsets)
    taken = np.zeros(len(tags), np.int64)  # characters of its entity that a token has
    for entity in entities:
        begins, ends = text.offsets.T
        shared = np.minimum(ends, entity.end) - np.maximum(begins, entity.start)
        own = [token for token in overlapping(text.offsets, entity.start, entity.end) if shared[token] > taken[token]]
        for place, token in enumerate(own):
            tags[token] = f"{'I' if place else 'B'}-{entity.label}"
            taken[token] = shared[token]
    return tags


def entities_of(tags: Sequence[str], text: Tokenised) -> list[Entity]:
    """The entities that the tags of a text's tokens tell of.

    As in CoNLL-2003's evaluation, an I-X behind anything but B-X and I-X begins an entity too. Tokens that stand for
    no character neither begin nor end one.
    """
    found: list[Entity] = []
    goes_on = False
    for (begin, end), tag in zip(text.offsets.tolist(), tags, strict=True):
        if begin == end:
            continue
        place, _, label = tag.partition("-")
        if place == "I" and goes_on and found[-1].label == label:
            found[-1] = Entity(found[-1].start, max(end, found[-1].end), label)
        elif place != OUTSIDE:
            found.append(Entity(begin, end, label))
        goes_on = place != OUTSIDE
    return found


def entity_figures(found: Sequence[Iterable[Entity]], gold: Sequence[Iterable[Entity]]) -> dict[str, float]:
    """Micro-averaged over all texts; an entity counts if start, end and label are right (Tjong Kim Sang 2003)."""
    right = sum(len(set(one) & set(other)) for one, other in zip(found, gold, strict=True))
    n_found, n_gold = (sum(len(set(each)) for each in side) for side in (found, gold))
    return {
        "precision": right / max(1, n_found),
        "recall": right / max(1, n_gold),
        "f1": 2 * right / max(1, n_found + n_gold),
    }


def _entity(data: Any, text: str) -> Entity:
    if not isinstance(data, dict):
        raise BadRow(f'an entity is {data!r:.60}; it has to be an object with "start", "end" and "label"')
    entity = Entity(number_of(data, "start"), number_of(data, "end"), checked_text(data.get("label"), "label"))
    if not 0 <= entity.start < entity.end <= len(text):
        raise BadRow(
            f"entity {entity.start} to {entity.end} ({entity.label}) is not in the text of {len(text)} characters"
        )
    if not text[entity.start : entity.end].strip():
        raise BadRow(f"entity {entity.start} to {entity.end} ({entity.label}) holds no character but spaces")
    return entity
