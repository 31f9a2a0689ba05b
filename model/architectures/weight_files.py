"""The safetensors files of a folder: read whole, and no weight that is not a number."""

from collections.abc import Iterator
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from model.errors import BadInput
from model.files import read_json
from model.types import preview

WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
HEAD = "head.safetensors"  # of a trained network: what is on top of the pretrained part


def read_weights(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Names and values in `folder`/model.safetensors, or in the shards that its index lists.

    Raises:
        BadInput: there is no such file, or it is damaged.
    """
    for path in weight_files(folder):
        yield from read_file(path).items()


def read_head(folder: Path) -> dict[str, Tensor]:
    """What a trained network in `folder` has on top, in float32.

    Raises:
        BadInput: there is no such file, it is damaged, or a weight is NaN or infinite.
    """
    return {name: checked(value, name, folder) for name, value in read_file(folder / HEAD).items()}


def read_file(path: Path) -> dict[str, Tensor]:
    """Names and values in one file.

    Raises:
        BadInput: it is not there, or damaged.
    """
    try:
        return load_file(path)
    except FileNotFoundError:
        raise BadInput(f"{path.parent} has no {path.name}; copy the whole folder again") from None
    except (OSError, SafetensorError) as error:
        raise BadInput(f"{path} can't be read: {error}; copy it again") from None


def weight_files(folder: Path) -> list[Path]:
    """The safetensors files that hold a folder's weights, in order.

    Raises:
        BadInput: the list of shards can't be read.
    """
    if (folder / WEIGHTS).exists() or not (index := folder / SHARDS).exists():
        return [folder / WEIGHTS]
    try:
        names = sorted(set(read_json(index)["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadInput(f"{index} can't be read as a list of shards: {error!r}; copy it again") from None
    if strange := [name for name in names if Path(name).name != name]:
        raise BadInput(f"{index} lists {preview(strange, 3)}, which is not beside it; copy the whole folder again")
    return [folder / name for name in names]


def checked(value: Tensor, name: str, folder: Path) -> Tensor:
    """The weight `name` of `folder` in float32.

    Raises:
        BadInput: it holds what is not a number.
    """
    value = value.float()
    if bad := int((~value.isfinite()).sum()):
        raise BadInput(
            f"{folder}: {bad:,} of {value.numel():,} values of {name} are NaN or infinite; the file is damaged or its "
            "training diverged, take another copy or an earlier checkpoint"
        )
    return value
