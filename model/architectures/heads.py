"""BERT's other heads (Devlin 2018, section 4): a label for every token, an answer's span, one of several choices.

input_ids, attention_mask, token_type_ids: (batch, length)
  → hidden states of the last layer: (batch, length, hidden_size)
  → tokens:  (batch, length, n_labels)
  → span:    (batch, 2, length), start and end scores of every position
  → choices: (batch, n_choices), of inputs (batch, n_choices, length)

Each is one linear layer on an encoder of `load_encoder`: BERT, ERNIE, ELECTRA or NEZHA.
"""

from pathlib import Path
from typing import Self

from torch import Tensor
from transformers import PreTrainedModel

from model.architectures.foreign_weights import load_encoder
from model.architectures.on_encoder import LinearHead


class _Head(LinearHead):
    """A linear layer on the states of an encoder's last layer."""

    def states(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """Hidden states of the last layer: (batch, length, hidden_size)."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, "token_type_ids": token_type_ids}
        states: Tensor = self.encoder(**inputs).last_hidden_state
        return states


class TokenClassifier(_Head):
    """A label for every token."""

    @classmethod
    def start(cls, folder: Path, *, n_labels: int, dropout: float = 0.1) -> Self:
        """A pretrained encoder from `folder` under a new head; `dropout` of hidden states, none of attention."""
        return cls(_pretrained(folder, dropout), n_outputs=n_labels, dropout=dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Logits (batch, length, n_labels)."""
        return self.score(self.states(input_ids, attention_mask, token_type_ids))


class SpanClassifier(_Head):
    """Where in a context the answer begins and ends: a start vector S and an end vector E.

    A position's scores are S·T_i and E·T_i; a softmax over positions makes them probabilities. [CLS] is the answer
    where the context has none.
    """

    @classmethod
    def start(cls, folder: Path, *, dropout: float = 0.1) -> Self:
        """A pretrained encoder from `folder` under a new head; `dropout` of hidden states, none of attention."""
        return cls(_pretrained(folder, dropout), n_outputs=2, dropout=dropout)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, answerable: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Start and end scores (batch, 2, length), -inf where `answerable` (batch, length) is 0.

        Answerable are the tokens of the context, and [CLS].
        """
        scores = self.score(self.states(input_ids, attention_mask, token_type_ids)).transpose(1, 2)
        return scores.masked_fill(answerable.unsqueeze(1) == 0, -float("inf"))


class ChoiceClassifier(_Head):
    """One of several choices: each stands with the text in a sequence of its own, whose [CLS] state gets a score."""

    @classmethod
    def start(cls, folder: Path, *, dropout: float = 0.1) -> Self:
        """A pretrained encoder from `folder` under a new head; `dropout` of hidden states, none of attention."""
        return cls(_pretrained(folder, dropout), n_outputs=1, dropout=dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Scores (batch, n_choices) of inputs (batch, n_choices, length), for a softmax over choices."""
        types = None if token_type_ids is None else token_type_ids.flatten(0, 1)
        states = self.states(input_ids.flatten(0, 1), attention_mask.flatten(0, 1), types)
        return self.score(states[:, 0]).view(input_ids.shape[:2])


def _pretrained(folder: Path, dropout: float) -> PreTrainedModel:
    return load_encoder(folder, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)
