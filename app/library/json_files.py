"""Rows out of one JSON document: a list of objects, or an object that holds one; read in flat memory."""

import io
from collections.abc import Iterator
from typing import IO, Any

import ijson

from app.library.encoding import Opener
from app.library.readers import Broken, Row
from model.errors import BadInput


def document_rows(look: Opener, read: Opener, encoding: str, *, name: str) -> Iterator[Row | Broken]:
    """The objects of the document's list, numbered from 1.

    `look` opens the file to find the list, `read` to read it. A document that breaks off has rows until then; whoever
    reads them must be able to take them back.

    Raises:
        BadInput: it is not JSON, or holds no list of objects, or several.
    """
    number = 0
    try:
        with look() as stream:
            starts_with_list = next(ijson.basic_parse(_Utf8(stream, encoding)), ("", None))[0] == "start_array"
        prefix = "" if starts_with_list else _only_list(look, encoding, name=name)
        with read() as stream:
            items = ijson.items(_Utf8(stream, encoding), f"{prefix}.item" if prefix else "item")
            for number, item in enumerate(items, 1):
                yield _row(number, item)
    except (ijson.JSONError, UnicodeError) as error:
        reason = str(error.args[1] if isinstance(error, UnicodeError) else error).splitlines()[0]
        raise BadInput(
            f"{name}: not JSON after object {number} ({reason}); repair it, or write one JSON object a line"
        ) from None


def _row(number: int, item: Any) -> Row | Broken:
    if isinstance(item, dict):
        return Row(number, item)
    return Broken(number, f"a JSON object is needed, not {type(item).__name__}", str(item))


def _only_list(look: Opener, encoding: str, *, name: str) -> str:
    """Where in an object the list of objects is: the names that lead there, joined by full stops."""
    found: list[str] = []
    inside = 0  # how many lists the parser is in
    with look() as stream:
        for prefix, event, _ in ijson.parse(_Utf8(stream, encoding)):
            if event == "start_array":
                inside += 1
            elif event == "end_array":
                inside -= 1
            elif event == "start_map" and inside == 1 and prefix.removesuffix(".item") not in found:
                found.append(prefix.removesuffix(".item"))
    if len(found) != 1:
        what = f"{len(found)} lists of objects ({', '.join(found)})" if found else "no list of objects"
        raise BadInput(f"{name} holds {what}; give a file that holds one, with an object for each text")
    return found[0]


class _Utf8:
    """A file in any encoding as the UTF-8 bytes that the parser wants; broken ones stay as they are, and broken."""

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")

    def read(self, size: int) -> bytes:
        return self._text.read(size).encode(errors="surrogateescape")
