"""Folders of texts: each sub-folder is a label, each of its .txt files one text."""

from collections.abc import Iterator
from pathlib import Path

from app.library.encoding import detect_encoding
from app.library.readers import MAX_LINE_CHARS, Broken, Row
from app.library.sources import Source, folder_texts
from model.errors import BadInput

COLUMNS = ("text", "label", "file")


def folder_rows(folder: Path, encoding: str) -> Iterator[Row | Broken]:
    """A row for each file, in the order of labels and names: its text, its label, its name; numbered from 1."""
    for number, path in enumerate(folder_texts(folder), 1):
        label, name = path.parent.name, path.relative_to(folder).as_posix()
        try:
            yield Row(number, [_text(path, encoding), label, name])
        except BadInput as error:
            yield Broken(number, str(error), ["", label, name])


def _text(path: Path, encoding: str) -> str:
    known = detect_encoding(Source(path).open, name=path.name) if encoding == "auto" else encoding
    with path.open(encoding=known, errors="surrogateescape") as file:
        return file.read(MAX_LINE_CHARS)
