"""What all networks on a Transformer have in common: the pretrained part and what is on top, saved apart."""

from pathlib import Path
from typing import Self

from safetensors.torch import save_file
from torch import nn
from transformers import PreTrainedModel

from model.architectures.weight_files import HEAD


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
