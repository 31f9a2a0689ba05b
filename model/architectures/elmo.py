"""ELMo (Peters 2018): a bidirectional language model of words that reads their characters.

word_ids, attention_mask: (batch, length); char_ids: (batch, length, word_length); padded on the right
  → token layer, a character CNN: (batch, length, projection_size)
  → LSTM layers that have read up to a word, and others that have read back to it: n_layers times 2 such states
  → 2 · n_layers + 1 representations of every word, of which tasks make what they need (`elmo_classifier`)
  → in pretraining, by a softmax: the word after, and the word before

Nothing is kept between calls: every text is read from a zero state.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.character_cnn import CharacterCnn
from model.architectures.elmo_files import ElmoConfig, fill, read_whole, spelling
from model.architectures.elmo_softmax import CnnSoftmax, Softmax, WordSoftmax
from model.architectures.weight_files import WEIGHTS
from model.errors import BadInput

UNKNOWN_WORD = 1  # of the tokenizer; such a word is known by its characters alone
SOFTMAX = "softmax."  # names of the weights that only the language model has
WORDS_AT_ONCE = 4096  # through the CNN, when the table is made


class ProjectedLstm(nn.Module):
    """An LSTM whose state is a projection of its output (Sak 2014), from a zero state.

    i, f, g, o = W x_t + R h_{t-1} + b;  c_t = σ(f) c_{t-1} + σ(i) tanh(g);  h_t = P (σ(o) tanh(c_t))
    """

    def __init__(self, *, size: int, cell_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(size, cell_size, proj_size=size, batch_first=True)
        # Remember at first (Jozefowicz 2015).
        nn.init.constant_(self.lstm.get_parameter("bias_hh_l0")[cell_size : 2 * cell_size], 1.0)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, size) → the same, float32."""
        if x.is_cuda:
            # Under autocast cuDNN would compute in float16, also where bf16 was asked for and no loss is scaled.
            with torch.autocast("cuda", enabled=False):
                states: Tensor = self.lstm(x.float())[0]
            return states
        # On a CPU PyTorch has no kernel for projections. Its fallback takes as long as these lines in float32, warns,
        # and under autocast takes thirty times as long: it would cast the weights at every word.
        weight, recurrent, bias, second_bias, projection = self.lstm.all_weights[0]
        inputs = functional.linear(x, weight, bias + second_bias).float()
        state, cell = x.new_zeros(len(x), self.lstm.proj_size), x.new_zeros(len(x), self.lstm.hidden_size)
        outputs = []
        with torch.autocast("cpu", enabled=False):
            for gates in inputs.unbind(1):
                i, f, g, o = torch.addmm(gates, state, recurrent.t()).chunk(4, 1)
                cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
                state = (o.sigmoid() * cell.tanh()) @ projection.t()
                outputs.append(state)
        return torch.stack(outputs, 1)


@dataclass(frozen=True, slots=True)
class Representations:
    """The 2L + 1 vectors of every word, each (batch, length, projection_size): the token layer's, and of every layer
    one that has read the words up to it, and one that has read the words from the end back to it."""

    token: Tensor
    forward: tuple[Tensor, ...]
    backward: tuple[Tensor, ...]

    def layers(self) -> list[Tensor]:
        """h_0 … h_L of the paper, h_j = [forward; backward]: L + 1 of (batch, length, 2 · projection_size)."""
        directions = ((self.token, *self.forward), (self.token, *self.backward))
        return [torch.cat(pair, -1) for pair in zip(*directions, strict=True)]


class ElmoEncoder(nn.Module):
    """The biLM without its softmax. characters: (vocabulary_size, word_length), how every word is spelled.

    Forward and backward layers are separate; they share what reads a word, the character CNN.
    """

    def __init__(self, config: ElmoConfig, characters: Tensor) -> None:
        super().__init__()
        found = (*characters.shape, int(characters.max()) + 1)
        wanted = (config.vocabulary_size, config.word_length, config.n_characters)
        if found[:-1] != wanted[:-1] or found[-1] > wanted[-1]:
            raise BadInput(
                "the words that the model knows are {} of {} characters out of {}, those of its configuration {} of {} "
                "out of {}; make both of one tokenizer".format(*found, *wanted)
            )
        self.config = config
        self.character_cnn = character_cnn(config)
        sizes = {"size": config.projection_size, "cell_size": config.cell_size}
        self.forward_layers = nn.ModuleList(ProjectedLstm(**sizes) for _ in range(config.n_layers))
        self.backward_layers = nn.ModuleList(ProjectedLstm(**sizes) for _ in range(config.n_layers))
        self.dropout = nn.Dropout(config.dropout)
        self.word_characters: Tensor
        self.register_buffer("word_characters", characters.to(torch.int32))
        self.word_vectors: Tensor | None
        self.register_buffer("word_vectors", None, persistent=False)

    @classmethod
    def load(cls, folder: Path, *, filled: bool = True, **config_changes: Any) -> "ElmoEncoder":
        """The biLM of a start, without its softmax; not `filled`, it has the start's shape and words alone.

        Raises:
            BadInput: the folder is of another architecture, or its weights are not whole.
        """
        weights = {name: value for name, value in read_whole(folder).items() if not name.startswith(SOFTMAX)}
        encoder = cls(replace(ElmoConfig.load(folder), **config_changes), spelling(weights, folder))
        if filled:
            fill(encoder, weights, folder)
        return encoder

    def forward(self, word_ids: Tensor, char_ids: Tensor, attention_mask: Tensor) -> Representations:
        """All representations; at padding they mean nothing."""
        token = self.token_vectors(word_ids, char_ids)
        order = reversed_order(attention_mask).unsqueeze(-1).expand_as(token)
        backward = self._read(self.backward_layers, token.gather(1, order))
        return Representations(
            token=token,
            forward=tuple(self._read(self.forward_layers, token)),
            backward=tuple(states.gather(1, order) for states in backward),
        )

    def token_vectors(self, word_ids: Tensor, char_ids: Tensor) -> Tensor:
        """Every word from its characters, without context: (batch, length, projection_size).

        A word of the vocabulary goes through the CNN once a batch, or comes from the table; others are spelled anew.
        """
        if self.word_vectors is None:
            words, places = word_ids.unique(return_inverse=True)
            vectors = functional.embedding(places, self.character_cnn(self.word_characters[words]))
        else:
            vectors = functional.embedding(word_ids, self.word_vectors)
        unknown = word_ids == UNKNOWN_WORD
        if not unknown.any():
            return vectors
        return vectors.index_put((unknown,), self.character_cnn(char_ids[unknown]))

    @torch.no_grad()
    def table(self) -> Tensor:
        """The token vectors of the whole vocabulary: (vocabulary_size, projection_size)."""
        return torch.cat([self.character_cnn(some) for some in self.word_characters.split(WORDS_AT_ONCE)])

    def precompute(self) -> None:
        """Keep the table for inference."""
        self.word_vectors = self.table()

    def train(self, mode: bool = True) -> "ElmoEncoder":
        """As in torch; a frozen biLM stays in `eval()`, and one in training has no table: its weights change."""
        super().train(mode and any(weight.requires_grad for weight in self.parameters()))
        if self.training:
            self.word_vectors = None
        return self

    def _read(self, layers: nn.ModuleList, token: Tensor) -> list[Tensor]:
        """The states of one direction's layers; from the second on, a layer adds to what it reads (residual)."""
        states: list[Tensor] = []
        for layer in layers:
            below = states[-1] if states else token
            states.append(layer(self.dropout(below)) + (below if states else 0))
        return states


@dataclass(frozen=True, slots=True)
class BiLmLoss:
    """Sums of negative log-likelihoods in nats, a direction each. count: words that each direction has predicted."""

    forward: Tensor
    backward: Tensor
    count: int

    @property
    def total(self) -> Tensor:
        """What pretraining minimises: both directions together."""
        return self.forward + self.backward


class ElmoLanguageModel(nn.Module):
    """The biLM with its softmax, which both directions share."""

    def __init__(self, config: ElmoConfig, characters: Tensor) -> None:
        super().__init__()
        self.config = config
        self.encoder = ElmoEncoder(config, characters)
        self.dropout = nn.Dropout(config.dropout)
        self.softmax: WordSoftmax
        if config.softmax == "cnn":
            self.softmax = CnnSoftmax(
                character_cnn(config),
                characters=self.encoder.word_characters,
                size=config.projection_size,
                correction_size=config.correction_size,
            )
        else:
            self.softmax = Softmax(vocabulary_size=config.vocabulary_size, size=config.projection_size)

    @classmethod
    def load(cls, folder: Path, **config_changes: Any) -> "ElmoLanguageModel":
        """As `save` wrote it, to be trained on; a softmax that the folder lacks starts at random.

        Raises:
            BadInput: the folder is of another architecture, or its weights are not whole.
        """
        config = replace(ElmoConfig.load(folder), **config_changes)
        weights = read_whole(folder)
        model = cls(config, spelling(weights, folder))
        heads = {name.removeprefix(SOFTMAX): weights.pop(name) for name in list(weights) if name.startswith(SOFTMAX)}
        fill(model.encoder, weights, folder)
        if heads:
            fill(model.softmax, heads, folder)
        return model

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors`: the encoder's weights, and those of the softmax beside them."""
        self.config.save(folder)
        softmax = self.softmax.state_dict(prefix=SOFTMAX)
        save_file({**self.encoder.state_dict(), **softmax}, folder / WEIGHTS)

    def loss(self, word_ids: Tensor, char_ids: Tensor, attention_mask: Tensor) -> BiLmLoss:
        """Every word from those before it, and every word from those after it; padding predicts nothing.

        In training by the sampled softmax, in `eval()` by the full one. Every text has to stand between a begin and an
        end, which are predicted too.
        """
        states = self.encoder(word_ids, char_ids, attention_mask)
        real = attention_mask[:, 1:].bool()  # neighbours, both of them words
        hidden = torch.cat([states.forward[-1][:, :-1][real], states.backward[-1][:, 1:][real]])
        targets = torch.cat([word_ids[:, 1:][real], word_ids[:, :-1][real]])
        if self.training and (n_draws := self.config.sampled_words):
            losses = self.softmax.sampled(self.dropout(hidden), targets, n_draws=n_draws)
        else:
            losses = self.softmax.full(self.dropout(hidden), targets)
        forward, backward = losses.chunk(2)
        return BiLmLoss(forward=forward.sum(), backward=backward.sum(), count=len(forward))


def character_cnn(config: ElmoConfig) -> CharacterCnn:
    """A CNN of the configured shape, with weights of its own."""
    return CharacterCnn(
        n_characters=config.n_characters,
        character_size=config.character_size,
        filters=config.filters,
        n_highways=config.n_highways,
        output_size=config.projection_size,
    )


def reversed_order(attention_mask: Tensor) -> Tensor:
    """Places that turn every text round and leave its padding where it is, and turn it back: (batch, length)."""
    places = torch.arange(attention_mask.shape[1], device=attention_mask.device).expand_as(attention_mask)
    lengths = attention_mask.sum(1, keepdim=True)
    return torch.where(places < lengths, lengths - 1 - places, places)
