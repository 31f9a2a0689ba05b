"""Data files as streams of bytes, wherever they lie: on their own, in .gz or .xz, or in a .zip."""

import codecs
import gzip
import hashlib
import io
import lzma
import shutil
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from model.errors import BadInput
from model.files import sha256_file

TABLE_SUFFIXES = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".xlsx", ".parquet")
TEXT_SUFFIXES = (".txt",)

# Text shrinks by 3 to 20 times. An archive that unpacks to much more than that, and to more than any disk or
# patience will mind, was made to do harm.
MAX_RATIO = 200
HARMLESS_BYTES = 256 << 20
LOOKED_AT = 16 << 20  # bytes of each file, before any is read whole; no table is one line until there
IN_MEMORY = 16 << 20  # bytes; what is larger is unpacked to a temporary file, where a reader must go to and fro

_BINARY = (b"PK\x03\x04", b"PAR1")  # of workbooks and Parquet
_JSON = (b"[", b"{")
_Stamp = tuple[str, int, int, int]


@dataclass(frozen=True, slots=True)
class Source:
    """One data file, or a folder of texts. `member`: its name inside the .zip at `path`."""

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

    A folder counts as one file where its sub-folders hold texts (`label/*.txt`).

    Raises:
        BadInput: a path is another folder, an archive can't be read, or has no data file in it, or a file is absurd.
    """
    found: list[Source] = []
    for path in paths:
        if path.is_dir() and not folder_texts(path):
            raise BadInput(
                f"{path} is a folder, and its sub-folders hold no .txt files; name the files in it, "
                f"for example {path}/*.csv"
            )
        if not path.exists():
            raise BadInput(f"{path} does not exist; check the name")
        found += _members(path, on_skipped) if path.suffix.lower() == ".zip" else [Source(path)]
    for source in found:
        if source.path.is_file():
            _check_beginning(source)
    return found


def _check_beginning(source: Source) -> None:
    """Refuse a huge file without lines at once, not after hours of reading.

    Raises:
        BadInput: it is neither a table nor JSON, and one line goes on and on.
    """
    with source.open() as stream:
        head = stream.read(LOOKED_AT)
    may_be_one_line = head.startswith(_BINARY) or head.removeprefix(codecs.BOM_UTF8).lstrip().startswith(_JSON)
    if len(head) < LOOKED_AT or may_be_one_line:
        return
    line_ends = max(head.rfind(b"\n"), head.rfind(b"\r"))
    if line_ends < LOOKED_AT // 2:
        raise BadInput(
            f"{source.name} goes on for {LOOKED_AT >> 21} MiB without a line break, so it holds no texts: "
            "is it the right file? If so, break its lines first"
        )


def folder_texts(folder: Path) -> list[Path]:
    """The text files of a folder whose sub-folders are labels, sorted by label and name."""
    return sorted(path for path in folder.glob("*/*.txt") if path.is_file() and not path.name.startswith("."))


def fingerprint(path: Path) -> str:
    """The SHA-256 of a file, or of a folder's texts and their names, in hex."""
    if not path.is_dir():
        return sha256_file(path)
    lines = [f"{sha256_file(text)} {text.relative_to(path).as_posix()}\n" for text in folder_texts(path)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


@contextmanager
def unchanged(paths: Iterable[Path]) -> Iterator[None]:
    """Refuses at the end of the block whatever was read from files that changed meanwhile.

    Raises:
        BadInput: a file has another size, time or inode than before, or a folder other files.
    """
    before = {path: _stamps(path) for path in paths}
    try:
        yield
    except BadInput:  # what changes while it is read may look broken
        _check_unchanged(before)
        raise
    _check_unchanged(before)


def _check_unchanged(before: dict[Path, list[_Stamp]]) -> None:
    for path, stamps in before.items():
        if _stamps(path) != stamps:
            raise BadInput(
                f"{path} changed while it was being read, nothing was written; import it when nothing writes to it"
            )


def _stamps(path: Path) -> list[_Stamp]:
    return [_stamp(file) for file in (folder_texts(path) if path.is_dir() else [path])]


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:  # it is gone
        return (str(path), 0, 0, 0)
    return (str(path), status.st_size, status.st_mtime_ns, status.st_ino)


@contextmanager
def open_seekable(source: Source, on_read: Callable[[int], None] = lambda _: None) -> Iterator[IO[bytes]]:
    """The unpacked bytes as a file that can be read in any order; packed ones go through a temporary file.

    `on_read` hears of the whole file at once.
    """
    if source.member is None and source.path.suffix.lower() not in (".gz", ".xz"):
        with source.path.open("rb") as file:
            yield file
            on_read(source.path.stat().st_size)
        return
    with source.open(on_read) as stream, tempfile.SpooledTemporaryFile(IN_MEMORY) as seekable:
        shutil.copyfileobj(stream, seekable)
        seekable.seek(0)
        yield cast("IO[bytes]", seekable)


def check_size(
    unpacked: int, packed: int, name: str, *, max_ratio: int = MAX_RATIO, harmless: int | None = None
) -> None:
    """Stop before more is unpacked than any honest archive holds; sizes in bytes, `harmless` ones always pass.

    Raises:
        BadInput: `unpacked` is absurd.
    """
    if unpacked > (HARMLESS_BYTES if harmless is None else harmless) and unpacked > max_ratio * packed:
        raise BadInput(
            f"{name} unpacks to more than {max_ratio} times its size; "
            "if you trust it, unpack it yourself, or save it as CSV"
        )


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
