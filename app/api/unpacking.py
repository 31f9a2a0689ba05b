"""What a packed file would become: whoever sends a small one must not make the server write or hold a large one."""

import zipfile
from pathlib import Path
from typing import IO, cast

from app.library.sources import Source, find_sources, open_seekable
from model.errors import BadInput
from model.files import CHUNK

# A workbook keeps all its texts in memory while it is read, as about three times as much as they take unpacked.
MOST_OF_WORKBOOK = 512 << 20
# Of a .zip the directory is read again for each file in it, and it lies in memory whole.
MOST_FILES = 1000
MOST_OF_DIRECTORY = 1 << 20  # bytes
_ZIP = b"PK\x03\x04"
_PACKED = (".zip", ".gz", ".xz")


def check_unpacked(path: Path, *, most: int) -> None:
    """Refuse a file that unpacks to more than `most` bytes or `MOST_FILES`, or a workbook that is large for a server.

    Raises:
        BadInput: it does, or it can't be unpacked.
    """
    if path.suffix.lower() == ".zip":
        _check_number(path)
    left = most
    for source in find_sources([path]):
        if path.suffix.lower() in _PACKED:
            left -= _size(source, left)
            if left < 0:
                raise BadInput(
                    f"{path.name} unpacks to more than {most / (1 << 20):g} MiB, the most that is taken in one file; "
                    "send it in several parts"
                )
        _check_workbook(source)


def _check_number(path: Path) -> None:
    with path.open("rb") as file:
        count = len(_directory(file, path.name))
    if count > MOST_FILES:
        raise BadInput(f"{path.name} has {count:,} files in it, more than {MOST_FILES:,}; send it in several parts")


def _size(source: Source, enough: int) -> int:
    """The unpacked bytes; no more are counted than one piece beyond `enough`."""
    size = 0
    with source.open() as stream:
        while size <= enough and (piece := stream.read(CHUNK)):
            size += len(piece)
    return size


def _check_workbook(source: Source) -> None:
    with source.open() as stream:
        if stream.read(len(_ZIP)) != _ZIP:
            return
    with open_seekable(source) as file:
        size = sum(part.file_size for part in _directory(file, source.name))
    if size > MOST_OF_WORKBOOK:
        raise BadInput(
            f"{source.name} is a workbook of {size >> 20} MiB unpacked, more than {MOST_OF_WORKBOOK >> 20}; "
            "save it as CSV and send that"
        )


def _directory(file: IO[bytes], name: str) -> list[zipfile.ZipInfo]:
    """What is in a zip; nothing where it is broken, which is told when it is read."""
    try:
        with zipfile.ZipFile(cast("IO[bytes]", _ShortReads(file, name))) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return []


class _ShortReads:
    """A file of which nobody reads much at once, as `zipfile` does with the directory, whatever its size."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file, self._name = file, name
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """As a file's.

        Raises:
            BadInput: it is more than the directory of an archive that is taken here.
        """
        most = MOST_OF_DIRECTORY + 1
        piece = self._file.read(most if size < 0 else min(size, most))
        if len(piece) == most:
            raise BadInput(f"{self._name} has too many files in it; send it in several parts")
        return piece
