"""What all networks on a Transformer have in common: the pretrained part and what is on top, saved apart."""

from pathlib import Path
from typing import Self

from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PreTrainedModel

from model.architectures.foreign_weights import load_encoder
from model.architectures.weight_files import HEAD, read_head


class OnEncoder(nn.Module):
    """A network on `encoder`, an encoder or a decoder; all its other parts are its head."""

    def __init__(self, encoder: PreTrainedModel) -> None:
        super().__init__()
        self.encoder = encoder

    def save(self, folder: Path) -> None:
        """Write `config.json` and `model.safetensors` (the encoder) and `head.safetensors` (all else)."""
        self.encoder.save_pretrained(folder)
        head = {name: value for name, value in self.state_dict().items() if not name.startswith("encoder.")}
        save_file(head, folder / HEAD)

    def freeze_encoder(self) -> None:
        """Train the head alone, on the encoder as it answers in inference (Devlin 2018, 5.3: BERT as features)."""
        self.encoder.requires_grad_(False)
        self.encoder.eval()

    def train(self, mode: bool = True) -> Self:
        """As in torch; a frozen encoder stays in `eval()`: dropout would make other features of it at every step."""
        super().train(mode)
        if not any(weight.requires_grad for weight in self.encoder.parameters()):
            self.encoder.eval()
        return self


class LinearHead(OnEncoder):
    """An encoder or decoder, dropout and a linear layer with `n_outputs` rows."""

    def __init__(self, encoder: PreTrainedModel, *, n_outputs: int, dropout: float = 0.1) -> None:
        super().__init__(encoder)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(encoder.config.hidden_size, n_outputs)
        nn.init.normal_(self.head.weight, std=encoder.config.initializer_range)
        nn.init.zeros_(self.head.bias)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """A trained one, as `save` wrote it, in evaluation mode.

        Raises:
            BadInput: a file is not there or damaged.
        """
        head = read_head(folder)
        loaded = cls(load_encoder(folder), n_outputs=len(head["head.bias"]))
        loaded.head.load_state_dict({name.removeprefix("head."): value for name, value in head.items()})
        return loaded.eval()

    def score(self, states: Tensor) -> Tensor:
        """The linear layer on states (…, hidden_size): (…, n_outputs)."""
        scores: Tensor = self.head(self.dropout(states))
        return scores
