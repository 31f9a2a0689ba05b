"""BERT (Devlin 2018) and its kin as text classifiers: an encoder, a pooling and one linear layer.

input_ids, attention_mask: (batch, length)
  → hidden states of every layer: (batch, length, hidden_size)
  → pooled: (batch, hidden_size)
  → logits: (batch, n_labels)

The encoder is a BERT, an ERNIE (Sun 2019), the discriminator of an ELECTRA (Clark 2020) or a NEZHA (Wei 2019): its
`config.json` says which. A frozen encoder under `Pooling.BILSTM` is BERT as features (Devlin 2018, 5.3).
"""

from enum import StrEnum
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedModel

from model.architectures.foreign_weights import load_encoder, new_encoder
from model.architectures.on_encoder import OnEncoder
from model.architectures.weight_files import read_head

LSTM_LAYERS = 2  # of the BiLSTM, as in the paper


class Pooling(StrEnum):
    """How a text's hidden states become one vector.

    cls: the first token's of the last layer. mean: the mean of the last layer's. layers: the mean of a learned mix of
    all layers. bilstm: the mean of what a bidirectional LSTM makes of that mix.
    """

    CLS = "cls"
    MEAN = "mean"
    LAYERS = "layers"
    BILSTM = "bilstm"

    @property
    def mixes(self) -> bool:
        """Whether all layers are read."""
        return self in (Pooling.LAYERS, Pooling.BILSTM)


class BertClassifier(OnEncoder):
    """An encoder without its pooler, a pooling, dropout and a linear head. Frozen, the mix and the BiLSTM learn too."""

    def __init__(
        self, encoder: PreTrainedModel, *, n_labels: int, pooling: Pooling = Pooling.MEAN, dropout: float = 0.1
    ) -> None:
        super().__init__(encoder)
        config = encoder.config
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(config.hidden_size, n_labels)
        nn.init.normal_(self.head.weight, std=config.initializer_range)
        nn.init.zeros_(self.head.bias)
        if pooling.mixes:
            self.layer_mix = nn.Parameter(torch.zeros(config.num_hidden_layers + 1))
        if pooling is Pooling.BILSTM:
            self.lstm = nn.LSTM(
                config.hidden_size,
                config.hidden_size // 2,  # a direction; both together are as wide as the encoder
                num_layers=LSTM_LAYERS,
                batch_first=True,
                bidirectional=True,
            )

    @classmethod
    def start(
        cls, folder: Path, *, n_labels: int, pooling: Pooling, dropout: float = 0.1, from_scratch: bool = False
    ) -> "BertClassifier":
        """A pretrained encoder from `folder` under a new head; `dropout` of hidden states, none of attention.

        from_scratch: an encoder of the same shape with random weights, to see what pretraining is worth.
        """
        make = new_encoder if from_scratch else load_encoder
        encoder = make(folder, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)
        return cls(encoder, n_labels=n_labels, pooling=pooling, dropout=dropout)

    @classmethod
    def load(cls, folder: Path, *, pooling: Pooling) -> "BertClassifier":
        """A trained classifier, as `save` wrote it.

        Raises:
            BadInput: a file is not there or damaged.
        """
        head = read_head(folder)
        encoder = load_encoder(folder)
        classifier = cls(encoder, n_labels=len(head["head.bias"]), pooling=pooling)
        classifier.load_state_dict({**encoder.state_dict(prefix="encoder."), **head})
        return classifier.eval()

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Logits (batch, n_labels)."""
        output = self.encoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            output_hidden_states=self.pooling.mixes,
        )
        if self.pooling is Pooling.CLS:
            pooled = output.last_hidden_state[:, 0]
        else:
            states = self.mix(output.hidden_states) if self.pooling.mixes else output.last_hidden_state
            if self.pooling is Pooling.BILSTM:
                states = self.read_both_ways(states, attention_mask)
            pooled = masked_mean(states, attention_mask)
        logits: Tensor = self.head(self.dropout(pooled))
        return logits

    def mix(self, hidden_states: tuple[Tensor, ...]) -> Tensor:
        """The layers' weighted mean, each (batch, length, hidden_size); the weights are learned, and add up to 1."""
        weights = self.layer_mix.softmax(0)
        mixed = sum(weight * hidden for weight, hidden in zip(weights, hidden_states, strict=True))
        return cast(Tensor, mixed)

    def read_both_ways(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """The BiLSTM over real positions: (batch, length, hidden_size) to (batch, length, 2 * (hidden_size // 2)).

        A text's backward direction begins at its own end, so padding changes nothing.
        """
        lengths = attention_mask.sum(1).cpu()
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        read: Tensor
        read, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=states.shape[1])
        return read


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean over real positions: hidden (batch, length, width), mask (batch, length) → (batch, width)."""
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)
