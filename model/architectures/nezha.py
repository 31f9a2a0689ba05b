"""NEZHA (Wei 2019): BERT whose attention knows how far apart two tokens are, instead of where each one stands.

input_ids, attention_mask, token_type_ids: (batch, length)
  → token and segment embeddings, no position embeddings: (batch, length, hidden_size)
  → layers, whose attention adds a vector of the distance to every key and to every value: the same shape

The vectors are functional: sines and cosines of the distance, as Vaswani (2017) has them of the position, and nothing
of them is learned. Distances beyond `max_relative_position` share one vector, so no text is too long. All else is
BERT's, and so are the names of the weights: published checkpoints load.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import BertConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import BaseModelOutputWithPooling
from transformers.models.bert.modeling_bert import (
    BertForPreTrainingOutput,
    BertIntermediate,
    BertLMPredictionHead,
    BertOutput,
    BertPooler,
    BertPreTrainingHeads,
    BertSelfOutput,
)


class NezhaConfig(BertConfig):
    """BERT's settings and the largest distance that has a vector of its own.

    max_position_embeddings: what published checkpoints name; there is no table of positions.
    """

    model_type = "nezha"

    vocab_size: int = 21128
    max_relative_position: int = 64


def sinusoids(n: int, width: int, *, device: torch.device | None = None) -> Tensor:
    """Sine and cosine by turns, of n numbers in frequencies that fall from 1 to nearly 1/10,000: (n, width)."""
    frequencies = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000) / width))
    angles = torch.arange(n, device=device).unsqueeze(1) * frequencies
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width]


def relative_positions(length: int, width: int, *, furthest: int, device: torch.device | None = None) -> Tensor:
    """Of every two positions i and j the vector a_ij of their distance j - i: (length, length, width)."""
    position = torch.arange(length, device=device)
    distance = (position[None, :] - position[:, None]).clamp(-furthest, furthest)
    return sinusoids(2 * furthest + 1, width, device=device)[distance + furthest]


class NezhaEmbeddings(nn.Module):
    """Token and segment embeddings, summed and normalised."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor | None) -> Tensor:
        """(batch, length) → (batch, length, hidden_size); without token types all are 0."""
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        embedded = self.word_embeddings(input_ids) + self.token_type_embeddings(types)
        normalised: Tensor = self.dropout(self.LayerNorm(embedded))
        return normalised


class NezhaSelfAttention(nn.Module):
    """Attention with functional relative positions (equations 3 to 5): a_ij joins every key and every value."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.n_heads = config.num_attention_heads
        self.query = nn.Linear(config.hidden_size, config.hidden_size)
        self.key = nn.Linear(config.hidden_size, config.hidden_size)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, hidden: Tensor, bias: Tensor | None, relations: Tensor) -> Tensor:
        """hidden (batch, length, hidden_size) to the same.

        bias: (batch, 1, 1, length), 0 for what is seen, hugely negative for padding. relations: a_ij,
        (length, length, head_size), the same in every head and layer.
        """
        query, key, value = (self.heads(project(hidden)) for project in (self.query, self.key, self.value))
        relations = relations.to(query.dtype)
        scores = self.scores(query, key, relations)
        weights = self.dropout((scores if bias is None else scores + bias).softmax(-1))
        # Σ_j weight_ij (v_j + a_ij)
        mixed = weights @ value + torch.einsum("bhij,ijd->bhid", weights.to(query.dtype), relations)
        joined: Tensor = mixed.transpose(1, 2).flatten(2)
        return joined

    @staticmethod
    def scores(query: Tensor, key: Tensor, relations: Tensor) -> Tensor:
        """q_i · (k_j + a_ij) / √head_size, before padding is hidden: (batch, heads, length, length)."""
        scores = query @ key.transpose(-1, -2) + torch.einsum("bhid,ijd->bhij", query, relations)
        return scores / math.sqrt(query.shape[-1])

    def heads(self, projected: Tensor) -> Tensor:
        """(batch, length, hidden_size) → (batch, heads, length, head_size)."""
        split: Tensor = projected.unflatten(-1, (self.n_heads, -1))
        return split.transpose(1, 2)


class NezhaAttention(nn.Module):
    """Attention, its output projection, and the sum with what went in, normalised."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.self = NezhaSelfAttention(config)
        self.output = BertSelfOutput(config)

    def forward(self, hidden: Tensor, bias: Tensor | None, relations: Tensor) -> Tensor:
        """hidden (batch, length, hidden_size) to the same."""
        attended: Tensor = self.output(self.self(hidden, bias, relations), hidden)
        return attended


class NezhaLayer(GradientCheckpointingLayer):
    """One Transformer layer: attention, then the feed-forward network."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.attention = NezhaAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config)

    def forward(self, hidden: Tensor, bias: Tensor | None, relations: Tensor) -> Tensor:
        """hidden (batch, length, hidden_size) to the same."""
        attended = self.attention(hidden, bias, relations)
        output: Tensor = self.output(self.intermediate(attended), attended)
        return output


class NezhaEncoder(nn.Module):
    """The layers, and the relative positions that all of them read."""

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__()
        self.head_size = config.hidden_size // config.num_attention_heads
        self.furthest = config.max_relative_position
        self.layer = nn.ModuleList([NezhaLayer(config) for _ in range(config.num_hidden_layers)])

    def forward(self, hidden: Tensor, attention_mask: Tensor | None) -> list[Tensor]:
        """hidden (batch, length, hidden_size) → the hidden states, first these, then every layer's."""
        relations = relative_positions(hidden.shape[1], self.head_size, furthest=self.furthest, device=hidden.device)
        bias = None
        if attention_mask is not None:
            hides = attention_mask[:, None, None, :] == 0
            bias = torch.zeros(hides.shape, dtype=hidden.dtype, device=hidden.device)
            bias = bias.masked_fill(hides, torch.finfo(hidden.dtype).min)
        states = [hidden]
        for layer in self.layer:
            states.append(layer(states[-1], bias, relations))
        return states


class NezhaPreTrainedModel(PreTrainedModel):
    """What NEZHA's models have in common: how they start, are saved and loaded."""

    config_class = NezhaConfig
    base_model_prefix = "nezha"
    supports_gradient_checkpointing = True
    _input_embed_layer = "word_embeddings"

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[no-untyped-call]
        if isinstance(module, BertLMPredictionHead):
            init.zeros_(module.bias)


class NezhaModel(NezhaPreTrainedModel):
    """The encoder, called as transformers' BertModel is, and answering as it does."""

    def __init__(self, config: NezhaConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = NezhaEmbeddings(config)
        self.encoder = NezhaEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutputWithPooling:
        """Inputs (batch, length) → last_hidden_state (batch, length, hidden_size), pooler_output, hidden_states."""
        states = self.encoder(self.embeddings(input_ids, token_type_ids), attention_mask)
        return BaseModelOutputWithPooling(
            last_hidden_state=states[-1],
            pooler_output=None if self.pooler is None else self.pooler(states[-1]),
            hidden_states=tuple(states) if output_hidden_states else None,
        )


class NezhaForPreTraining(NezhaPreTrainedModel):
    """NEZHA under BERT's two heads: masked language model, tied to the embeddings, and next-sentence prediction."""

    _tied_weights_keys: dict[str, str] = {  # noqa: RUF012  transformers reads it off the class
        "cls.predictions.decoder.weight": "nezha.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    }

    def __init__(self, config: NezhaConfig) -> None:
        super().__init__(config)
        self.nezha = NezhaModel(config)
        self.cls = BertPreTrainingHeads(config)
        self.post_init()  # type: ignore[no-untyped-call]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        next_sentence_label: Tensor | None = None,
        **options: Any,
    ) -> BertForPreTrainingOutput:
        """prediction_logits (batch, length, vocab_size), seq_relationship_logits (batch, 2), and both losses' sum.

        labels: (batch, length), -100 where nothing is to be guessed. next_sentence_label: (batch,), 0 if it is next.
        """
        output = self.nezha(input_ids, attention_mask, token_type_ids, **options)
        predictions, relationship = self.cls(output.last_hidden_state, output.pooler_output)
        loss = None
        if labels is not None and next_sentence_label is not None:
            masked_lm = functional.cross_entropy(predictions.flatten(0, 1), labels.flatten())
            loss = masked_lm + functional.cross_entropy(relationship, next_sentence_label)
        return BertForPreTrainingOutput(
            loss=loss,
            prediction_logits=predictions,
            seq_relationship_logits=relationship,
            hidden_states=output.hidden_states,
        )
