"""Memory-compressed attention (T-DMCA, Liu 2018, 4.2.3 to 4.2.5): GPT's attention for texts of thousands of tokens.

Layers take turns, local first: L M L M L.

- Local (L): the text is cut into blocks of `block_length` tokens, and every block attends to itself alone. The cost
  grows with the text's length times a block's.
- Memory-compressed (M): a convolution of `compression` tokens and as large a stride shortens keys and values; queries
  stay as many as they were. The cost is full attention's divided by `compression`, and every block sees all before it.

What differs from full attention: a token sees what is outside its block only in M layers, there as mixtures of
`compression` tokens, and the newest tokens of all not before the last of their mixture has been read. So that every
token has something to attend to, the first token's own key and value stay beside the compressed ones. Layer norms,
feed-forward, positions and the other weights' names and shapes are the decoder's: full attention's weights fit, the
convolutions start as the mean of what they cover. No token ever sees a later one.

`config.json` chooses it: "attention": "memory-compressed", "block_length": 256, "compression": 3.
"""

from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GPT2Config, GPT2Model, OpenAIGPTConfig, OpenAIGPTModel, PreTrainedConfig
from transformers import initialization as init

from model.errors import BadInput

FULL = "full"
MEMORY_COMPRESSED = "memory-compressed"


@dataclass(frozen=True, slots=True)
class MemoryCompression:
    """block_length: tokens a local layer looks at together. compression: tokens that become one key and one value."""

    block_length: int = 256
    compression: int = 3

    def __post_init__(self) -> None:
        if self.block_length < 1 or self.compression < 1:
            raise BadInput(
                f"config.json: block_length {self.block_length} and compression {self.compression} must be at least 1"
            )


def memory_compression(config: PreTrainedConfig) -> MemoryCompression | None:
    """How the decoder of `config` compresses its memory; None where its attention is full.

    Raises:
        BadInput: the attention it names is unknown.
    """
    attention = getattr(config, "attention", FULL)
    if attention not in (FULL, MEMORY_COMPRESSED):
        raise BadInput(f'config.json: "attention" is {attention!r}; it is {FULL!r} or {MEMORY_COMPRESSED!r}')
    if attention == FULL:
        return None
    default = MemoryCompression()
    return MemoryCompression(
        block_length=getattr(config, "block_length", default.block_length),
        compression=getattr(config, "compression", default.compression),
    )


class _Attention(nn.Module):
    """Query, key, value and output as in the attention it replaces, whose layers it takes over."""

    def __init__(self, full: nn.Module, *, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.c_attn = cast(nn.Module, full.c_attn)
        self.c_proj = cast(nn.Module, full.c_proj)
        self.resid_dropout = cast(nn.Module, full.resid_dropout)
        self.n_heads = n_heads
        self.dropout = dropout
        self.scale: float | None = getattr(full, "scaling", None)  # GPT-2's may differ from 1/√head_size, the default

    def forward(self, hidden: Tensor, *_: Any, **__: Any) -> list[Tensor | None]:
        """hidden (batch, length, hidden_size) to the same, and no weights; masks are not needed, see `gpt`."""
        mixed = self.mix(self.c_attn(hidden))
        return [self.resid_dropout(self.c_proj(mixed.contiguous())), None]

    def mix(self, joined: Tensor) -> Tensor:
        """Query, key and value side by side (batch, length, 3 * hidden_size) → (batch, length, hidden_size)."""
        raise NotImplementedError

    def attend(self, query: Tensor, key: Tensor, value: Tensor, *, visible: Tensor | None = None) -> Tensor:
        """Multi-head attention: query (batch, length, hidden_size), key and value (batch, n_keys, hidden_size).

        `visible`: (length, n_keys), which keys a query sees; without it, those up to its own position.
        """
        query, key, value = (part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in (query, key, value))
        mixed = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=visible,
            is_causal=visible is None,
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.scale,
        )
        return mixed.transpose(1, 2).flatten(2)


class LocalAttention(_Attention):
    """Causal attention inside blocks (4.2.4): the blocks become rows of the batch."""

    def __init__(self, full: nn.Module, *, n_heads: int, dropout: float, block_length: int) -> None:
        super().__init__(full, n_heads=n_heads, dropout=dropout)
        self.block_length = block_length

    def mix(self, joined: Tensor) -> Tensor:
        batch, length, width = joined.shape
        block = min(self.block_length, length)
        joined = functional.pad(joined, (0, 0, 0, -length % block))  # behind the text, where no token looks
        mixed = self.attend(*joined.reshape(-1, block, width).chunk(3, dim=-1))
        return mixed.reshape(batch, -1, width // 3)[:, :length]


class Compression(nn.Conv1d):
    """A convolution whose stride is its width: `compression` keys or values become one."""

    def __init__(self, hidden_size: int, compression: int) -> None:
        super().__init__(hidden_size, hidden_size, compression, stride=compression)
        self.compression = compression

    def forward(self, memory: Tensor) -> Tensor:
        """(batch, length, hidden_size) → (batch, 1 + ⌈length / compression⌉, hidden_size): the first, the compressed.

        The last mixture may be of fewer tokens than `compression`; no token sees it.
        """
        whole = functional.pad(memory, (0, 0, 0, -memory.shape[1] % self.compression))
        # Windows that don't overlap: the convolution is a linear map of each, and so takes half the time on a CPU.
        windows = whole.unflatten(1, (-1, self.compression)).flatten(2)
        compressed = functional.linear(windows, self.weight.transpose(1, 2).flatten(1), self.bias)
        return torch.cat([memory[:, :1], compressed], dim=1)


class CompressedAttention(_Attention):
    """Causal attention to keys and values that a strided convolution has shortened (4.2.4)."""

    def __init__(self, full: nn.Module, *, n_heads: int, dropout: float, hidden_size: int, compression: int) -> None:
        super().__init__(full, n_heads=n_heads, dropout=dropout)
        self.compression = compression
        self.compress_key = Compression(hidden_size, compression)
        self.compress_value = Compression(hidden_size, compression)

    def mix(self, joined: Tensor) -> Tensor:
        query, key, value = joined.chunk(3, dim=-1)
        key, value = self.compress_key(key), self.compress_value(value)
        visible = visible_memory(query.shape[1], key.shape[1] - 1, self.compression, device=query.device)
        return self.attend(query, key, value, visible=visible)


def visible_memory(length: int, n_compressed: int, compression: int, *, device: torch.device) -> Tensor:
    """Which token sees which key, (length, 1 + n_compressed): the first always, mixtures from their last token on."""
    position = torch.arange(length, device=device).unsqueeze(1)
    last_covered = torch.arange(n_compressed + 1, device=device) * compression - 1  # -1: the first token's own key
    return position >= last_covered


class _MemoryCompressed:
    """Beside a decoder of transformers: puts L and M attention in its layers' places, and starts the convolutions."""

    def __init__(self, config: GPT2Config | OpenAIGPTConfig) -> None:
        super().__init__(config)  # type: ignore[call-arg]
        settings = memory_compression(config) or MemoryCompression()
        n_heads, dropout = config.num_attention_heads, config.attn_pdrop
        for number, layer in enumerate(self.h):  # type: ignore[attr-defined]
            layer.attn = (
                CompressedAttention(
                    layer.attn,
                    n_heads=n_heads,
                    dropout=dropout,
                    hidden_size=config.hidden_size,
                    compression=settings.compression,
                )
                if number % 2
                else LocalAttention(layer.attn, n_heads=n_heads, dropout=dropout, block_length=settings.block_length)
            )
        self.init_weights()  # type: ignore[attr-defined]  # of what is new

    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)  # type: ignore[misc]
        if isinstance(module, Compression):
            mean = torch.eye(module.in_channels) / module.compression
            init.copy_(module.weight, mean.unsqueeze(-1).expand_as(module.weight))
            init.zeros_(cast(Tensor, module.bias))

    def is_custom_code(self) -> bool:
        return False  # what transformers asks of code that draws weights without transformers.initialization


class MemoryCompressedGpt(_MemoryCompressed, OpenAIGPTModel):
    """The paper's decoder, layer norms after attention and feed-forward."""


class MemoryCompressedGpt2(_MemoryCompressed, GPT2Model):
    """GPT-2's decoder, layer norms before attention and feed-forward."""

    def __init__(self, config: GPT2Config) -> None:
        super().__init__(config)
        self.set_attn_implementation("sdpa")  # the one that makes no mask of length x length
