"""What a student is trained by: how far its layers and its answers are from the teacher's (Jiao 2020, section 3.1).

Means leave padding out, so that the length of a batch changes nothing.
"""

from torch import Tensor
from torch.nn import functional

from model.types import Activation


def hidden_loss(student: Tensor, teacher: Tensor, attention_mask: Tensor) -> Tensor:
    """Equations 8 and 9: the mean squared difference of states (batch, length, width) at real positions.

    student: projected to the teacher's width already. attention_mask: (batch, length), 1 where a token is.
    """
    squares = (student.float() - teacher.float()).square().mean(-1)
    return (squares * attention_mask).sum() / attention_mask.sum()


def attention_loss(student: Tensor, teacher: Tensor, attention_mask: Tensor) -> Tensor:
    """Equation 7: the mean squared difference of attention (batch, heads, length, length) before its softmax.

    Of real positions looking at real ones; attention_mask: (batch, length). What is the same for all that a position
    looks at is left out: the softmax takes no notice of it, and in some teachers it is most of the difference.
    """
    seen = attention_mask[:, None, None, :]
    difference = (student.float() - teacher.float()) * seen
    difference = difference - difference.sum(-1, keepdim=True) / seen.sum(-1, keepdim=True)
    real = attention_mask.unsqueeze(1) * attention_mask.unsqueeze(2)
    return (difference.square().mean(1) * real).sum() / real.sum()


def prediction_loss(student: Tensor, teacher: Tensor, activation: Activation, *, temperature: float) -> Tensor:
    """Equation 10: cross-entropy of the student's answers against the teacher's, both logits (batch, n_labels).

    Softmax over the labels where a text has exactly one, else a sigmoid a label, in the mean of labels. Multiplied by
    the square of the temperature, by which gradients shrink (Hinton 2015).
    """
    student, teacher = student.float() / temperature, teacher.float() / temperature
    if activation is Activation.SOFTMAX:
        loss = functional.cross_entropy(student, teacher.softmax(-1))
    else:
        loss = functional.binary_cross_entropy_with_logits(student, teacher.sigmoid())
    return loss * temperature**2
