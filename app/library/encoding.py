"""Find out how a file spells its characters: marks at its start, then UTF-8, then GB18030 or Big5, then a guess."""

import codecs
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import IO, NamedTuple

from charset_normalizer import from_bytes

from model.errors import BadInput
from model.files import CHUNK

Opener = Callable[[], AbstractContextManager[IO[bytes]]]

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# A GB18030 text that is valid UTF-8 by chance is rare even for one line; a UTF-8 file with broken lines is not.
_MOSTLY = 0.5
_SAMPLE_BYTES = 1 << 18
_ENOUGH_BYTES = 64 << 20  # to tell broken lines of a text from what is no text at all
# They make up a good part of any running text. Most of what one Chinese code page writes can also be read by another,
# as characters that nobody uses.
_COMMON = frozenset(
    "的一是不了在有人我他這这個个們们來来到說说上大為为子和你地出也時时年得就那要下以生會会着去過过家學学對对可裡里後后"
    "小麼么心多天能好都然沒没於于起還还發发成事只作當当想看無无開开用行方如前所本見见經经面公同三已老從从動动兩两長长很"
)
# A title may have none of them. But each code page keeps its punctuation and its few thousand everyday characters under
# first bytes of their own; together the two tell 99.8 % of texts of four characters.
_EVERYDAY = {
    "gb18030": ("gb2312", frozenset((*range(0xA1, 0xA4), *range(0xB0, 0xD8)))),
    "big5hkscs": ("big5", frozenset(range(0xA1, 0xC7))),
}


class Misfit(NamedTuple):
    """The first place that an encoding can't read: 1-based line, 1-based byte of the file, and its value."""

    line: int
    byte: int
    value: int


def detect_encoding(open_file: Opener, *, name: str) -> str:
    """The encoding that reads the file whole, or all of it but a few broken lines.

    Raises:
        BadInput: no encoding reads it.
    """
    with open_file() as stream:
        head = stream.read(4)
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            # a broken line of UTF-8 ends with the line; in the others nothing after it can be trusted
            return encoding if mark == codecs.BOM_UTF8 else check_encoding(open_file, encoding, name=name)
    if first_misfit(open_file, "utf-8") is None:
        return "utf-8"
    if _share_of_lines(open_file, "utf-8") > _MOSTLY:
        return "utf-8"
    with open_file() as stream:
        sample = stream.read(_SAMPLE_BYTES)
    fitting = [encoding for encoding in _EVERYDAY if first_misfit(open_file, encoding) is None]
    if fitting:
        return max(fitting, key=lambda encoding: _commonness(sample, encoding))
    guess = from_bytes(sample).best()
    if guess is not None and first_misfit(open_file, guess.encoding) is None:
        return guess.encoding
    if _share_of_lines(open_file, "gb18030") > _MOSTLY:
        return "gb18030"
    raise BadInput(
        f"{name} is not text in any encoding that is known here; name it with --encoding, or save it as UTF-8"
    )


def check_encoding(open_file: Opener, encoding: str, *, name: str) -> str:
    """What to decode the file with, if `encoding` reads it whole: itself, or for UTF-8 what also skips a mark.

    Raises:
        BadInput: there is no such encoding, or it doesn't read the file; the message names line and byte.
    """
    try:
        "".encode(encoding)
    except LookupError:
        raise BadInput(f"encoding {encoding!r} is not known; take utf-8, gb18030, big5, utf-16, … or auto") from None
    if misfit := first_misfit(open_file, encoding):
        raise BadInput(
            f"{name}, line {misfit.line}, byte {misfit.byte} (0x{misfit.value:02x}) is not {encoding}; "
            "give the right --encoding or leave it to auto"
        )
    return "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding


def first_misfit(open_file: Opener, encoding: str) -> Misfit | None:
    """Where `encoding` fails first; None when it reads the whole file."""
    decoder = codecs.getincrementaldecoder(encoding)()
    offset, line = 0, 1
    with open_file() as stream:
        while True:
            chunk = stream.read(CHUNK)
            offset += len(chunk)
            try:
                line += decoder.decode(chunk, final=not chunk).count("\n")
            except UnicodeDecodeError as error:
                before = error.object[: error.start].decode(encoding, "ignore").count("\n")
                byte = offset - len(error.object) + error.start + 1
                return Misfit(line=line + before, byte=byte, value=error.object[error.start])
            except UnicodeError:  # UTF-16 and UTF-32 say so when the mark at the start is missing
                return Misfit(line=1, byte=1, value=chunk[0])
            if not chunk:
                return None


def _commonness(sample: bytes, encoding: str) -> float:
    """The shares of the commonest and of everyday characters in `sample`, which may end in the middle of one."""
    text = codecs.getincrementaldecoder(encoding)().decode(sample)
    code_page, first_bytes = _EVERYDAY[encoding]
    everyday = sum(char.encode(code_page, "replace")[0] in first_bytes for char in text)
    return (sum(char in _COMMON for char in text) + everyday) / max(1, len(text))


def _share_of_lines(open_file: Opener, encoding: str) -> float:
    """Of the lines that are not plain ASCII, the share that `encoding` reads; of long ones, and long files, the
    beginning tells.
    """
    good = total = seen = 0
    begins = True
    with open_file() as stream:
        while seen < _ENOUGH_BYTES and (line := stream.readline(CHUNK)):
            seen += len(line)
            if begins and not line.isascii():
                total += 1
                good += _reads(line, encoding)
            begins = line.endswith(b"\n")
    return good / total if total else 1.0


def _reads(line: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(line, final=line.endswith(b"\n"))
    except UnicodeDecodeError:
        return False
    return True
