"""The folder of an ELMo: its `config.json`, and weights that are taken whole or not at all."""

from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn

from model.architectures.weight_files import checked, read_weights
from model.errors import BadInput
from model.files import read_json, write_json
from model.types import preview

MODEL_TYPE = "wenlei-elmo"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElmoConfig:
    """vocabulary_size: words. word_length: characters of a word, its two ends included. filters: (width, number) each.

    cell_size: of an LSTM's memory, projection_size: of its state. sampled_words: draws of the softmax in training,
    0 for the full one. correction_size: of the CNN softmax's correction a word.
    """

    vocabulary_size: int
    n_characters: int
    word_length: int
    character_size: int = 64
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 64), (3, 96), (4, 64))
    n_highways: int = 2
    projection_size: int = 256
    cell_size: int = 512
    n_layers: int = 2
    dropout: float = 0.1
    softmax: Literal["cnn", "plain"] = "cnn"
    correction_size: int = 32
    sampled_words: int = 4096

    def __post_init__(self) -> None:
        widest = max((width for width, _ in self.filters), default=0)
        if not 0 < widest <= self.word_length:
            raise BadInput(
                f"filters {self.filters} don't fit words of {self.word_length} characters; make them narrower"
            )
        if not 0 < self.projection_size < self.cell_size:
            raise BadInput(
                f"projection_size {self.projection_size} is not smaller than cell_size {self.cell_size}; a projection "
                "of an LSTM's state makes it shorter"
            )
        if self.n_layers < 1 or self.softmax not in ("cnn", "plain"):
            raise BadInput(f"n_layers {self.n_layers}, softmax {self.softmax}: give a layer or more, and cnn or plain")

    @classmethod
    def load(cls, folder: Path) -> "ElmoConfig":
        """Of `folder`/config.json.

        Raises:
            BadInput: it is not there, or not that of an ELMo.
        """
        path = folder / "config.json"
        try:
            settings: dict[str, Any] = dict(read_json(path))
            found = settings.pop("model_type", None)
            if found != MODEL_TYPE:
                raise BadInput(f"{path} is of type {found}, not {MODEL_TYPE}; give --arch what fits the weights")
            filters = tuple((int(width), int(number)) for width, number in settings.pop("filters"))
            return cls(filters=filters, **settings)
        except (OSError, ValueError, KeyError, TypeError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise BadInput(f"{path} can't be read as that of an ELMo: {error!r}; it needs {known}") from None

    def save(self, folder: Path) -> None:
        """Write `config.json`."""
        write_json(folder / "config.json", {"model_type": MODEL_TYPE, **asdict(self)})


def read_whole(folder: Path) -> dict[str, Tensor]:
    """All weights of the model in `folder`, in float32.

    Raises:
        BadInput: a file can't be read, or a weight is not a number.
    """
    return {
        name: checked(value, name, folder) if value.is_floating_point() else value
        for name, value in read_weights(folder)
    }


def spelling(weights: dict[str, Tensor], folder: Path) -> Tensor:
    """How the words of the weights' vocabulary are spelled: (vocabulary_size, word_length).

    Raises:
        BadInput: the weights don't say.
    """
    if "word_characters" not in weights:
        raise BadInput(f"{folder}/model.safetensors lacks word_characters; it is not a whole ELMo, save it again")
    return weights["word_characters"]


def fill(module: nn.Module, weights: dict[str, Tensor], folder: Path) -> None:
    """Give `module` exactly these weights.

    Raises:
        BadInput: one is missing, unexpected or of another shape.
    """
    expected = module.state_dict()
    if absent := sorted(expected.keys() - weights.keys()):
        raise BadInput(f"{folder} lacks the weights {preview(absent, 3)}; it is not a whole ELMo, save it again")
    if unknown := sorted(weights.keys() - expected.keys()):
        raise BadInput(
            f"{folder} has weights that no ELMo of its config.json has: {preview(unknown, 3)}; save it again"
        )
    for name, value in expected.items():
        if value.shape != weights[name].shape:
            raise BadInput(
                f"{folder}: {name} is {tuple(weights[name].shape)}, its config.json says {tuple(value.shape)}; they "
                "don't belong together"
            )
    module.load_state_dict(weights)
