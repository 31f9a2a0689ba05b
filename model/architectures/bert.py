"""BERT (Devlin 2018) as a text classifier: a transformers encoder, a pooling and one linear layer.

input_ids, attention_mask: (batch, length)
  → hidden states of every layer: (batch, length, hidden_size)
  → pooled: (batch, hidden_size)
  → logits: (batch, n_labels)
"""

from enum import StrEnum
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import AutoModel, PreTrainedModel

from model.errors import BadInput
from model.types import preview


class Pooling(StrEnum):
    """How a text's hidden states become one vector."""

    CLS = "cls"
    MEAN = "mean"
    LAYERS = "layers"


class BertClassifier(nn.Module):
    """An encoder without its pooler, a pooling, dropout and a linear head."""

    def __init__(
        self, encoder: PreTrainedModel, *, n_labels: int, pooling: Pooling = Pooling.MEAN, dropout: float = 0.1
    ) -> None:
        super().__init__()
        config = encoder.config
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(config.hidden_size, n_labels)
        nn.init.normal_(self.head.weight, std=config.initializer_range)
        nn.init.zeros_(self.head.bias)
        if pooling is Pooling.LAYERS:
            self.layer_mix = nn.Parameter(torch.zeros(config.num_hidden_layers + 1))

    @classmethod
    def start(cls, folder: Path, *, n_labels: int, pooling: Pooling, dropout: float = 0.1) -> "BertClassifier":
        """A pretrained encoder from `folder` under a new head; `dropout` of hidden states, none of attention."""
        encoder = _load_encoder(folder, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)
        return cls(encoder, n_labels=n_labels, pooling=pooling, dropout=dropout)

    @classmethod
    def load(cls, folder: Path, *, pooling: Pooling) -> "BertClassifier":
        """A trained classifier, as `save` wrote it."""
        head = load_file(folder / "head.safetensors")
        encoder = _load_encoder(folder)
        classifier = cls(encoder, n_labels=len(head["head.bias"]), pooling=pooling)
        classifier.load_state_dict({**encoder.state_dict(prefix="encoder."), **head})
        return classifier.eval()

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors` (the encoder) and `head.safetensors` (all else)."""
        self.encoder.save_pretrained(folder)
        head = {name: value for name, value in self.state_dict().items() if not name.startswith("encoder.")}
        save_file(head, folder / "head.safetensors")

    def freeze_encoder(self) -> None:
        """Train the head and the mix of layers alone: BERT as features."""
        self.encoder.requires_grad_(False)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Logits (batch, n_labels)."""
        output = self.encoder(
            input_ids=input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            output_hidden_states=self.pooling is Pooling.LAYERS,
        )
        if self.pooling is Pooling.CLS:
            pooled = output.last_hidden_state[:, 0]
        elif self.pooling is Pooling.MEAN:
            pooled = masked_mean(output.last_hidden_state, attention_mask)
        else:
            weights = self.layer_mix.softmax(0)
            mixed = sum(weight * hidden for weight, hidden in zip(weights, output.hidden_states, strict=True))
            pooled = masked_mean(mixed, attention_mask)
        logits: Tensor = self.head(self.dropout(pooled))
        return logits


def masked_mean(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean over real positions: hidden (batch, length, width), mask (batch, length) → (batch, width)."""
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1).clamp(min=1)


def _load_encoder(folder: Path, **changes: float) -> PreTrainedModel:
    # Without its pooler: it would be there at random for weights that were trained with mean pooling.
    # On a CPU, PyTorch 2.13's fused attention trains slower in bf16 than the plain one; a step takes 1.35x as long.
    attention = "sdpa" if torch.cuda.is_available() else "eager"
    # Weights that were published in half precision are trained in float32 like all others.
    encoder: PreTrainedModel
    encoder, report = AutoModel.from_pretrained(
        folder,
        add_pooling_layer=False,
        attn_implementation=attention,
        dtype=torch.float32,
        output_loading_info=True,
        **changes,
    )
    if absent := sorted(report["missing_keys"]):
        raise BadInput(
            f"{folder}/model.safetensors lacks {preview(absent, 3)}; it is not a whole encoder, save it again"
        )
    return encoder
