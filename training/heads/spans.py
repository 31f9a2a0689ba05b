"""Answer spans: where in a context a question's answer stands. `{"question", "context", "answer": {"start", "text"}}`

`"answer": null` says that the context has none; then [CLS] is the span, as for SQuAD 2.0 in Devlin 2018 (section 4.3).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.heads import SpanClassifier
from model.errors import BadInput
from model.tokenization.base import Encoded
from training.device import NumberFormat
from training.heads.data import (
    BadRow,
    Tokenised,
    Window,
    WindowSet,
    WindowTokenizer,
    checked_text,
    number_of,
    overlapping,
    text_of,
)
from training.heads.predicting import outputs
from training.heads.span_answers import Answer, Candidate, Question, best_span, decide, fit_threshold, span_figures

CLS = 0  # its position in every window


@dataclass(frozen=True, slots=True)
class AnsweredSet(WindowSet):
    """Windows of contexts behind their questions."""

    rows: Sequence[Question]

    def targets(self, rows: Sequence[int]) -> NDArray[Any]:
        """First and last position of the answer: (batch, 2); [CLS] in windows that don't hold the whole of it."""
        return np.array([self._positions(self.windows[row]) for row in rows], np.int64)

    def _positions(self, window: Window) -> tuple[int, int]:
        answer = self.rows[window.row].answer
        tokens = overlapping(self.texts[window.row].offsets, *(answer or (0, 0)))
        if len(tokens) == 0 or tokens[0] < window.first or tokens[-1] >= window.first + window.count:
            return CLS, CLS
        shift = window.at - window.first
        return int(tokens[0]) + shift, int(tokens[-1]) + shift


@dataclass(frozen=True, slots=True)
class AnswerSpans:
    """Judged by the characters that answers share with the right ones.

    threshold: an answer is given if its margin is above it; None where every question has one. longest: tokens.
    """

    longest: int = 64
    threshold: float | None = 0.0
    name: ClassVar[str] = "span"
    decoder: ClassVar[bool] = False
    score: ClassVar[str] = "f1"

    @property
    def chosen(self) -> dict[str, Any]:
        """The longest answer."""
        return {"longest": self.longest}

    def learned_from(self, rows: Sequence[Question]) -> Self:
        """The same task.

        Raises:
            BadInput: no question has an answer.
        """
        if all(row.answer is None for row in rows):
            raise BadInput(f"none of the {len(rows)} train rows has an answer; there is nothing to learn")
        return self

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The inverse of `to_json`."""
        return cls(longest=int(data["longest"]), threshold=data["threshold"])

    def to_json(self) -> dict[str, Any]:
        """What answers depend on beside scores."""
        return {"longest": self.longest, "threshold": self.threshold}

    @staticmethod
    def parse(data: dict[str, Any], *, labelled: bool) -> Question:
        """A question, its context and its answer.

        Raises:
            BadRow: a key is missing or of another type, or the answer is not where it should be.
        """
        question, context = text_of(data, "question"), text_of(data, "context")
        if not labelled:
            return Question(question, context, None, data)
        if "answer" not in data:
            raise BadRow('it has no "answer"; give null where the context has none')
        return Question(question, context, _answer(data["answer"], context), data)

    def reader(self, folder: Path, *, max_length: int, stride: int) -> Callable[[Sequence[Question]], AnsweredSet]:
        """What makes windows of contexts, each behind its question; answerable are their own tokens, and [CLS]."""
        tokenizer = WindowTokenizer.load(folder, max_length=max_length, stride=stride)
        padding = {**tokenizer.padding, "answerable": 0}

        def encode(rows: Sequence[Question]) -> AnsweredSet:
            texts = tokenizer.read([row.context for row in rows], [row.question for row in rows])
            windows = [_with_answerable(window, text) for text in texts for window in text.windows]
            return AnsweredSet(texts=texts, windows=windows, padding=padding, rows=rows)

        return encode

    def losses(self, examples: AnsweredSet) -> dict[str, int]:
        """Answers that tokens or windows can't give exactly, and questions that were cut."""
        inexact = too_long = 0
        for row, text in zip(examples.rows, examples.texts, strict=True):
            if row.answer is None:
                continue
            tokens = overlapping(text.offsets, *row.answer)
            exact = len(tokens) and (text.offsets[tokens[0], 0], text.offsets[tokens[-1], 1]) == row.answer
            inexact += not exact
            too_long += len(tokens) > min(self.longest, max(window.count for window in text.windows))
        cut = len({window.row for window in examples.windows if window.encoded.truncated})
        return {
            "个答案起止在词元之内，无法准确给出 | answers begin or end in a token, and can't be exact": inexact,
            f"个答案长过一个窗口或 {self.longest} 个词元，无法完整给出 | "
            f"answers are longer than a window or {self.longest} tokens, and can't be given whole": too_long,
            "个问题超过 --max-length 的一半，已截断 | questions are longer than half of it, and were cut": cut,
        }

    def start(self, folder: Path, *, dropout: float) -> SpanClassifier:
        """A pretrained encoder under a new head."""
        return SpanClassifier.start(folder, dropout=dropout)

    def load(self, folder: Path) -> SpanClassifier:
        """A trained network."""
        return SpanClassifier.load(folder)

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:
        """Cross-entropy of starts and of ends over positions, the mean of both; targets: (batch, 2)."""
        scores: Tensor = network(**inputs)
        return functional.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())

    def figures(self, network: nn.Module, dev_set: AnsweredSet, *, precision: NumberFormat) -> dict[str, float]:
        """Exact match and F1 of characters, at the threshold that is best on `dev_set`."""
        candidates = self._candidates(network, dev_set, precision)
        return span_figures(candidates, dev_set.rows, fit_threshold(candidates, dev_set.rows))

    def settled(self, network: nn.Module, dev_set: AnsweredSet, *, precision: NumberFormat) -> Self:
        """The same task with the threshold that is best on dev, as in Devlin 2018."""
        candidates = self._candidates(network, dev_set, precision)
        return replace(self, threshold=fit_threshold(candidates, dev_set.rows))

    def evaluate(self, network: nn.Module, examples: AnsweredSet, *, precision: NumberFormat) -> dict[str, Any]:
        """Exact match and F1 of characters, at the threshold of this task."""
        return span_figures(self._candidates(network, examples, precision), examples.rows, self.threshold)

    def answers(self, network: nn.Module, examples: AnsweredSet, *, precision: NumberFormat) -> list[dict[str, Any]]:
        """The rows with the answers that were found."""
        found = []
        candidates = self._candidates(network, examples, precision)
        for row, candidate in zip(examples.rows, candidates, strict=True):
            answer = decide(candidate, self.threshold)
            said = None if answer is None else {"start": answer.start, "text": row.context[slice(*answer)]}
            found.append({**row.source, "answer": said})
        return found

    def _candidates(self, network: nn.Module, examples: AnsweredSet, precision: NumberFormat) -> list[Candidate | None]:
        """The best answer of each row over its windows; None for a context without tokens.

        The score of no answer is that of the window that is least sure of it: the others may just not hold the answer.
        """
        best: list[tuple[float, Answer] | None] = [None] * len(examples.rows)
        none = np.full(len(examples.rows), np.inf)
        for window, scores in zip(examples.windows, outputs(network, examples, precision=precision), strict=True):
            none[window.row] = min(none[window.row], scores[:, CLS].sum())
            if (span := best_span(scores[:, window.at : window.at + window.count], longest=self.longest)) is None:
                continue
            offsets = examples.texts[window.row].offsets[window.first :]
            answer = Answer(int(offsets[span.first, 0]), int(offsets[span.last, 1]))
            if (before := best[window.row]) is None or span.score > before[0]:
                best[window.row] = (span.score, answer)
        return [
            None if found is None else Candidate(found[1], found[0] - float(empty))
            for found, empty in zip(best, none, strict=True)
        ]


def _with_answerable(window: Window, text: Tokenised) -> Window:
    begins, ends = text.offsets[window.first : window.first + window.count].T
    answerable = np.zeros(window.encoded.length, np.int64)
    answerable[window.at : window.at + window.count] = begins < ends
    answerable[CLS] = 1
    inputs = {**window.encoded.inputs, "answerable": answerable}
    return replace(window, encoded=Encoded(inputs, truncated=window.encoded.truncated))


def _answer(data: Any, context: str) -> Answer | None:
    if data is None:
        return None
    if not isinstance(data, dict):
        raise BadRow(f'"answer" is {data!r:.60}; it has to be an object with "start" and "text", or null')
    start, text = number_of(data, "start"), checked_text(data.get("text"), "text")
    if start < 0 or context[start : start + len(text)] != text:
        there = context[max(0, start) : max(0, start) + len(text)]
        raise BadRow(f"the answer is {text!r:.60} at {start}, but the context has {there!r:.60} there")
    return Answer(start, start + len(text))
