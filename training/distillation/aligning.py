"""The layers of a student beside those of its teacher: what is compared, and the training that brings them together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from model.runtime.base import batches_by_length
from model.types import Text
from training.data import EncodedTexts
from training.device import NumberFormat, autocast, pick_device, pick_precision, to_tensors
from training.distillation.cache import TEXTS_A_PART, Arrays, Cache
from training.distillation.losses import attention_loss, hidden_loss
from training.distillation.states import read_states
from training.loop import EVALUATION_TOKENS

SMALLEST = 1e-6  # of a loss that others are divided by
PARTS = ("embeddings", "hidden", "attention")


class Aligning(nn.Module):
    """A student's encoder, and where it is narrower, projections of its states to the teacher's width.

    forward: the losses of its embeddings, its hidden states and its attention, in the mean of its layers: (3,). Each is
    a share of what a student would lose that says 0 everywhere, so that what is large in a teacher does not drown the
    rest.
    """

    def __init__(self, encoder: PreTrainedModel, *, teacher_width: int) -> None:
        super().__init__()
        self.encoder = encoder
        width = encoder.config.hidden_size
        self.projections = nn.ModuleList(
            nn.Identity() if width == teacher_width else nn.Linear(width, teacher_width, bias=False)
            for _ in ("embeddings", "hidden")
        )

    def forward(
        self, teacher_hidden: Tensor, teacher_scores: Tensor, attention_mask: Tensor, **inputs: Tensor
    ) -> Tensor:
        """inputs: (batch, length) each. teacher_hidden: (n_layers + 1, batch, length, width).

        teacher_scores: (n_layers, batch, heads, length, length).
        """
        layers = range(1, self.encoder.config.num_hidden_layers + 1)
        states = read_states(self.encoder, layers, {**inputs, "attention_mask": attention_mask})
        of_embeddings, of_hidden = self.projections
        embeddings = _share(hidden_loss, of_embeddings(states.hidden[0]), teacher_hidden[0], attention_mask)
        hidden = [
            _share(hidden_loss, of_hidden(own), theirs, attention_mask)
            for own, theirs in zip(states.hidden[1:], teacher_hidden[1:], strict=True)
        ]
        attention = [
            _share(attention_loss, own, theirs, attention_mask)
            for own, theirs in zip(states.scores, teacher_scores, strict=True)
        ]
        return torch.stack([embeddings, torch.stack(hidden).mean(), torch.stack(attention).mean()])


def _share(loss: Callable[[Tensor, Tensor, Tensor], Tensor], student: Tensor, teacher: Tensor, mask: Tensor) -> Tensor:
    return loss(student, teacher, mask) / loss(torch.zeros_like(teacher), teacher, mask).clamp(min=SMALLEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignedTexts(EncodedTexts):
    """Texts, and what a teacher's layers say of each; as `ask_layers` gives them, in parts of `TEXTS_A_PART` texts."""

    parts: Sequence[Arrays]
    ends: NDArray[np.int64]  # (n_texts, 2) where each text's tokens end in its part, and its pairs of tokens

    def batch(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The inputs, and teacher_hidden and teacher_scores as in `Aligning.forward`, padded with 0."""
        inputs = EncodedTexts.batch(self, rows)
        length = inputs["attention_mask"].shape[1]
        _, n_states, width = self.parts[0]["hidden"].shape
        _, n_layers, heads = self.parts[0]["scores"].shape
        hidden = np.zeros((n_states, len(rows), length, width), np.float32)
        scores = np.zeros((n_layers, len(rows), heads, length, length), np.float32)
        for place, row in enumerate(rows):
            part, n = self.parts[row // TEXTS_A_PART], self.encoded[row].length
            tokens, pairs = (int(end) for end in self.ends[row])
            hidden[:, place, :n] = part["hidden"][tokens - n : tokens].transpose(1, 0, 2)
            scores[:, place, :, :n, :n] = (
                part["scores"][pairs - n * n : pairs].reshape(n, n, n_layers, heads).transpose(2, 3, 0, 1)
            )
        return {**inputs, "teacher_hidden": hidden, "teacher_scores": scores}


def ask_layers(
    texts: Sequence[Text], encoded: EncodedTexts, encoder: PreTrainedModel, layers: Sequence[int], cache: Cache
) -> AlignedTexts:
    """What `layers` of the teacher's `encoder` say of `texts`, by `cache`.

    Raises:
        BadRun: the disk has no room for it.
    """
    lengths = encoded.lengths
    config = encoder.config
    width, heads = config.hidden_size, config.num_attention_heads
    size = 2 * int(lengths.sum() * (len(layers) + 1) * width + (lengths**2).sum() * len(layers) * heads)
    device = pick_device()
    nn.Module.to(encoder, device).eval()
    precision = pick_precision(NumberFormat.AUTO, device)

    def answer(part: slice) -> Arrays:
        rows = np.arange(len(texts))[part]
        hidden: dict[int, NDArray[Any]] = {}
        scores: dict[int, NDArray[Any]] = {}
        for places in batches_by_length(lengths[rows].tolist(), batch_tokens=EVALUATION_TOKENS):
            chosen = rows[places].tolist()
            with torch.inference_mode(), autocast(device, precision):
                states = read_states(encoder, layers, to_tensors(encoded.batch(chosen), device))
            their_hidden = states.hidden.half().permute(1, 2, 0, 3).cpu().numpy()
            their_scores = states.scores.half().permute(1, 3, 4, 0, 2).cpu().numpy()
            for place, row in enumerate(chosen):
                n = int(lengths[row])
                hidden[row] = their_hidden[place, :n]
                scores[row] = their_scores[place, :n, :n].reshape(n * n, len(layers), heads)
        return {
            "hidden": np.concatenate([hidden[row] for row in rows.tolist()]),
            "scores": np.concatenate([scores[row] for row in rows.tolist()]),
        }

    parts = cache.ask(texts, answer, size=size, what="教师各层 the teacher's layers")
    ends = np.concatenate(
        [
            np.column_stack((np.cumsum(its), np.cumsum(its**2)))
            for its in np.split(lengths, range(TEXTS_A_PART, len(lengths), TEXTS_A_PART))
        ]
    )
    return AlignedTexts(encoded=encoded.encoded, padding=encoded.padding, parts=parts, ends=ends)


@dataclass(frozen=True, slots=True)
class Alignment:
    """The sum of the three losses, as in equation 11; judged by the likeness 1 / (1 + loss)."""

    score: ClassVar[str] = "likeness"

    def loss(self, network: nn.Module, inputs: dict[str, Tensor], targets: Tensor) -> Tensor:  # noqa: ARG002
        """Of a batch."""
        losses: Tensor = network(**inputs)
        return losses.sum()

    def figures(self, network: nn.Module, dev_set: AlignedTexts, *, precision: NumberFormat) -> dict[str, float]:
        """The likeness, and each loss in the mean of batches."""
        device = next(network.parameters()).device
        network.eval()
        found, sizes = [], []
        with torch.inference_mode(), autocast(device, precision):
            for rows in batches_by_length(dev_set.lengths.tolist(), batch_tokens=EVALUATION_TOKENS):
                found.append(network(**to_tensors(dev_set.batch(rows), device)).float().cpu().numpy())
                sizes.append(len(rows))
        means = np.average(found, axis=0, weights=sizes)
        return {"likeness": float(1 / (1 + means.sum())), **dict(zip(PARTS, means.tolist(), strict=True))}
