"""A word's vector from its characters (Kim 2016): ELMo reads words with one, and its CNN softmax predicts with another.

characters: (n_words, word_length)
  → embedded: (n_words, word_length, character_size)
  → convolutions of several widths, each max-pooled over the word: (n_words, n_filters)
  → highway layers (Srivastava 2015): the same
  → projection: (n_words, output_size)
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

PADDING = 0
SHORT = 6  # characters of a word, its two ends included, that is convolved with the short ones


class CharacterCnn(nn.Module):
    """filters: (width in characters, number) of every convolution. Character 0 is padding and changes nothing."""

    def __init__(
        self,
        *,
        n_characters: int,
        character_size: int,
        filters: Sequence[tuple[int, int]],
        n_highways: int,
        output_size: int,
    ) -> None:
        super().__init__()
        self.n_filters = sum(number for _, number in filters)
        self.widest = max(width for width, _ in filters)
        self.embedding = nn.Embedding(n_characters, character_size, padding_idx=PADDING)
        self.convolutions = nn.ModuleList(nn.Conv1d(character_size, number, width) for width, number in filters)
        self.highways = nn.ModuleList(Highway(self.n_filters) for _ in range(n_highways))
        self.projection = nn.Linear(self.n_filters, output_size)

    def forward(self, characters: Tensor) -> Tensor:
        """The vectors of words: (n_words, word_length) → (n_words, output_size) float32."""
        # Few words are long: they are convolved apart, or their length would be paid for by all.
        is_short = characters.count_nonzero(1) <= max(self.widest, SHORT)
        pooled = characters.new_empty(len(characters), self.n_filters, dtype=self.projection.weight.dtype)
        for some in (is_short, ~is_short):
            if some.any():
                pooled = pooled.index_put((some,), self._pool(characters[some]))
        for highway in self.highways:
            pooled = highway(pooled)
        vectors: Tensor = self.projection(pooled).float()
        return vectors

    def _pool(self, characters: Tensor) -> Tensor:
        """The largest answer of every filter in every word: (n_words, n_filters)."""
        longest = int(characters.count_nonzero(1).max())
        characters = characters[:, : max(longest, self.widest)]
        embedded = self.embedding(characters).transpose(1, 2)
        largest = []
        for convolve in self.convolutions:
            answers = functional.relu(convolve(embedded).float())
            beyond = characters[:, characters.shape[1] - answers.shape[2] :] == PADDING
            # A filter that is wider than the word sees it once, with padding behind.
            beyond[:, 0] = False
            largest.append(answers.masked_fill(beyond.unsqueeze(1), 0).amax(2))
        return torch.cat(largest, 1)


class Highway(nn.Module):
    """y = g · relu(W x) + (1 - g) · x, with the gate g = σ(V x)."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.transform = nn.Linear(size, size)
        self.gate = nn.Linear(size, size)
        nn.init.constant_(self.gate.bias, -2.0)  # carries the input at first, as Srivastava advises

    def forward(self, x: Tensor) -> Tensor:
        """(batch, size) → (batch, size)."""
        gate = self.gate(x).sigmoid()
        highway: Tensor = gate * functional.relu(self.transform(x)) + (1 - gate) * x
        return highway
