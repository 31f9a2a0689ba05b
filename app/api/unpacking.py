"""What a packed file would become: whoever sends a small one must not make the server write or hold a large one."""

import zipfile
from pathlib import Path

from app.library.sources import Source, find_sources, open_seekable
from model.errors import BadInput
from model.files import CHUNK

# A workbook keeps all its texts in memory while it is read, as about three times as much as they take unpacked.
MOST_OF_WORKBOOK = 512 << 20
_ZIP = b"PK\x03\x04"
_PACKED = (".zip", ".gz", ".xz")


def check_unpacked(path: Path, *, most: int) -> None:
    """Refuse a file that unpacks to more than `most` bytes, or a workbook that is large for a server.

    Raises:
        BadInput: it does, or it can't be unpacked.
    """
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
        try:
            with zipfile.ZipFile(file) as parts:
                size = sum(part.file_size for part in parts.infolist())
        except zipfile.BadZipFile:  # told when it is read
            return
    if size > MOST_OF_WORKBOOK:
        raise BadInput(
            f"{source.name} is a workbook of {size >> 20} MiB unpacked, more than {MOST_OF_WORKBOOK >> 20}; "
            "save it as CSV and send that"
        )
