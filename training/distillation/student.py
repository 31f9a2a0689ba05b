"""Students: encoders of the teacher's kind with fewer or narrower layers, and which teacher layers theirs follow."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from model.architectures.foreign_weights import load_encoder, new_encoder, read_config
from model.errors import BadInput
from model.files import read_json
from model.tokenization import subwords


@dataclass(frozen=True, slots=True)
class StudentSize:
    """layers, and of each the hidden_size, the attention heads, and the inner_size of its feed-forward network."""

    layers: int
    hidden_size: int
    heads: int
    inner_size: int

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 1:
                raise BadInput(f"{each.name} is {getattr(self, each.name)}; it has to be 1 at least")
        if self.hidden_size % self.heads:
            raise BadInput(f"hidden_size {self.hidden_size} is no multiple of heads {self.heads}")

    @classmethod
    def of(cls, folder: Path) -> "StudentSize":
        """The size of the encoder in `folder`.

        Raises:
            BadInput: its settings can't be read.
        """
        config = read_config(folder)
        return cls(
            layers=config.num_hidden_layers,
            hidden_size=config.hidden_size,
            heads=config.num_attention_heads,
            inner_size=config.intermediate_size,
        )

    @property
    def config(self) -> dict[str, int]:
        """The settings of a transformers model."""
        return {
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden_size,
            "num_attention_heads": self.heads,
            "intermediate_size": self.inner_size,
        }


# Jiao 2020 has the first two; the third is the shape of hfl/rbt3
SIZES = {
    "tiny4-312": StudentSize(layers=4, hidden_size=312, heads=12, inner_size=1200),
    "tiny6-768": StudentSize(layers=6, hidden_size=768, heads=12, inner_size=3072),
    "rbt3": StudentSize(layers=3, hidden_size=768, heads=12, inner_size=3072),
}


def read_size(given: str, teacher: StudentSize) -> StudentSize:
    """The size that `--student given` stands for: a name, or a JSON file; what the file leaves out is the teacher's.

    Raises:
        BadInput: it is neither, or the student is larger than the teacher.
    """
    size = SIZES[given] if given in SIZES else _read_file(Path(given), teacher)
    check_no_larger(size, teacher, f"--student {given}")
    return size


def check_no_larger(size: StudentSize, teacher: StudentSize, what: str) -> None:
    """Refuse a student with more layers, or wider ones, than its teacher.

    Raises:
        BadInput: it has.
    """
    for name in ("layers", "hidden_size"):
        theirs, its = getattr(teacher, name), getattr(size, name)
        if its > theirs:
            raise BadInput(
                f"{what} has {name} {its}, its teacher only {theirs}; a student is no larger than that: "
                'give a smaller one, or a JSON file, {"layers": 6} say, whose other sizes are the teacher\'s'
            )


def check_heads(size: StudentSize, teacher: StudentSize, what: str) -> None:
    """Refuse a student whose attention can't be compared with its teacher's.

    Raises:
        BadInput: it has another number of heads.
    """
    if size.heads != teacher.heads:
        raise BadInput(
            f"{what} has {size.heads} attention heads, its teacher {teacher.heads}, so that their attention can't be "
            'compared; give a JSON file with the teacher\'s "heads", or --no-layers'
        )


def check_vocabulary(student: Path, teacher: Path, what: str) -> None:
    """Refuse a student that cuts texts into other tokens than its teacher, so that their states can't be compared.

    Raises:
        BadInput: it does.
    """
    if subwords.read_engine(student).get_vocab() != subwords.read_engine(teacher).get_vocab():
        raise BadInput(
            f"{what} has another vocabulary than its teacher, so that their layers can't be compared token by token; "
            "give --no-layers, and it learns from the answers alone"
        )


def _read_file(path: Path, teacher: StudentSize) -> StudentSize:
    known = [each.name for each in fields(StudentSize)]
    try:
        changes = read_json(path)
    except FileNotFoundError:
        raise BadInput(f"--student {path} is neither {', '.join(SIZES)} nor a JSON file; check the name") from None
    except (OSError, ValueError) as error:
        raise BadInput(f"--student {path} can't be read as JSON: {error}") from None
    if not isinstance(changes, dict) or (changes.keys() - set(known)):
        raise BadInput(f"{path}: a student is a JSON object of {', '.join(known)}, each a whole number")
    if wrong := {name: value for name, value in changes.items() if type(value) is not int}:
        raise BadInput(f"{path}: {wrong} are no whole numbers")
    try:
        return replace(teacher, **changes)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def read_layer_map(given: str | None, *, student: StudentSize, teacher: StudentSize) -> tuple[int, ...]:
    """For each layer of the student the teacher's layer that it follows, from 1: evenly spread, unless `given`.

    Raises:
        BadInput: it has not a layer of the teacher for each of the student's, in their order.
    """
    if given is None:
        return tuple(round(number * teacher.layers / student.layers) for number in range(1, student.layers + 1))
    try:
        layers = tuple(int(part) for part in given.split(","))
    except ValueError:
        raise BadInput(f"--layer-map {given}: give numbers with commas between, 3,6,9,12 say") from None
    if len(layers) != student.layers:
        raise BadInput(f"--layer-map {given} names {len(layers)} layers, the student has {student.layers}")
    if list(layers) != sorted(set(layers)) or layers[0] < 1 or layers[-1] > teacher.layers:
        raise BadInput(f"--layer-map {given}: layers have to rise, and the teacher has 1 to {teacher.layers}")
    return layers


def new_student(
    teacher: Path, size: StudentSize, layers: Sequence[int], *, dropout: float, random: bool = False
) -> PreTrainedModel:
    """An encoder of `size`, of the kind of the one in the folder `teacher`.

    Where its width is the teacher's it starts as the teacher's embeddings and its layers `layers`; a narrower one
    starts with the teacher's embeddings, turned to as few dimensions as keep most of them (principal components), and
    random layers. random: all weights by torch's generator, to see what that is worth.
    """
    student = new_encoder(teacher, **size.config, hidden_dropout_prob=dropout, attention_probs_dropout_prob=0.0)
    if random:
        return student
    source = load_encoder(teacher)
    if asdict(replace(size, layers=1)) == asdict(replace(StudentSize.of(teacher), layers=1)):
        _copy_layers(source, student, layers)
    else:
        _narrow_embeddings(source, student)
    return student


def _copy_layers(source: Any, student: Any, layers: Sequence[int]) -> None:
    student.embeddings.load_state_dict(source.embeddings.state_dict())
    if hasattr(source, "embeddings_project"):  # an ELECTRA's, from the width of its embeddings
        student.embeddings_project.load_state_dict(source.embeddings_project.state_dict())
    for own, number in zip(student.encoder.layer, layers, strict=True):
        own.load_state_dict(source.encoder.layer[number - 1].state_dict())


def _narrow_embeddings(source: Any, student: Any) -> None:
    """Tables of embeddings, each row turned by the same rotation, and cut; whatever else the embeddings have is new."""
    width = student.embeddings.word_embeddings.embedding_dim
    words = source.embeddings.word_embeddings.weight.detach()
    _, directions = torch.linalg.eigh(words.T.cov())  # those along which words differ most come last
    with torch.no_grad():
        for name, table in student.embeddings.named_children():
            if isinstance(table, nn.Embedding):
                table.weight.copy_(getattr(source.embeddings, name).weight @ directions[:, -width:])
