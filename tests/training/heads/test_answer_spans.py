from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from bundles import character_tokenizer
from torch import Tensor, nn

from training.device import NumberFormat
from training.heads.span_answers import (
    Answer,
    Candidate,
    Question,
    best_span,
    character_f1,
    fit_threshold,
    span_figures,
)
from training.heads.spans import CLS, AnsweredSet, AnswerSpans


def question(context: str, answer: Answer | None, asked: str = "好？") -> Question:
    return Question(asked, context, answer, {"question": asked, "context": context})


def encode(folder: Path, rows: list[Question], *, max_length: int, stride: int, task: AnswerSpans) -> AnsweredSet:
    character_tokenizer().save(str(folder / "tokenizer.json"))
    return task.reader(folder, max_length=max_length, stride=stride)(rows)


def adversarial(kind: str, n_tokens: int, rng: np.random.Generator) -> np.ndarray:
    """Scores that ask for an end before the start, or are as large as they can be."""
    scores = rng.normal(size=(2, n_tokens)).astype(np.float32)
    if kind == "end first":
        scores[0, -1] = scores[1, 0] = 1e30
    elif kind == "huge":
        scores *= np.float32(3e37)
    elif kind == "all the same":
        scores[:] = -3e38
    elif kind == "infinite":
        scores[rng.random(scores.shape) < 0.3] = np.inf
    if kind == "infinite" or kind == "mostly closed":
        scores[:, rng.random(n_tokens) < 0.8] = -np.inf
    return scores


@pytest.mark.parametrize("kind", ["plain", "end first", "huge", "all the same", "infinite", "mostly closed"])
@pytest.mark.parametrize("longest", [1, 3, 64])
def test_no_answer_ends_before_it_starts_whatever_the_scores(kind: str, longest: int) -> None:
    rng = np.random.default_rng(7)
    for n_tokens in (1, 2, 5, 33):
        for _ in range(20):
            scores = adversarial(kind, n_tokens, rng)
            found = best_span(scores, longest=longest)
            sums = {
                (first, last): float(scores[0, first]) + float(scores[1, last])
                for first, last in product(range(n_tokens), repeat=2)
                if first <= last < first + longest and min(scores[0, first], scores[1, last]) > -np.inf
            }
            if found is None:
                assert not sums
            else:
                assert 0 <= found.first <= found.last < min(n_tokens, found.first + longest)
                assert sums[found.first, found.last] == max(sums.values())
    assert best_span(np.zeros((2, 0), np.float32), longest=longest) is None


def test_windows_point_at_the_answer_they_hold_and_others_at_cls(tmp_path: Path) -> None:
    context = "在大房间干净，早餐好，有时服务员快"
    answer = Answer(context.index("早餐"), context.index("早餐") + 2)
    rows = [question(context, answer), question(context, None)]
    dataset = encode(tmp_path, rows, max_length=12, stride=3, task=AnswerSpans())
    engine = character_tokenizer()
    targets = dataset.targets(range(len(dataset)))
    holding = 0
    for window, (first, last) in zip(dataset.windows, targets, strict=True):
        ids = window.encoded.inputs["input_ids"]
        inside = window.row == 0 and window.first <= answer.start and answer.end <= window.first + window.count
        holding += inside
        if inside:
            assert [engine.id_to_token(token) for token in ids[first : last + 1]] == ["早", "餐"]
        else:
            assert (first, last) == (CLS, CLS)
        open_to_answers = np.flatnonzero(window.encoded.inputs["answerable"]).tolist()
        assert open_to_answers == [CLS, *range(window.at, window.at + window.count)]
    assert 2 <= holding < len(dataset) / 2


class Pointing(nn.Module):
    """Scores a position by its token: high starts and ends wherever `tokens` stand, in the question too."""

    def __init__(self, tokens: dict[str, tuple[float, float]], none: float) -> None:
        super().__init__()
        self.nothing = nn.Parameter(torch.zeros(1))
        engine = character_tokenizer()
        self.scores = torch.full((engine.get_vocab_size(), 2), -5.0)
        for token, pair in tokens.items():
            self.scores[engine.token_to_id(token)] = torch.tensor(pair)
        self.scores[engine.token_to_id("[CLS]")] = none / 2

    def forward(self, input_ids: Tensor, answerable: Tensor, **_: Tensor) -> Tensor:
        return self.scores[input_ids].transpose(1, 2).masked_fill(answerable.unsqueeze(1) == 0, -float("inf"))


@pytest.mark.parametrize(("max_length", "stride"), [(12, 3), (16, 8), (40, 20)])
def test_the_best_answer_over_all_windows_cuts_its_text_out(max_length: int, stride: int, tmp_path: Path) -> None:
    context = "在 大房间，干净。" + "不" * 20 + "服务员在时快，房间。"
    rows = [question(context, None, asked="服务员在时快？")]
    task = AnswerSpans(threshold=0.0)
    dataset = encode(tmp_path, rows, max_length=max_length, stride=stride, task=task)
    network = Pointing({"房": (1.0, 0.0), "间": (0.0, 1.0), "服": (4.0, 0.0), "员": (0.0, 4.0)}, none=3.0)
    (answer,) = task.answers(network, dataset, precision=NumberFormat.FP32)
    said = answer["answer"]
    assert said == {"start": context.index("服务员"), "text": "服务员"}
    assert context[said["start"] :].startswith(said["text"])
    (silent,) = task.answers(
        Pointing({"服": (1.0, 0.0), "员": (0.0, 1.0)}, none=3.0), dataset, precision=NumberFormat.FP32
    )
    assert silent["answer"] is None


def test_answers_are_no_longer_than_asked(tmp_path: Path) -> None:
    rows = [question("服不不不员不员", None)]
    network = Pointing({"服": (4.0, -5.0), "员": (-5.0, 4.0)}, none=-20.0)
    for longest, expected in ((7, "服不不不员"), (5, "服不不不员"), (4, None)):
        task = AnswerSpans(longest=longest, threshold=None)
        dataset = encode(tmp_path, rows, max_length=20, stride=20, task=task)
        (answer,) = task.answers(network, dataset, precision=NumberFormat.FP32)
        if expected is None:
            assert len(answer["answer"]["text"]) <= longest
        else:
            assert answer["answer"]["text"] == expected


def test_a_context_without_tokens_has_no_answer(tmp_path: Path) -> None:
    task = AnswerSpans(threshold=None)
    dataset = encode(tmp_path, [question("\n \n", None)], max_length=20, stride=20, task=task)
    (answer,) = task.answers(Pointing({}, none=0.0), dataset, precision=NumberFormat.FP32)
    assert answer["answer"] is None


def test_what_cannot_be_answered_exactly_is_counted(tmp_path: Path) -> None:
    rows = [
        question("在 房间好", Answer(1, 4)),
        question("在房间好不好，在大房间", Answer(0, 11)),
        question("房间", Answer(0, 2), asked="好" * 30),
    ]
    task = AnswerSpans(longest=8)
    dataset = encode(tmp_path, rows, max_length=16, stride=8, task=task)
    assert list(task.losses(dataset).values()) == [1, 1, 1]


def test_figures_compare_characters() -> None:
    assert character_f1("大房间", "房间") == pytest.approx(0.8)
    assert character_f1("房 间", "房间") == 1.0
    assert character_f1("好好", "好") == pytest.approx(2 / 3)
    assert character_f1("好", "坏") == character_f1(None, "坏") == character_f1("好", None) == 0.0
    assert character_f1(None, None) == 1.0
    rows = [question("大房间好", Answer(1, 3)), question("大房间好", Answer(3, 4)), question("大房间好", None)]
    said = [Candidate(Answer(0, 3), 5.0), Candidate(Answer(3, 4), 4.0), Candidate(Answer(0, 1), -1.0)]
    assert span_figures(said, rows, 0.0) == pytest.approx({"exact_match": 2 / 3, "f1": 2.8 / 3})
    assert span_figures(said, rows, None) == pytest.approx({"exact_match": 1 / 3, "f1": 1.8 / 3})


@pytest.mark.parametrize("seed", range(20))
def test_the_fitted_threshold_is_as_good_as_any(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 12))
    rows: list[Question] = []
    said: list[Candidate | None] = []
    for _ in range(n_rows):
        rows.append(question("大房间好", None if rng.random() < 0.5 else Answer(0, int(rng.integers(1, 5)))))
        margin = float(rng.integers(-3, 4))  # often equal
        said.append(None if rng.random() < 0.1 else Candidate(Answer(0, int(rng.integers(1, 5))), margin))
    rows.append(question("大房间好", None))
    said.append(Candidate(Answer(0, 1), float(rng.integers(-3, 4))))

    def f1(threshold: float | None) -> Any:
        return span_figures(said, rows, threshold)["f1"]

    fitted = fit_threshold(said, rows)
    assert f1(fitted) == pytest.approx(max(f1(each / 2) for each in range(-9, 10)))


def test_where_every_question_has_an_answer_one_is_always_given() -> None:
    rows = [question("房间好", Answer(0, 2))]
    assert fit_threshold([Candidate(Answer(2, 3), -9.0)], rows) is None
    assert fit_threshold([None], [question("房间好", None)]) == 0.0
