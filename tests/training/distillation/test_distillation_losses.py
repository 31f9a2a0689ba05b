"""The losses against loops that anybody can follow."""

import math

import pytest
import torch
from torch import Tensor

from model.types import Activation
from training.distillation.losses import attention_loss, hidden_loss, prediction_loss

MASK = torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]])
LENGTHS = (3, 2)


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_hidden_states_are_compared_at_real_positions() -> None:
    student, teacher = random(2, 4, 5), random(4, 2, 5).transpose(0, 1)
    squares = [
        float((student[text, place, unit] - teacher[text, place, unit]) ** 2)
        for text, length in enumerate(LENGTHS)
        for place in range(length)
        for unit in range(5)
    ]
    assert float(hidden_loss(student, teacher, MASK)) == pytest.approx(sum(squares) / len(squares))


def test_attention_is_compared_between_real_positions_by_what_a_softmax_sees() -> None:
    student, teacher = random(2, 3, 4, 4), random(3, 2, 4, 4).transpose(0, 1)
    squares = []
    for text, length in enumerate(LENGTHS):
        for head in range(3):
            for place in range(length):
                rows = [scores[text, head, place, :length].tolist() for scores in (student, teacher)]
                centred = [[value - sum(row) / length for value in row] for row in rows]
                squares += [(own - theirs) ** 2 for own, theirs in zip(*centred, strict=True)]
    assert float(attention_loss(student, teacher, MASK)) == pytest.approx(sum(squares) / len(squares))
    # What is the same for all that a position looks at, the softmax does not see.
    shifted = student + random(2, 3, 4, 1)
    assert torch.equal((student + 5).softmax(-1).round(decimals=5), student.softmax(-1).round(decimals=5))
    assert float(attention_loss(shifted, teacher, MASK)) == pytest.approx(sum(squares) / len(squares), rel=1e-5)


@pytest.mark.parametrize("loss", [hidden_loss, attention_loss])
def test_padding_changes_nothing(loss: type) -> None:
    shape = (2, 4, 4) if loss is hidden_loss else (2, 3, 4, 4)
    student, teacher = random(*shape), random(*shape) * 2
    before = float(loss(student, teacher, MASK))
    student[0, ..., 3, :] = 99
    student[1, ..., 2:, :] = -99
    if loss is attention_loss:
        student[0, ..., 3] = 77
        student[1, ..., 2:] = 55
    assert float(loss(student, teacher, MASK)) == pytest.approx(before)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_answers_with_one_label_are_compared_as_shares_of_all(temperature: float) -> None:
    student, teacher = random(2, 3), random(3, 2).T
    expected = 0.0
    for own, theirs in zip(student.tolist(), teacher.tolist(), strict=True):
        total, weight = (sum(math.exp(value / temperature) for value in row) for row in (own, theirs))
        for mine, its in zip(own, theirs, strict=True):
            expected -= math.exp(its / temperature) / weight * math.log(math.exp(mine / temperature) / total)
    found = prediction_loss(student, teacher, Activation.SOFTMAX, temperature=temperature)
    assert float(found) == pytest.approx(expected / 2 * temperature**2, rel=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_answers_with_several_labels_are_compared_label_by_label(temperature: float) -> None:
    student, teacher = random(2, 3), random(3, 2).T
    expected = 0.0
    for own, theirs in zip(student.flatten().tolist(), teacher.flatten().tolist(), strict=True):
        mine, its = (1 / (1 + math.exp(-value / temperature)) for value in (own, theirs))
        expected -= its * math.log(mine) + (1 - its) * math.log(1 - mine)
    found = prediction_loss(student, teacher, Activation.SIGMOID, temperature=temperature)
    assert float(found) == pytest.approx(expected / 6 * temperature**2, rel=1e-5)


@pytest.mark.parametrize("activation", Activation)
def test_the_best_answer_is_the_teacher_s(activation: Activation) -> None:
    teacher = random(4, 5)
    student = teacher.clone().requires_grad_()
    prediction_loss(student, teacher, activation, temperature=2.0).backward()
    assert student.grad is not None
    assert student.grad.abs().max() < 1e-6
