"""What a teacher says of texts, kept on the disk: computed once, mapped into memory from then on.

Texts are taken some hundred at a time; each part is a folder of arrays, named after the teacher, the question and the
texts. A part is whole or not there, so a run that was killed asks the teacher for what is missing.
"""

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.console import progress
from model.errors import BadRun
from model.files import canonical_json, publish, staging_folder
from model.types import Text

TEXTS_A_PART = 512  # at 128 tokens, what four layers of twelve heads say of them is 1.1 GB of memory

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Cache:
    """Answers to one question. folder: of all caches. key: all that the answers depend on beside the texts."""

    folder: Path
    key: Sequence[Any]

    def ask(self, texts: Sequence[Text], answer: Callable[[slice], Arrays], *, size: int, what: str) -> list[Arrays]:
        """The arrays of each part of `texts`, those that are missing by `answer` of a slice of them.

        size: bytes of all of them together. what: they are called in messages.

        Raises:
            BadRun: the disk has no room for them, or a part can't be read.
        """
        slices = [slice(at, at + TEXTS_A_PART) for at in range(0, len(texts), TEXTS_A_PART)]
        folders = [self.folder / self._name(texts[part]) for part in slices]
        missing = [folder for folder in folders if not folder.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_room(size * len(missing) // max(len(folders), 1), what)
        with progress(what, len(slices)) as advance:
            for part, folder in zip(slices, folders, strict=True):
                if not folder.exists():
                    self._keep(folder, answer(part), what)
                advance(1)
        return [_mapped(folder) for folder in folders]

    def _name(self, texts: Sequence[Text]) -> str:
        return hashlib.sha256(canonical_json([self.key, [list(text) for text in texts]])).hexdigest()[:32]

    def _keep(self, folder: Path, arrays: Arrays, what: str) -> None:
        try:
            with staging_folder(folder) as staging:
                for name, array in arrays.items():
                    np.save(staging / f"{name}.npy", array, allow_pickle=False)
                publish(staging, folder)
        except OSError as error:
            raise BadRun(
                f"{what}: {folder} can't be written ({error}); make room, and the same command goes on"
            ) from None

    def _check_room(self, needed: int, what: str) -> None:
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise BadRun(
                f"{what} would take {needed / 1e9:.1f} GB, and {self.folder} has {free / 1e9:.1f} GB left; make room, "
                "give another --home, or fewer texts"
            )


def _mapped(folder: Path) -> Arrays:
    try:
        return {path.stem: np.load(path, mmap_mode="r", allow_pickle=False) for path in sorted(folder.glob("*.npy"))}
    except (OSError, ValueError) as error:
        raise BadRun(f"{folder} can't be read ({error}); remove it, and it is made again") from None
