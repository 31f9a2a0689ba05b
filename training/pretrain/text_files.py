"""Lines of text files of any size, plain, .xz or .gz, in flat memory; what is no UTF-8 text is refused by place."""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

from charset_normalizer import from_bytes

from model.console import say
from model.errors import BadInput
from model.files import CHUNK
from training.pretrain.sentences import last_end

LONGEST_LINE = 100_000  # characters; what is longer is read in pieces, so that memory stays flat
_XZ, _GZIP = b"\xfd7zXZ\x00", b"\x1f\x8b"
_OTHER_PACKINGS = {b"PK\x03\x04": "zip", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"7z\xbc\xaf": "7z"}
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SAMPLE = 1 << 16  # bytes that an encoding is guessed from
_LEGACY = ["gb18030", "big5"]  # what Chinese files are in that are not UTF-8


def lines(path: Path, advance: Callable[[float], None] | None = None) -> Iterator[str]:
    """The lines of `path` without their ends; a line beyond `LONGEST_LINE` comes in pieces, cut at ends of sentences.

    `advance` is told how many more bytes of the file on the disk have been read.

    Raises:
        BadInput: there is no such file, it is damaged, packed in another way, not UTF-8 or not text, or a line of it
            goes on for `LONGEST_LINE` characters without the end of a sentence or a space.
    """
    try:
        yield from _decoded(path, advance)
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise BadInput(f"{path} is damaged or was cut off ({error}); copy it again") from None
    except OSError as error:
        raise BadInput(f"{path} can't be read: {error.strerror or error}") from None


def _decoded(path: Path, advance: Callable[[float], None] | None) -> Iterator[str]:
    try:
        yield from _lines(path, advance)
    except UnicodeDecodeError:
        raise BadInput(_misfit(path)) from None


def _lines(path: Path, advance: Callable[[float], None] | None) -> Iterator[str]:
    with path.open("rb") as raw, _unpacked(raw, path) as unpacked:
        text = io.TextIOWrapper(unpacked, encoding="utf-8-sig")
        number, rest, read = 1, "", 0
        while piece := text.readline(LONGEST_LINE):
            if "\x00" in piece:
                raise BadInput(f"{path}, line {number:,} holds a zero byte, so it is not text; leave the file out")
            if advance and (now := raw.tell()) > read:
                advance(now - read)
                read = now
            ended = piece.endswith("\n")
            line = rest + piece.removesuffix("\n")
            rest = ""
            if not ended and len(line) >= LONGEST_LINE:
                line, rest = _cut(line, path, number)
                _tell(path, number)
            elif not ended:
                rest, line = line, ""
                continue
            yield line
            number += ended
        if rest:
            yield rest


@cache  # once, however many times a file is read
def _tell(path: Path, number: int) -> None:
    say(
        f"{path}, 第 {number:,} 行很长，按句子切开 | line {number:,} is longer than {LONGEST_LINE:,} characters "
        "and is read in pieces, cut at ends of sentences"
    )


def _cut(line: str, path: Path, number: int) -> tuple[str, str]:
    """What of a line that goes on is whole sentences, and the rest."""
    end = last_end(line) or line.rfind(" ") + 1
    if not end:
        raise BadInput(
            f"{path}, line {number:,} has {len(line):,} characters and more without the end of a sentence or a space, "
            "so it is hardly running text; break it into lines or leave the file out"
        )
    return line[:end], line[end:]


def _unpacked(raw: BinaryIO, path: Path) -> BinaryIO:
    """The file's text as bytes; how it is packed shows in its first bytes, whatever its name says."""
    start = raw.read(6)
    raw.seek(0)
    if start.startswith(_XZ):
        return io.BufferedReader(lzma.LZMAFile(raw))
    if start.startswith(_GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw))
    if start.startswith(_UTF16_MARKS):
        raise BadInput(f"{path} is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 {path} > {path}.utf8")
    for mark, packing in _OTHER_PACKINGS.items():
        if start.startswith(mark):
            raise BadInput(f"{path} is packed with {packing}; unpack it, or pack it with xz or gzip")
    return io.BufferedReader(raw)  # type: ignore[type-var]


def _misfit(path: Path) -> str:
    """Where `path` stops being UTF-8, what it may be, and how to convert it."""
    pending, before, line = b"", 0, 1  # half a character, and bytes and lines before it
    begun = b""  # the current line as far as it has been read
    with path.open("rb") as raw, _unpacked(raw, path) as unpacked:
        while True:
            chunk = unpacked.read(CHUNK)
            data = pending + chunk
            try:
                data.decode()
                good = len(data)
            except UnicodeDecodeError as error:
                good = error.start
                if not chunk or error.end < len(data) or error.reason != "unexpected end of data":
                    break
            pending = data[good:]  # goes on in the next chunk
            before, line = before + good, line + data.count(b"\n", 0, good)
            begun = _last_line(begun + data[:good])[-_SAMPLE:]
    line += data.count(b"\n", 0, good)
    guess = from_bytes(_last_line(begun + data[:good]) + data[good : good + _SAMPLE], cp_isolation=_LEGACY).best()
    place = f"{path}, line {line:,}, byte {before + good + 1:,} is not UTF-8"
    encoding = guess.encoding.upper() if guess else "ENCODING"
    seems = f"it looks like {encoding}; " if guess else "if it is text in another ENCODING, "
    return f"{place}; {seems}convert it: {_converted(path, encoding)}"


def _last_line(data: bytes) -> bytes:
    return data[data.rfind(b"\n") + 1 :]


def _converted(path: Path, encoding: str) -> str:
    """The command that makes UTF-8 of the file."""
    with path.open("rb") as raw:
        start = raw.read(len(_XZ))
    target = path.name.removesuffix(".xz").removesuffix(".gz") + ".utf8"
    if start.startswith((_XZ, _GZIP)):
        unpack = "xz" if start.startswith(_XZ) else "gzip"
        return f"{unpack} -dc {path} | iconv -f {encoding} -t UTF-8 > {target}"
    return f"iconv -f {encoding} -t UTF-8 {path} > {target}"
