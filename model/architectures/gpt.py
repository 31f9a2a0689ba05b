"""GPT (Radford 2018): a Transformer decoder that learns to say the next token, then classifies by its last state.

input_ids, attention_mask: (batch, length), texts padded on the right
  → hidden states, each made of its own token and those before it: (batch, length, hidden_size)
  → next token: (batch, length, vocabulary), where one is asked for
  → state of the extract token, the last of a text: (batch, hidden_size) → logits: (batch, n_labels)

The decoder is transformers' own: OpenAIGPTModel (layer norms after attention and feed-forward, as in the paper) or
GPT2Model (before); `config.json` says which by its model_type, and whether attention is memory-compressed (`tdmca`).
Its causal mask is all it needs: padding stands behind every real token, so no real token ever sees it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedConfig, PreTrainedModel

from model.architectures.foreign_weights import FAMILIES, load_encoder, new_encoder, read_settings
from model.architectures.on_encoder import LinearHead
from model.errors import BadInput

MODEL_TYPES = ("openai-gpt", "gpt2")


def build_decoder(config: PreTrainedConfig) -> PreTrainedModel:
    """The decoder of `config`, with random weights.

    Raises:
        BadInput: it is of no GPT, or names an unknown attention.
    """
    check_model_type(config.model_type, where="config.json")
    return FAMILIES[config.model_type].encoder(config)


def load_decoder(folder: Path, **changes: Any) -> PreTrainedModel:
    """The decoder of a start, of ours or of another maker, without heads; `changes` of its config.

    Full attention's weights may start a memory-compressed decoder, whose convolutions are then new.

    Raises:
        BadInput: it is no GPT, or its weights don't fit, see `load_encoder`.
    """
    check_model_type(read_settings(folder)["model_type"], where=f"{folder}/config.json")
    return load_encoder(folder, **changes)


def check_model_type(found: str, *, where: str) -> None:
    """Refuse what is no GPT.

    Raises:
        BadInput: `found` is another model type.
    """
    if found not in MODEL_TYPES:
        raise BadInput(f"{where}: model_type is {found!r}; a GPT is {' or '.join(MODEL_TYPES)}")


def start_decoder(
    folder: Path, *, vocabulary_size: int, dropout: float, from_scratch: bool = False, **changes: Any
) -> PreTrainedModel:
    """A pretrained decoder to fine-tune; `dropout` of hidden states, none of attention.

    `vocabulary_size`: of the tokenizer with start, delimiter and extract tokens; what the decoder has no embeddings
    for gets random ones, as in the paper. `changes` of its config: "attention" may become memory-compressed.
    `from_scratch`: all weights are random, to see what pretraining is worth.
    """
    make = new_encoder if from_scratch else load_decoder
    decoder = make(folder, resid_pdrop=dropout, embd_pdrop=dropout, attn_pdrop=0.0, **changes)
    if vocabulary_size > decoder.config.vocab_size:
        decoder.resize_token_embeddings(vocabulary_size, mean_resizing=False)
    return decoder


def hidden_states(decoder: PreTrainedModel, input_ids: Tensor) -> Tensor:
    """Last hidden states (batch, length, hidden_size) of `input_ids` (batch, length).

    Raises:
        BadInput: they are longer than the decoder's table of positions.
    """
    length, positions = input_ids.shape[1], decoder.config.max_position_embeddings
    if length > positions:
        raise BadInput(f"a text of {length} tokens, but the decoder has {positions} positions; cut texts to that many")
    # as embeddings: with ids and no mask transformers would warn of padding, which here does no harm
    states: Tensor = decoder(inputs_embeds=decoder.get_input_embeddings()(input_ids)).last_hidden_state
    return states


@dataclass(frozen=True, slots=True)
class NextTokens:
    """Negative log-likelihood of next tokens, summed, in nats, and how many they were. Both are scalars."""

    total: Tensor
    count: Tensor

    @property
    def mean(self) -> Tensor:
        """Nats a token; 0 where there was none to predict."""
        return self.total / self.count.clamp(min=1)


def next_tokens(decoder: PreTrainedModel, states: Tensor, input_ids: Tensor, attention_mask: Tensor) -> NextTokens:
    """L1 of the paper (eq. 1): how well `states` (batch, length, hidden_size) foretell the tokens after them.

    Output embeddings are the input embeddings. Only states before a real token are compared with the vocabulary.
    """
    followed = attention_mask[:, 1:].bool()
    embeddings = cast(nn.Embedding, decoder.get_input_embeddings()).weight
    logits = functional.linear(states[:, :-1][followed], embeddings)
    total = functional.cross_entropy(logits.float(), input_ids[:, 1:][followed], reduction="sum")
    return NextTokens(total, followed.sum())


class GptLanguageModel(nn.Module):
    """The decoder under its own embeddings: what pretraining trains."""

    def __init__(self, decoder: PreTrainedModel) -> None:
        super().__init__()
        self.decoder = decoder

    @classmethod
    def load(cls, folder: Path, **changes: Any) -> Self:
        """A start, a pretraining's or another maker's; `changes` of its config."""
        return cls(load_decoder(folder, **changes))

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`; with full attention transformers' AutoModel loads them too."""
        self.decoder.save_pretrained(folder)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> NextTokens:
        """Of a batch (batch, length): every token but the first of each text is foretold."""
        return next_tokens(self.decoder, hidden_states(self.decoder, input_ids), input_ids, attention_mask)


@dataclass(frozen=True, slots=True)
class Joint:
    """What fine-tuning minimises, L2 + λ·L1 (eq. 5): logits for L2, and L1 as the mean over the real tokens."""

    logits: Tensor
    language_model_loss: Tensor


class _Head(LinearHead):
    """A linear layer on the extract token's state."""

    def extract(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """The last real position's state: (batch, length, hidden_size) → (batch, hidden_size)."""
        last = attention_mask.sum(1) - 1
        return states[torch.arange(len(states), device=states.device), last]


class GptClassifier(_Head):
    """Labels of a text, of an ordered pair, or of two texts in both orders (similarity)."""

    @classmethod
    def start(cls, folder: Path, *, n_labels: int, vocabulary_size: int, dropout: float = 0.1, **changes: Any) -> Self:
        """A pretrained decoder from `folder` under a new head, see `start_decoder`."""
        decoder = start_decoder(folder, vocabulary_size=vocabulary_size, dropout=dropout, **changes)
        return cls(decoder, n_outputs=n_labels, dropout=dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor, swapped_ids: Tensor | None = None) -> Tensor:
        """Logits (batch, n_labels). `swapped_ids` (batch, length): the texts of each pair in the other order."""
        ids, mask = _orders(input_ids, attention_mask, swapped_ids)
        return self.classify(hidden_states(self.encoder, ids), mask, n_texts=len(input_ids))

    def joint(self, input_ids: Tensor, attention_mask: Tensor, swapped_ids: Tensor | None = None) -> Joint:
        """`forward` and the language model's loss, of one pass through the decoder."""
        ids, mask = _orders(input_ids, attention_mask, swapped_ids)
        states = hidden_states(self.encoder, ids)
        logits = self.classify(states, mask, n_texts=len(input_ids))
        return Joint(logits, next_tokens(self.encoder, states, ids, mask).mean)

    def classify(self, states: Tensor, attention_mask: Tensor, *, n_texts: int) -> Tensor:
        """Logits (n_texts, n_labels); the extract states of both orders are added, as figure 1 has it."""
        extracted = self.extract(states, attention_mask).unflatten(0, (-1, n_texts)).sum(0)
        return self.score(extracted)


class GptMultipleChoice(_Head):
    """One answer of several: each stands with the context in a sequence of its own and gets a score.

    input_ids, attention_mask: (batch, n_choices, length) → logits: (batch, n_choices), for a softmax over choices.
    """

    @classmethod
    def start(cls, folder: Path, *, vocabulary_size: int, dropout: float = 0.1, **changes: Any) -> Self:
        """As `GptClassifier.start`; the number of choices may differ from batch to batch."""
        decoder = start_decoder(folder, vocabulary_size=vocabulary_size, dropout=dropout, **changes)
        return cls(decoder, n_outputs=1, dropout=dropout)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, n_choices)."""
        states = hidden_states(self.encoder, input_ids.flatten(0, 1))
        return self.compare(states, attention_mask)

    def joint(self, input_ids: Tensor, attention_mask: Tensor) -> Joint:
        """`forward` and the language model's loss, of one pass through the decoder."""
        ids, mask = input_ids.flatten(0, 1), attention_mask.flatten(0, 1)
        states = hidden_states(self.encoder, ids)
        return Joint(self.compare(states, attention_mask), next_tokens(self.encoder, states, ids, mask).mean)

    def compare(self, states: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (batch, n_choices) from states (batch * n_choices, length, hidden_size)."""
        extracted = self.extract(states, attention_mask.flatten(0, 1))
        return self.score(extracted).view(attention_mask.shape[:2])


def _orders(input_ids: Tensor, attention_mask: Tensor, swapped_ids: Tensor | None) -> tuple[Tensor, Tensor]:
    # one batch of both orders, so that the decoder runs once
    if swapped_ids is None:
        return input_ids, attention_mask
    return torch.cat([input_ids, swapped_ids]), torch.cat([attention_mask, attention_mask])
