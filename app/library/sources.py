"""Data files as streams of bytes, wherever they lie: on their own, in .gz or .xz, or in a .zip."""

import gzip
import io
import lzma
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from model.errors import BadInput

TABLE_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xlsx")
TEXT_SUFFIXES = (".txt",)

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
        with _readable(self.path), self.path.open("rb") as packed, _unpack(packed, self) as stream:
            yield io.BufferedReader(_Metered(stream, packed, self, on_read), 1 << 16)


def find_sources(paths: list[Path], *, on_skipped: Callable[[str], None] = lambda _: None) -> list[Source]:
    """The data files in `paths`, archives looked into, each archive's members sorted by name.

    Texts in an archive that holds tables too are about them, and no data. `on_skipped` hears the name of each file
    in an archive that is left out.

    Raises:
        BadInput: a path is a folder, an archive can't be read, or has no data file in it.
    """
    found: list[Source] = []
    for path in paths:
        if path.is_dir():
            raise BadInput(f"{path} is a folder; name the files in it, for example {path}/*.csv")
        if not path.exists():
            raise BadInput(f"{path} does not exist; check the name")
        found += _members(path, on_skipped) if path.suffix.lower() == ".zip" else [Source(path)]
    return found


def check_size(unpacked: int, packed: int, name: str) -> None:
    """Stop before more is unpacked than any honest archive holds; both sizes in bytes.

    Raises:
        BadInput: `unpacked` is absurd.
    """
    if unpacked > HARMLESS_BYTES and unpacked > MAX_RATIO * packed:
        raise BadInput(f"{name} unpacks to more than {MAX_RATIO} times its size; unpack it yourself if you trust it")


def _members(path: Path, on_skipped: Callable[[str], None]) -> list[Source]:
    with _readable(path), zipfile.ZipFile(path) as archive:
        files = [info for info in archive.infolist() if not (info.is_dir() or _is_hidden(info))]
    tables, texts = (
        [info for info in files if info.filename.lower().endswith(suffixes)]
        for suffixes in (TABLE_SUFFIXES, TEXT_SUFFIXES)
    )
    members = tables or texts
    if not members:
        suffixes = ", ".join(TABLE_SUFFIXES + TEXT_SUFFIXES)
        raise BadInput(f"{path} has no data file in it; it needs one that ends in {suffixes}")
    names = Counter(info.filename for info in files)
    for info in members:
        if names[info.filename] > 1:
            raise BadInput(f"{path} has {names[info.filename]} files {info.filename} in it; unpack it and rename them")
        if info.flag_bits & 1:
            raise BadInput(f"{path}/{info.filename} is locked by a password; unpack it first")
    check_size(sum(info.file_size for info in members), path.stat().st_size, str(path))
    sources = sorted((Source(path, info.filename) for info in members), key=lambda source: source.name)
    for name in sorted(names.keys() - {source.member for source in sources}):
        on_skipped(f"{path.name}/{name}")
    return sources


def _is_hidden(info: zipfile.ZipInfo) -> bool:
    path = PurePosixPath(info.filename)
    return path.name.startswith(".") or path.parts[0] == "__MACOSX"


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, gzip.BadGzipFile, EOFError) as error:
        raise BadInput(f"{path}: the archive is broken ({error}); fetch or pack it again") from None
    except NotImplementedError as error:  # Deflate64, which Windows takes for large files, or an unknown method
        raise BadInput(f"{path}: {error}; unpack it first, or pack it with Deflate") from None


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
        self._unpacked = 0
        self._read = packed.tell()  # in a .zip, other members lie before this one

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._unpacked += len(data)
        check_size(self._unpacked, self._packed_size, str(self._source.path))
        position = self._packed.tell()
        self._on_read(position - self._read)
        self._read = position
        return len(data)
