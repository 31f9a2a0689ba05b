"""Where an encoder starts from: a hub id, a local folder, or the weights that a Python package carries."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model.console import say
from model.errors import BadInput
from model.files import publish, sha256_file, staging_folder
from training import packed_e5

OFFLINE = "offline"
MODEL_TYPE = "bert"


@dataclass(frozen=True, slots=True)
class Start:
    """Weights to start from: the folder they lie in, what they are called, and the SHA-256 of the weights."""

    folder: Path
    name: str
    sha256: str


def resolve(init: str, *, cache: Path) -> Start:
    """The weights (`config.json`, `model.safetensors`, `tokenizer.json`) that `init` stands for.

    `init` is `offline`, a local folder, or an id on the Hugging Face hub; what has to be fetched or converted
    is kept under `cache`.

    Raises:
        BadInput: there is no such folder or id, or no hub can be reached.
        MissingExtra: the package that carries the offline weights is not installed.
    """
    if init == OFFLINE:
        return _start(_once(cache / packed_e5.NAME, packed_e5.convert), packed_e5.DESCRIPTION)
    if not Path(init).is_dir():
        return _start(_once(cache / init.replace("/", "--"), lambda folder: _fetch(init, folder)), init)
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (Path(init) / name).exists():
            raise BadInput(
                f"--init {init}: the folder has no {name}; it takes what transformers' save_pretrained writes"
            )
    return _start(Path(init), Path(init).absolute().name)


def _start(folder: Path, name: str) -> Start:
    return Start(folder=folder, name=name, sha256=sha256_file(folder / "model.safetensors"))


def _once(folder: Path, save: Callable[[Path], None]) -> Path:
    if not folder.exists():
        with staging_folder(folder) as staging:
            save(staging)
            if not folder.exists():  # another training may have been quicker
                publish(staging, folder)
    return folder


def _fetch(name: str, folder: Path) -> None:
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    say(f"fetching {name} from the Hugging Face hub")
    try:
        if (found := AutoConfig.from_pretrained(name).model_type) != MODEL_TYPE:
            raise ValueError(f"it is a {found} model, not a {MODEL_TYPE}")
        AutoTokenizer.from_pretrained(name, use_fast=True).save_pretrained(folder)
        AutoModel.from_pretrained(name).save_pretrained(folder)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(
            f"--init {name}: neither a folder nor a model that the hub gives ({reason}); "
            f"check the id and the network, or take --init {OFFLINE}"
        ) from None
