"""Data files as streams of bytes, wherever they lie: on their own, in .gz or .xz, or in a .zip."""

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from model.errors import BadInput

DATA_SUFFIXES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".xlsx")

# Text shrinks by 3 to 20 times. An archive that unpacks to much more than that, and to more than any disk or
# patience will mind, was made to do harm.
MAX_RATIO = 200
HARMLESS_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Source:
    """One data file. `member`: its name inside the .zip at `path`."""

    path: Path
    member: str | None = None

    @property
    def name(self) -> str:
        """What messages and the store call it."""
        return f"{self.path.name}/{self.member}" if self.member else self.path.name

    @property
    def suffix(self) -> str:
        """The ending that tells the format: .csv for `reviews.csv.gz`."""
        inner = PurePosixPath(self.member) if self.member else PurePosixPath(self.path.name)
        return (inner.with_suffix("") if inner.suffix.lower() in (".gz", ".xz") else inner).suffix.lower()

    @contextmanager
    def open(self, on_read: Callable[[int], None] = lambda _: None) -> Iterator[IO[bytes]]:
        """The unpacked bytes. `on_read` hears how many bytes were read from disk since it was called last.

        Raises:
            BadInput: the archive is broken, locked by a password, or unpacks to an absurd size.
        """
        try:
            with self.path.open("rb") as packed, _unpack(packed, self) as stream:
                yield io.BufferedReader(_Metered(stream, packed, self, on_read), 1 << 16)
        except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError) as error:
            raise BadInput(f"{self.path}: the archive is broken ({error}); fetch or pack it again") from None


def find_sources(paths: list[Path]) -> list[Source]:
    """The data files in `paths`, archives looked into, each archive's members sorted by name.

    Raises:
        BadInput: a path is a folder, an archive can't be read, or has no data file in it.
    """
    found: list[Source] = []
    for path in paths:
        if path.is_dir():
            raise BadInput(f"{path} is a folder; name the files in it, for example {path}/*.csv")
        if not path.exists():
            raise BadInput(f"{path} does not exist; check the name")
        found += _members(path) if path.suffix.lower() == ".zip" else [Source(path)]
    return found


def _members(path: Path) -> list[Source]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [info for info in archive.infolist() if _is_data(info)]
    except zipfile.BadZipFile as error:
        raise BadInput(f"{path}: the archive is broken ({error}); fetch or pack it again") from None
    if not members:
        raise BadInput(f"{path} has no data file in it; it needs one that ends in {', '.join(DATA_SUFFIXES)}")
    if locked := [info.filename for info in members if info.flag_bits & 1]:
        raise BadInput(f"{path}/{locked[0]} is locked by a password; unpack it first")
    _check_size(sum(info.file_size for info in members), path.stat().st_size, path)
    return sorted((Source(path, info.filename) for info in members), key=lambda source: source.name)


def _is_data(info: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(info.filename)
    hidden = path.name.startswith(".") or path.parts[0] == "__MACOSX"
    return not (info.is_dir() or hidden) and path.suffix.lower() in DATA_SUFFIXES


@contextmanager
def _unpack(packed: IO[bytes], source: Source) -> Iterator[IO[bytes]]:
    if source.member:
        with zipfile.ZipFile(packed) as archive, archive.open(source.member) as member:
            yield member
        return
    match source.path.suffix.lower():
        case ".gz":
            with gzip.open(packed) as stream:
                yield cast("IO[bytes]", stream)
        case ".xz":
            with lzma.open(packed) as stream:
                yield cast("IO[bytes]", stream)
        case _:
            yield packed


class _Metered(io.RawIOBase):
    """Counts what was unpacked against what was read, to stop bombs and to move progress bars."""

    def __init__(self, stream: IO[bytes], packed: IO[bytes], source: Source, on_read: Callable[[int], None]) -> None:
        self._stream, self._packed, self._source, self._on_read = stream, packed, source, on_read
        self._packed_size = source.path.stat().st_size
        self._unpacked = self._read = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._unpacked += len(data)
        _check_size(self._unpacked, self._packed_size, self._source.path)
        position = self._packed.tell()
        self._on_read(position - self._read)
        self._read = position
        return len(data)


def _check_size(unpacked: int, packed: int, path: Path) -> None:
    if unpacked > HARMLESS_BYTES and unpacked > MAX_RATIO * packed:
        raise BadInput(f"{path} unpacks to more than {MAX_RATIO} times its size; unpack it yourself if you trust it")
