"""Where a training starts from: a hub id, a local folder, a pretraining's run, or weights that a package carries."""

import hashlib
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model.architectures import elmo_files
from model.architectures.foreign_weights import FAMILIES
from model.architectures.weight_files import SHARDS, WEIGHTS, weight_files
from model.console import say
from model.errors import BadInput
from model.files import canonical_json, flush, publish, read_json, sha256_file, staging_folder
from training import packed_e5, vocabulary_files

OFFLINE = "offline"
PRETRAINING = "pretrain.json"  # what the folder of a pretraining's run has, and no other
MODEL_TYPES = (*FAMILIES, elmo_files.MODEL_TYPE)
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
ON_THE_HUB = (
    "config.json", "model.safetensors", "model-*.safetensors", SHARDS,
    *TOKENIZER_FILES, "vocab.txt", "vocab.json", "merges.txt",
)  # fmt: skip
# Who turns older weights on the hub into safetensors, and what its pull requests are called
CONVERTER = ("SFconvertbot", "Adding `safetensors` variant of this model")


@dataclass(frozen=True, slots=True)
class Start:
    """Weights to start from: the folder they lie in, what they are called, their SHA-256 and what they are of."""

    folder: Path
    name: str
    sha256: str
    model_type: str

    def copy_tokenizer(self, folder: Path) -> None:
        """Put the tokenizer's files into `folder`, as they are."""
        for name in TOKENIZER_FILES:
            if (self.folder / name).exists():
                shutil.copyfile(self.folder / name, folder / name)


def resolve(init: str, *, cache: Path) -> Start:
    """The weights (`config.json`, `model.safetensors`, `tokenizer.json`) that `init` stands for.

    `init` is `offline`, a local folder, the folder of a pretraining's run, or an id on the Hugging Face hub; what has
    to be fetched or converted is kept under `cache`.

    Raises:
        BadInput: there is no such folder or id, no hub can be reached, or a pretraining is not done.
        MissingExtra: the package that carries the offline weights is not installed.
    """
    if init == OFFLINE:
        return _start(_once(cache / packed_e5.NAME, packed_e5.convert), packed_e5.DESCRIPTION)
    given = Path(init)
    if not given.is_dir():
        return _start(_once(cache / init.replace("/", "--"), lambda folder: _fetch(init, folder)), init)
    folder = _pretrained(given) if (given / PRETRAINING).exists() else given
    _check_files(folder, init)
    if not (folder / "tokenizer.json").exists():
        return _start(_with_tokenizer(folder, cache), given.absolute().name)
    return _start(folder, given.absolute().name)


def _start(folder: Path, name: str) -> Start:
    digests = [sha256_file(path) for path in weight_files(folder)]
    sha256 = digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()
    return Start(folder=folder, name=name, sha256=sha256, model_type=_model_type(folder))


def _model_type(folder: Path) -> str:
    path = folder / "config.json"
    try:
        return str(read_json(path).get("model_type"))
    except FileNotFoundError:
        raise BadInput(f"{folder} has no config.json; it takes what transformers' save_pretrained writes") from None
    except (ValueError, AttributeError) as error:
        raise BadInput(f"{path} can't be read as the settings of a model: {error}; save it again") from None


def _once(folder: Path, save: Callable[[Path], None]) -> Path:
    if not folder.exists():
        with staging_folder(folder) as staging:
            save(staging)
            if not folder.exists():  # another training may have been quicker
                publish(staging, folder)
    return folder


def _pretrained(run: Path) -> Path:
    """The model that a pretraining left."""
    try:
        status = read_json(run / PRETRAINING)["status"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"--init {run}: {PRETRAINING} can't be read ({error!r}); pretrain again") from None
    if status != "done":
        raise BadInput(
            f"--init {run}: the pretraining is not done ({status}); finish it with the command that began it, "
            "and --resume"
        )
    return run / "model"


def _check_files(folder: Path, init: str) -> None:
    """Refuse a folder that lacks what a start is made of."""
    weights = (WEIGHTS, SHARDS)
    tokenizer = ("tokenizer.json", *vocabulary_files.WORDPIECE, "vocab.json")
    for names in (("config.json",), weights, tokenizer):
        if any((folder / name).exists() for name in names):
            continue
        pickled = sorted(path.name for path in folder.glob("*.bin")) if names == weights else []
        if pickled:
            raise BadInput(
                f"--init {init}: the folder has {pickled[0]} and no {WEIGHTS}; a pickle can run any code, so none is "
                "opened here: load it with transformers where you trust it, and save_pretrained writes safetensors"
            )
        raise BadInput(
            f"--init {init}: the folder has no {names[0]}; it takes what transformers' save_pretrained writes"
        )


def _with_tokenizer(folder: Path, cache: Path) -> Path:
    """A folder under `cache` with links to the files in `folder`, and the `tokenizer.json` that it lacks.

    The folder of the user stays as it is. Another vocabulary, or the same elsewhere, is another folder.
    """
    sources = vocabulary_files.vocabulary_files(folder)
    if not sources:
        raise BadInput(f"{folder} has a vocab.json but no merges.txt; copy the whole folder again")
    made_of = {path.name: sha256_file(path) for path in sources}
    key = hashlib.sha256(canonical_json({"folder": str(folder.absolute()), "model": _model_type(folder), **made_of}))
    completed = cache / f"{folder.absolute().name}-tokenizer-{key.hexdigest()[:12]}"
    links = ["config.json", *(path.name for path in weight_files(folder))]
    if (folder / SHARDS).exists():
        links.append(SHARDS)
    if completed.exists() and all((completed / name).exists() for name in links):
        return completed
    shutil.rmtree(completed, ignore_errors=True)  # its links led to files that were there then
    with staging_folder(completed) as staging:
        vocabulary_files.convert(folder, staging, model_type=_model_type(folder))
        for path in staging.iterdir():
            flush(path)
        for name in links:
            (staging / name).symlink_to((folder / name).absolute())
        if not completed.exists():
            staging.rename(completed)  # not `publish`, which would set the rights of the files that links lead to
    return completed


def _fetch(name: str, folder: Path) -> None:
    """Copy a model on the hub into `folder`, of whatever type it is, its heads included."""
    say(f"从 Hugging Face hub 下载 {name} | fetching {name} from the Hugging Face hub")
    try:
        found = _model_type(_download(name, "config.json"))
        if found not in MODEL_TYPES:
            raise ValueError(f"it is of type {found}; {', '.join(MODEL_TYPES)} are taken")
        fetched = _download(name, *ON_THE_HUB)
        if not _has_weights(fetched) and (revision := _converted(name)):
            fetched = _download(name, *ON_THE_HUB, revision=revision)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise BadInput(
            f"--init {name}: neither a folder nor a model that the hub gives ({reason}); "
            f"check the id and the network, or take --init {OFFLINE}"
        ) from None
    if not _has_weights(fetched):
        raise BadInput(
            f"--init {name}: the hub has no {WEIGHTS} of it, and a pickle can run any code, so none is opened here; "
            "load it with transformers where you trust it, save_pretrained, and give the folder"
        )
    for path in fetched.iterdir():
        if any(path.match(pattern) for pattern in ON_THE_HUB):
            shutil.copyfile(path, folder / path.name)
    if not (folder / "tokenizer.json").exists():
        if not vocabulary_files.vocabulary_files(folder):
            raise BadInput(f"--init {name}: the hub has no tokenizer.json and no vocab.txt of it; give a folder")
        vocabulary_files.convert(folder, folder, model_type=found)


def _download(name: str, *patterns: str, revision: str | None = None) -> Path:
    """The files of a model on the hub, in the hub's own cache."""
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, allow_patterns=list(patterns), revision=revision))


def _has_weights(folder: Path) -> bool:
    return any((folder / name).exists() for name in (WEIGHTS, SHARDS))


def _converted(name: str) -> str | None:
    """The revision in which the hub's own converter has put safetensors beside older weights, if there is one."""
    from huggingface_hub import HfApi

    author, _ = CONVERTER
    try:
        found = list(HfApi().get_repo_discussions(name, author=author, discussion_type="pull_request"))
    except Exception:  # its HTTP client has errors of its own; a hub that does not answer has no such revision
        return None
    return next((one.git_reference for one in found if (one.author, one.title) == CONVERTER), None)
