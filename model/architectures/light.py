"""Light networks that learn from the task's texts alone, without any pretraining: baselines between a line and BERT.

fasttext  ngram_ids, ngram_weights: (batch, n)        → their weighted mean in a small space → logits (Joulin 2017)
textcnn   input_ids, attention_mask: (batch, length)  → convolutions of several widths, the maximum of each (Kim 2014)
bilstm    input_ids, attention_mask: (batch, length)  → a bidirectional LSTM, the mean over positions
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from model.files import read_json, write_json

WIDTHS = (2, 3, 4)  # characters that a filter of TextCNN reads
FILTERS = 192  # of each width
EMBEDDING_SIZE = 192


class LightClassifier(nn.Module):
    """What the three have in common: a folder with `config.json` and `model.safetensors`."""

    MODEL_TYPE: ClassVar[str]

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    @classmethod
    def load(cls, folder: Path) -> Self:
        """A trained classifier, as `save` wrote it."""
        settings = {name: value for name, value in read_json(folder / "config.json").items() if name != "model_type"}
        made = cls(**settings)
        made.load_state_dict(load_file(folder / "model.safetensors"))
        return made.eval()

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        write_json(folder / "config.json", {"model_type": self.MODEL_TYPE, **self.settings})
        save_file(
            {name: weight.contiguous() for name, weight in self.state_dict().items()}, folder / "model.safetensors"
        )


class FastTextClassifier(LightClassifier):
    """A bag of character n-grams, each with a vector; their weights are those of TF-IDF."""

    MODEL_TYPE = "wenlei-fasttext"

    def __init__(self, *, size: int, n_labels: int, embedding_size: int = EMBEDDING_SIZE, dropout: float = 0.1) -> None:
        super().__init__(size=size, n_labels=n_labels, embedding_size=embedding_size, dropout=dropout)
        self.embeddings = nn.Embedding(size, embedding_size)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(embedding_size, n_labels)

    def forward(self, ngram_ids: Tensor, ngram_weights: Tensor) -> Tensor:
        """Logits (batch, n_labels)."""
        pooled = (self.embeddings(ngram_ids) * ngram_weights.unsqueeze(-1)).sum(1)
        logits: Tensor = self.head(self.dropout(pooled))
        return logits


class TextCnnClassifier(LightClassifier):
    """Filters that each look for some characters in a row, and say how well the best place fits."""

    MODEL_TYPE = "wenlei-textcnn"

    def __init__(
        self,
        *,
        size: int,
        n_labels: int,
        embedding_size: int = EMBEDDING_SIZE,
        filters: int = FILTERS,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(size=size, n_labels=n_labels, embedding_size=embedding_size, filters=filters, dropout=dropout)
        self.embeddings = nn.Embedding(size, embedding_size)
        self.convolutions = nn.ModuleList(nn.Conv1d(embedding_size, filters, width) for width in WIDTHS)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(filters * len(WIDTHS), n_labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, n_labels); what stands behind a text's end changes nothing."""
        real = attention_mask.unsqueeze(1).to(self.head.weight.dtype)
        embedded = self.dropout(self.embeddings(input_ids)).transpose(1, 2) * real
        found = [
            functional.relu(convolution(functional.pad(embedded, (0, width - 1)))) * real
            for width, convolution in zip(WIDTHS, self.convolutions, strict=True)
        ]  # a filter begins at every token, and reads zeros beyond the last one
        logits: Tensor = self.head(self.dropout(torch.cat([its.amax(2) for its in found], 1)))
        return logits


class BilstmClassifier(LightClassifier):
    """A bidirectional LSTM, read to each text's own end and back from there."""

    MODEL_TYPE = "wenlei-bilstm"

    def __init__(self, *, size: int, n_labels: int, embedding_size: int = EMBEDDING_SIZE, dropout: float = 0.1) -> None:
        super().__init__(size=size, n_labels=n_labels, embedding_size=embedding_size, dropout=dropout)
        self.embeddings = nn.Embedding(size, embedding_size)
        self.lstm = nn.LSTM(embedding_size, embedding_size, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * embedding_size, n_labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, n_labels)."""
        lengths = attention_mask.sum(1)
        packed = pack_padded_sequence(
            self.dropout(self.embeddings(input_ids)), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=input_ids.shape[1])
        logits: Tensor = self.head(self.dropout(states.sum(1) / lengths.unsqueeze(1)))
        return logits


LIGHT: Mapping[str, type[FastTextClassifier] | type[TextCnnClassifier] | type[BilstmClassifier]] = {
    "fasttext": FastTextClassifier,
    "textcnn": TextCnnClassifier,
    "bilstm": BilstmClassifier,
}
