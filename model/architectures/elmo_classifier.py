"""A classifier on ELMo: the layers of the biLM, mixed as the task likes them.

word_ids, attention_mask: (batch, length); char_ids: (batch, length, word_length); padded on the right
  → the biLM's n_layers + 1 layers, mixed by the task's own weights: (batch, length, 2 · projection_size)
  → pooled: (batch, 2 · projection_size) → logits: (batch, n_labels)
"""

from enum import StrEnum
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.elmo import ElmoEncoder
from model.architectures.elmo_files import fill
from model.architectures.weight_files import HEAD, WEIGHTS, read_head

NORM_EPSILON = 1e-5


class ScalarMix(nn.Module):
    """ELMo_k = γ Σ_j s_j h_kj with s = softmax(weights): what a task takes of every layer (Peters 2018, equation 1).

    Every layer's vectors are normalised first, as the paper advises where layers differ in scale: the states of an LSTM
    are small, and a task would spend its first epochs on making them larger.
    """

    def __init__(self, n_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_layers))
        self.gamma = nn.Parameter(torch.ones(()))

    def forward(self, layers: list[Tensor]) -> Tensor:
        """`n_layers` of (batch, length, width) → (batch, length, width)."""
        mixed = torch.zeros_like(layers[0])
        for share, layer in zip(self.weights.softmax(0), layers, strict=True):
            mixed = mixed + share * functional.layer_norm(layer, layer.shape[-1:], eps=NORM_EPSILON)
        return self.gamma * mixed


class ElmoPooling(StrEnum):
    """How a text's words become one vector."""

    MEAN = "mean"
    MAX = "max"


class ElmoClassifier(nn.Module):
    """The biLM, a mix of its layers, a pooling over real words, dropout and a linear head."""

    def __init__(
        self, encoder: ElmoEncoder, *, n_labels: int, pooling: ElmoPooling = ElmoPooling.MEAN, dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.mix = ScalarMix(encoder.config.n_layers + 1)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(2 * encoder.config.projection_size, n_labels)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    @classmethod
    def start(
        cls,
        folder: Path,
        *,
        n_labels: int,
        pooling: ElmoPooling = ElmoPooling.MEAN,
        dropout: float = 0.1,
        from_scratch: bool = False,
    ) -> "ElmoClassifier":
        """A pretrained biLM from `folder` under a new head; its softmax is left behind.

        from_scratch: a biLM of the same shape and words with random weights, to see what pretraining is worth.

        Raises:
            BadInput: the folder is of another architecture, or its weights are not whole.
        """
        encoder = ElmoEncoder.load(folder, filled=not from_scratch, dropout=dropout)
        return cls(encoder, n_labels=n_labels, pooling=pooling, dropout=dropout)

    @classmethod
    def load(cls, folder: Path, *, pooling: ElmoPooling) -> "ElmoClassifier":
        """A trained classifier, as `save` wrote it, with the table of its words' vectors.

        Raises:
            BadInput: the folder is of another architecture, or its weights are not whole.
        """
        head = read_head(folder)
        encoder = ElmoEncoder.load(folder)
        classifier = cls(encoder, n_labels=len(head.get("head.bias", "?")), pooling=pooling).eval()
        fill(classifier, {**encoder.state_dict(prefix="encoder."), **head}, folder)
        encoder.precompute()
        return classifier

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors` (the biLM) and `head.safetensors` (all else)."""
        self.encoder.config.save(folder)
        save_file(self.encoder.state_dict(), folder / WEIGHTS)
        head = {name: value for name, value in self.state_dict().items() if not name.startswith("encoder.")}
        save_file(head, folder / HEAD)

    def freeze_encoder(self) -> None:
        """Train the mix and the head alone, on the biLM as it answers in inference: ELMo as features."""
        self.encoder.requires_grad_(False)
        self.encoder.eval()
        self.encoder.precompute()

    def forward(self, word_ids: Tensor, char_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, n_labels)."""
        mixed = self.mix(self.encoder(word_ids, char_ids, attention_mask).layers())
        real = attention_mask.unsqueeze(-1)
        if self.pooling is ElmoPooling.MEAN:
            pooled = (mixed * real).sum(1) / real.sum(1).clamp(min=1)
        else:
            pooled = mixed.masked_fill(real == 0, -torch.inf).amax(1)
        logits: Tensor = self.head(self.dropout(pooled))
        return logits
