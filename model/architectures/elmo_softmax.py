"""The softmax over words of ELMo's language model: by a character CNN (Jozefowicz 2016) or plain, full or sampled.

p(word | h) ∝ exp(h · e(word) + b(word)), and the two differ in e alone:
  plain  a vector of its own for every word
  CNN    e(word) = CNN(characters of the word) + M · c(word), where M lifts a short correction c: words that are spelled
         alike need not mean the same
"""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.character_cnn import CharacterCnn

ROWS_AT_ONCE = 1024  # of the full softmax: logits of this many predictions are held together
WORDS_AT_ONCE = 4096  # through the CNN, when all words' vectors are made


class WordSoftmax(nn.Module, ABC):
    """Negative log-likelihoods of words. Word numbers go by frequency: the most frequent come first.

    In `eval()` without gradients the vectors of all words are made once and kept until the next `train()` or `eval()`.
    """

    def __init__(self, *, vocabulary_size: int) -> None:
        super().__init__()
        self.vocabulary_size = vocabulary_size
        # Zipf's law as the first guess of how frequent words are.
        self.bias = nn.Parameter(-torch.arange(1, vocabulary_size + 1).log())
        self._kept: Tensor | None = None

    @abstractmethod
    def vectors(self, words: Tensor) -> Tensor:
        """e(word): (n,) → (n, size)."""

    def all_vectors(self) -> Tensor:
        """e of the whole vocabulary: (vocabulary_size, size)."""
        if self._kept is not None and not torch.is_grad_enabled():
            return self._kept
        words = torch.arange(self.vocabulary_size, device=self.bias.device)
        table = torch.cat([self.vectors(some) for some in words.split(WORDS_AT_ONCE)])
        if not self.training and not torch.is_grad_enabled():
            self._kept = table
        return table

    def train(self, mode: bool = True) -> "WordSoftmax":
        """As in torch; forgets the vectors that were kept."""
        self._kept = None
        return super().train(mode)

    def full(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """-log p(target | hidden) over the whole vocabulary: (n, size), (n,) → (n,) float32 nats."""
        table = self.all_vectors()
        parts = [
            functional.cross_entropy(functional.linear(some, table).float() + self.bias, gold, reduction="none")
            for some, gold in zip(hidden.split(ROWS_AT_ONCE), targets.split(ROWS_AT_ONCE), strict=True)
        ]
        return torch.cat(parts)

    def sampled(self, hidden: Tensor, targets: Tensor, *, n_draws: int) -> Tensor:
        """An estimate of `full` from the target and a sample of other words: importance sampling (Bengio 2003).

        Words are drawn `n_draws` times with replacement; those that came up are the negatives of all rows. One
        that had the probability π to come up stands for 1/π words, so that the estimated sum over all words is right on
        average; a row's own target is taken out of its negatives and counts once. With every π = 1 this is `full`.
        """
        negatives = draw_words(self.vocabulary_size, n_draws, device=targets.device).unique()
        words, places = torch.cat([negatives, targets]).unique(return_inverse=True)
        vectors, bias = self.vectors(words), self.bias[words]
        of_negatives, of_targets = places[: len(negatives)], places[len(negatives) :]
        own = (hidden.float() * functional.embedding(of_targets, vectors).float()).sum(1) + bias[of_targets]
        others = functional.linear(hidden, vectors[of_negatives]).float() + bias[of_negatives]
        others = others - log_inclusion(negatives, self.vocabulary_size, n_draws)
        others = others.masked_fill(negatives == targets.unsqueeze(1), -torch.inf)
        logits = torch.cat([own.unsqueeze(1), others], 1)
        return functional.cross_entropy(logits, torch.zeros_like(targets), reduction="none")


class Softmax(WordSoftmax):
    """The plain one: vocabulary_size x size weights."""

    def __init__(self, *, vocabulary_size: int, size: int) -> None:
        super().__init__(vocabulary_size=vocabulary_size)
        self.embedding = nn.Embedding(vocabulary_size, size)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)

    def vectors(self, words: Tensor) -> Tensor:
        """The words' own vectors."""
        rows: Tensor = self.embedding(words)
        return rows


class CnnSoftmax(WordSoftmax):
    """characters: (vocabulary_size, word_length), how every word is spelled; `cnn` is no other layer's."""

    def __init__(self, cnn: CharacterCnn, *, characters: Tensor, size: int, correction_size: int) -> None:
        super().__init__(vocabulary_size=len(characters))
        self.cnn = cnn
        self.characters: Tensor
        self.register_buffer("characters", characters, persistent=False)
        self.correction = nn.Embedding(len(characters), correction_size)
        self.correction_projection = nn.Linear(correction_size, size, bias=False)
        nn.init.normal_(self.correction.weight, std=correction_size**-0.5)

    def vectors(self, words: Tensor) -> Tensor:
        """CNN(characters) + M · correction."""
        spelled: Tensor = self.cnn(self.characters[words])
        corrected: Tensor = spelled + self.correction_projection(self.correction(words))
        return corrected


def draw_words(vocabulary_size: int, n_draws: int, *, device: torch.device) -> Tensor:
    """Word numbers from the log-uniform law, near to how words are distributed: (n_draws,).

    P(k) = log((k + 2) / (k + 1)) / log(vocabulary_size + 1); by torch's generator.
    """
    drawn = torch.rand(n_draws, dtype=torch.float64).mul(math.log(vocabulary_size + 1)).exp().long() - 1
    return drawn.clamp(max=vocabulary_size - 1).to(device)


def log_inclusion(words: Tensor, vocabulary_size: int, n_draws: int) -> Tensor:
    """log of the probability that a word comes up in `n_draws` draws: (n,) → (n,) float32."""
    numbers = words.double()
    probability = ((numbers + 2) / (numbers + 1)).log() / math.log(vocabulary_size + 1)
    return (-torch.expm1(n_draws * torch.log1p(-probability))).log().float()
