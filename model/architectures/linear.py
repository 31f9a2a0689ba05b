"""A linear classifier on sparse features: the baseline that every other architecture has to beat.

ngram_ids, ngram_weights: (batch, n) → logits: (batch, n_labels), the weighted sum of the n-grams' rows.
"""

from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from model.files import write_json

MODEL_TYPE = "wenlei-linear"


class LinearClassifier(nn.Module):
    """weight: (n_ngrams, n_labels), bias: (n_labels,)."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight)
        self.bias = nn.Parameter(bias)

    @classmethod
    def load(cls, folder: Path) -> "LinearClassifier":
        """A trained classifier, as `save` wrote it."""
        return cls(**load_file(folder / "model.safetensors")).eval()

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`."""
        n_ngrams, n_labels = self.weight.shape
        write_json(folder / "config.json", {"model_type": MODEL_TYPE, "n_ngrams": n_ngrams, "n_labels": n_labels})
        save_file(self.state_dict(), folder / "model.safetensors")

    def forward(self, ngram_ids: Tensor, ngram_weights: Tensor) -> Tensor:
        """Logits (batch, n_labels)."""
        rows = torch.nn.functional.embedding(ngram_ids, self.weight)
        return (rows * ngram_weights.unsqueeze(-1)).sum(1) + self.bias
