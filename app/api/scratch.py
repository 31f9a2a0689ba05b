"""Folders that a request works in: on the disk of the home, not in memory, and gone when the request is."""

import errno
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from app.errors import NoRoom
from model.errors import BadInput, BadSnapshot

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
STALE_SECONDS = 24 * 3600.0  # what is older was left by a server that was killed


@contextmanager
def scratch_folder(home: Path) -> Iterator[Path]:
    """An empty folder in the home, gone after the block; errors that leave the block do not tell where it is.

    Raises:
        NoRoom: the disk is full.
    """
    place = home / "scratch"
    with telling_full_disk():
        place.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        folder = Path(tempfile.mkdtemp(dir=place))
        try:
            yield folder
        except (BadInput, BadSnapshot) as error:
            raise type(error)(str(error).replace(f"{folder}/", "")) from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def telling_full_disk() -> Iterator[None]:
    """Tells whoever asks that the disk is full, without its address.

    Raises:
        NoRoom: it is.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL:
            raise
        raise NoRoom("the server's disk is full; nothing was written. Ask whoever runs it for some space") from error


def _sweep(place: Path) -> None:
    """Remove what killed servers left; others may share the home, so its age tells, not the number of a process."""
    for folder in place.iterdir():
        try:
            age = time.time() - max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
        except OSError:  # its request has just ended
            continue
        if age > STALE_SECONDS:
            shutil.rmtree(folder, ignore_errors=True)
