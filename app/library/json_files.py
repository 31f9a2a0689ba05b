"""Rows out of one JSON document: a list of objects, or an object that holds one; read in flat memory."""

import io
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import ijson

from app.library.encoding import Opener
from app.library.readers import Broken, Row
from model.errors import BadInput

# No row of texts comes near either. A parser that is not held back keeps a whole object in memory, reads a long string
# in quadratic time, and needs a gigabyte for twenty thousand brackets.
MAX_OBJECT_BYTES = 4 << 20
MAX_DEPTH = 200
MAX_LISTS_TOLD = 10

Event = tuple[str, Any]


def document_rows(look: Opener, read: Opener, encoding: str, *, name: str) -> Iterator[Row | Broken]:
    """The objects of the document's list, numbered from 1.

    `look` opens the file to find the list, `read` to read it. A document that breaks off has rows until then; whoever
    reads them must be able to take them back.

    Raises:
        BadInput: it is not JSON, holds no list of objects or several, or an object in it is absurdly large or deep.
    """
    number = 0
    try:
        with look() as stream:
            starts_with_list = next(_events(stream, encoding), ("", None))[0] == "start_array"
        place = _Place("", 1) if starts_with_list else _only_list(look, encoding, name=name)
        with read() as stream:
            events = _events(stream, encoding, outside=place.depth)
            items = ijson.items(ijson.parse(events), f"{place.prefix}.item" if place.prefix else "item")
            for number, item in enumerate(items, 1):
                yield _row(number, item)
    except _Oversized as error:
        raise BadInput(
            f"{name}: after object {number} comes {error}; is this the right file? If so, take it out, "
            "or write one JSON object a line"
        ) from None
    except (ijson.JSONError, UnicodeError) as error:
        reason = str(error.args[1] if isinstance(error, UnicodeError) else error).splitlines()[0]
        raise BadInput(
            f"{name}: not JSON after object {number} ({reason}); repair it, or write one JSON object a line"
        ) from None


def _row(number: int, item: Any) -> Row | Broken:
    if isinstance(item, dict):
        return Row(number, item)
    return Broken(number, f"a JSON object is needed, not {type(item).__name__}", str(item))


class _Place(NamedTuple):
    """Where a list is: the names that lead there, joined by full stops, and how many lists and objects it ends."""

    prefix: str
    depth: int


def _only_list(look: Opener, encoding: str, *, name: str) -> _Place:
    """Where in an object the list of objects is."""
    found: dict[str, _Place] = {}
    lists = depth = 0  # how many lists the parser is in, and how many lists and objects
    with look() as stream:
        for prefix, event, _ in ijson.parse(_events(stream, encoding)):
            if event == "start_map" and lists == 1:
                path = prefix.removesuffix(".item")
                found.setdefault(path, _Place(path, depth))
                if len(found) == MAX_LISTS_TOLD:
                    break
            depth += _STEPS.get(event, 0)
            lists += _STEPS.get(event, 0) if event.endswith("array") else 0
    if len(found) != 1:
        count = f"{len(found)}{' or more' if len(found) == MAX_LISTS_TOLD else ''}"
        what = f"{count} lists of objects ({', '.join(found)})" if found else "no list of objects"
        raise BadInput(f"{name} holds {what}; give a file that holds one, with an object for each text")
    return next(iter(found.values()))


_STEPS = {"start_map": 1, "start_array": 1, "end_map": -1, "end_array": -1}


class _Oversized(Exception):
    """What can't be read in flat memory."""


def _events(stream: IO[bytes], encoding: str, *, outside: int = MAX_DEPTH) -> Iterator[Event]:
    """What the parser meets in the file.

    outside: lists and objects around what is kept in memory as a whole; deeper than that, bytes count as one object.

    Raises:
        _Oversized: an object, or a single value, is too large, or too deep.
    """
    text = _Utf8(stream, encoding)
    depth = 0
    for event in ijson.basic_parse(text):
        depth += _STEPS.get(event[0], 0)
        if depth > MAX_DEPTH:
            raise _Oversized(f"one with more than {MAX_DEPTH} lists and objects inside each other")
        if depth <= outside:
            text.since_last = 0
        yield event


class _Utf8:
    """A file in any encoding as the UTF-8 bytes that the parser wants; broken ones stay as they are, and broken.

    since_last: bytes read since the end of the last object; whoever sees one end sets it to 0.
    """

    def __init__(self, stream: IO[bytes], encoding: str) -> None:
        self.since_last = 0
        self._text = io.TextIOWrapper(stream, encoding, errors="surrogateescape", newline="")

    def read(self, size: int) -> bytes:
        read = self._text.read(size).encode(errors="surrogateescape")
        self.since_last += len(read)
        if self.since_last > MAX_OBJECT_BYTES:
            raise _Oversized(f"one with more than {MAX_OBJECT_BYTES >> 20} MiB")
        return read
