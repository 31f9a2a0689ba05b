"""Folders and files that appear whole or not at all, and their hashes."""

import errno
import fcntl
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from model.errors import BadInput

_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
CHUNK = 1 << 20  # bytes read at a time: large enough for the disk, small enough for flat memory


@contextmanager
def staging_folder(beside: Path) -> Iterator[Path]:
    """A hidden, empty folder next to `beside`, to be filled and then published; gone when the block ends.

    What a process that was killed left of such a folder is swept away.

    Raises:
        OSError: the disk is full; the message names the place, whatever the library that wrote has said.
    """
    beside.parent.mkdir(parents=True, exist_ok=True)
    for stale in beside.parent.glob(f".{glob.escape(beside.name)}.partial-*"):
        if stale.is_dir() and not _is_running(stale.name.rpartition("-")[2].partition("_")[0]):
            shutil.rmtree(stale, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{beside.name}.partial-{os.getpid()}_", dir=beside.parent))
    staging.chmod(0o755)  # mkdtemp makes it private; what is published is read by other users too
    try:
        yield staging
    except OSError as error:
        if error.errno in _DISK_FULL:
            what = f"{os.strerror(error.errno)}; free some space or take another place, nothing was left here"
            raise OSError(error.errno, what, str(beside.parent.resolve())) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def publish(staging: Path, destination: Path) -> None:
    """Give a filled staging folder, or a file in one, its name, all at once; before that nothing is seen under it.

    Raises:
        BadInput: `destination` is there already.
    """
    for path in (staging, *staging.rglob("*")):
        if path.is_file():
            path.chmod(0o644)  # some libraries write private files; a server reads them as another user
            flush(path)
    try:
        staging.rename(destination)
    except OSError:
        if destination.exists():  # somebody else was faster
            raise BadInput(f"{destination} exists already; give another name or remove it first") from None
        raise


def write_json(path: Path, data: Any) -> None:
    """Write `data` as readable JSON; a reader sees the old file or the new one, never half of either."""
    write_text(path, _readable(data))


def write_sealed(path: Path, data: dict[str, Any]) -> None:
    """As `write_json`, with a `seal` at the end: the SHA-256 of all bytes of the file but its own."""
    unsealed = _readable({**data, "seal": ""})
    before, _, after = unsealed.rpartition('""')
    write_text(path, f'{before}"{hashlib.sha256(unsealed.encode()).hexdigest()}"{after}')


def is_sealed(path: Path) -> bool:
    """Whether not a byte of the file has changed since `write_sealed`."""
    text = path.read_text(encoding="utf-8")
    seal = json.loads(text).get("seal")
    before, _, after = text.rpartition(f'"{seal}"')
    return bool(hashlib.sha256(f'{before}""{after}'.encode()).hexdigest() == seal)


def read_json(path: Path) -> Any:
    """The JSON value in `path`."""
    return json.loads(path.read_text(encoding="utf-8"))


def canonical_json(data: Any) -> bytes:
    """The one spelling of `data` that hashes are taken over."""
    return _CANONICAL.encode(data).encode()


def sha256_file(path: Path) -> str:
    """The SHA-256 of the file's bytes, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Keep every other process out of `folder` until the block ends, or this process does.

    Raises:
        BadInput: another one is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another process is writing {folder}; wait for it, or give another --out") from None
        yield


def _is_running(process: str) -> bool:
    """Whether the process of that number is there; what is no number is somebody else's and taken for alive."""
    if not process.isdigit():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _readable(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, indent=2) + "\n"


def write_text(path: Path, text: str) -> None:
    """Write `text`; a reader sees the old file or the new one, never half of either."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    flush(partial)
    partial.replace(path)


def flush(path: Path) -> None:
    """Wait until the file's bytes are on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
