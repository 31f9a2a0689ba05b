"""BERT's two tasks (Devlin 2018), for BERT, ERNIE and NEZHA: guess masked tokens, and tell whether a text goes on.

An ELECTRA has the first one alone.

A window of several sentences is cut at one of them into a text and the next, which half of the time is swapped for
a text from another document: [CLS] a [SEP] b [SEP]. A window of one sentence, a title say, has no next; it is
[CLS] a [SEP], and the second task leaves it out. Both losses are added, each a mean over its own predictions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional
from transformers import ElectraForMaskedLM, PreTrainedModel

from training.pretrain.masking import IGNORED, Masking, Row
from training.pretrain.objectives import Batch, OtherText, RandomOf
from training.pretrain.tokens import TokenTable
from training.pretrain.windows import Window

MASKED_LM, NEXT_SENTENCE = "masked_lm", "next_sentence"
IS_NEXT, IS_RANDOM = 0, 1  # as transformers numbers them
Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Framed:
    """A row before its special tokens. first: tokens before the first [SEP]; label: IS_NEXT, IS_RANDOM or IGNORED."""

    ids: Ids
    word_starts: NDArray[np.bool_]
    first: int
    label: int


class BertObjective:
    """Masked language model and, unless `next_sentence` is off, next-sentence prediction.

    model: has a base model with a pooler, and heads `cls.predictions` and `cls.seq_relationship`, as
    transformers' BertForPreTraining; or is an ElectraForMaskedLM, without `next_sentence`.
    """

    judged = (MASKED_LM,)
    figure = "bits_per_masked_character"

    def __init__(
        self, *, model: PreTrainedModel, tokens: TokenTable, whole_words: bool = False, next_sentence: bool = True
    ) -> None:
        self.model = model
        self.scores = scores_of(model)
        self.tokens = tokens
        self.next_sentence = next_sentence
        self.masking = Masking(tokens.special["mask"], tokens.ordinary, whole_words)
        self.parts = (MASKED_LM, NEXT_SENTENCE) if next_sentence else (MASKED_LM,)
        self.framing = 3 if next_sentence else 2

    def collate(self, windows: Sequence[Window], random: RandomOf, other_text: OtherText) -> Batch:
        """input_ids, token_type_ids: (batch, length). attention_mask: likewise, if any row is padded.

        masked_places: (n_masked,) which positions of the flattened batch are to be guessed; masked_ids: what stands
        there. next_sentence_labels: (batch,).
        """
        framed, rows = [], []
        for number, window in enumerate(windows):
            generator = random(number)
            framed.append(self._frame(window, generator, other_text))
            rows.append(Row.draw(framed[-1].ids, framed[-1].word_starts, generator))
        seen, chosen = self.masking(rows)
        lengths = np.array([len(row.ids) + (2 if row.label == IGNORED else 3) for row in framed])
        width = int(lengths.max())
        special = self.tokens.special
        input_ids = np.full((len(rows), width), special["pad"], np.int64)
        token_type_ids = np.zeros_like(input_ids)
        ordinary = np.zeros(input_ids.shape, bool)
        for number, (row, length) in enumerate(zip(framed, lengths, strict=True)):
            input_ids[number, 0] = special["cls"]
            input_ids[number, length - 1] = special["sep"]
            ordinary[number, 1 : length - 1] = True
            if row.label != IGNORED:
                input_ids[number, row.first + 1] = special["sep"]
                ordinary[number, row.first + 1] = False
                token_type_ids[number, row.first + 2 : length] = 1
        input_ids[ordinary] = seen  # row after row, as the rows were masked
        masked_ids = np.concatenate([row.ids for row in framed])[chosen]
        inputs = {
            "input_ids": input_ids,
            "token_type_ids": token_type_ids,
            "masked_places": np.flatnonzero(ordinary)[chosen],
            "masked_ids": masked_ids,
        }
        if (lengths < width).any():
            inputs["attention_mask"] = (np.arange(width) < lengths[:, None]).astype(np.int64)
        counts = {MASKED_LM: len(masked_ids)}
        if self.next_sentence:
            labels = np.array([row.label for row in framed], np.int64)
            inputs["next_sentence_labels"] = labels
            counts[NEXT_SENTENCE] = int((labels != IGNORED).sum())
        return Batch(
            inputs=inputs,
            counts=counts,
            tokens=int(lengths.sum()),
            places=input_ids.size,
            characters=float(self.tokens.characters[masked_ids].sum()),
            spelling=self.tokens.bits_to_spell(masked_ids),
        )

    def _frame(self, window: Window, generator: np.random.Generator, other_text: OtherText) -> Framed:
        whole = Framed(window.ids, window.word_starts, window.length, IGNORED)
        if not self.next_sentence or len(window.sentence_starts) < 2:
            return whole
        cut = int(window.sentence_starts[1 + generator.integers(len(window.sentence_starts) - 1)])
        if generator.random() < 0.5:
            return Framed(window.ids, window.word_starts, cut, IS_NEXT)
        # No longer than the text that it stands for, so that length does not give it away.
        other = other_text(generator, window, window.length - cut)
        if other is None:
            return whole
        return Framed(
            np.concatenate([window.ids[:cut], other.ids]),
            np.concatenate([window.word_starts[:cut], other.word_starts]),
            cut,
            IS_RANDOM,
        )

    def example(self, length: int) -> Window:
        """A window of `length` ordinary tokens."""
        return self.tokens.example(length)

    def losses(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The sums over masked tokens, of which alone the head computes scores, and over texts with a next one."""
        output = self.model.base_model(
            input_ids=inputs["input_ids"],
            attention_mask=inputs.get("attention_mask"),
            token_type_ids=inputs["token_type_ids"],
        )
        masked = output.last_hidden_state.flatten(0, 1)[inputs["masked_places"]]
        scores = self.scores(masked)
        losses = {MASKED_LM: functional.cross_entropy(scores.float(), inputs["masked_ids"], reduction="sum")}
        if self.next_sentence:
            heads: Any = self.model.cls
            verdicts = heads.seq_relationship(output.pooler_output)
            losses[NEXT_SENTENCE] = functional.cross_entropy(
                verdicts.float(), inputs["next_sentence_labels"], reduction="sum", ignore_index=IGNORED
            )
        return losses

    def begin_at(self, frequencies: NDArray[np.float64]) -> None:
        """Let the head know how frequent each token is: (vocabulary_size,), all above 0. For new weights.

        It is what a masked language model learns first, for hundreds of steps, with the few predictions that it makes
        in each; and if it may not say it by its bias, it says it by its embeddings, which it shares with the encoder.
        """
        heads: Any = self.model.cls
        with torch.no_grad():
            heads.predictions.bias.copy_(torch.from_numpy(np.log(frequencies)))

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        self.model.save_pretrained(folder)


def scores_of(model: Any) -> Callable[[Tensor], Tensor]:
    """What turns hidden states (n, hidden_size) into scores of the vocabulary (n, vocabulary_size)."""
    if isinstance(model, ElectraForMaskedLM):
        return lambda states: model.generator_lm_head(model.generator_predictions(states))
    return lambda states: model.cls.predictions(states)
