"""The rejects file: every row that was not imported, with its place and the reason; nothing is lost."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from model.errors import BadInput

RAW_CHARS = 200  # of a cell: enough to find the row again
REASONS_KEPT = 3
NAME_BYTES = 255  # what file systems allow
STEM_BYTES = 80  # of them, and a Chinese character takes three
LEVELS = 3  # of JSON inside a row
_NAME = re.compile(r"\w[\w.-]*-\d{8}T\d{12}Z\.jsonl")


class Rejects:
    """Rows in a hidden file; `publish` gives it its name. Made on the first row, so no rows, no file."""

    def __init__(self, folder: Path, stem: str) -> None:
        time = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
        self._path = folder / f"{_safe(stem)}-{time}.jsonl"
        self._partial = self._path.with_name(f".{self._path.name}.partial")
        self._file: TextIO | None = None
        self.count = 0
        self.first: list[str] = []

    def add(self, *, file: str, line: int, reason: str, raw: Any) -> None:
        """Write down one row."""
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._partial.open("w", encoding="utf-8", errors="backslashreplace")
        self.count += 1
        if len(self.first) < REASONS_KEPT:
            self.first.append(f"{file}, line {line}: {reason}")
        entry = {"file": file, "line": line, "reason": reason, "row": _shortened(raw)}
        self._file.write(json.dumps(entry, ensure_ascii=False) + "\n")

    def publish(self) -> Path | None:
        """The file under its name; None when nothing was rejected."""
        if self._file is None:
            return None
        self._file.close()
        self._partial.replace(self._path)
        return self._path

    def discard(self) -> None:
        """Leave nothing behind, unless it was published."""
        if self._file is not None:
            self._file.close()
            self._partial.unlink(missing_ok=True)


@contextmanager
def open_rejects(folder: Path, stem: str) -> Iterator[Rejects]:
    """Rejects that are gone at the end of the block unless they were published."""
    rejects = Rejects(folder, stem)
    try:
        yield rejects
    finally:
        rejects.discard()


def find_rejects(folder: Path, library: str, name: str) -> Path:
    """The rejects file called `name`, of an import into `library`; no name leads out of the folder.

    Raises:
        BadInput: no import has left such a file.
    """
    path = folder / name
    is_one = _NAME.fullmatch(name) and len(name.encode()) <= NAME_BYTES and name.startswith(_safe(f"{library}-"))
    if not is_one or path.is_symlink() or not path.is_file():
        raise BadInput(f"library {library!r} has no rejects file {name[:200]!r}; the answer to an import names its own")
    return path


def _safe(stem: str) -> str:
    """`stem` as part of a file's name."""
    return re.sub(r"[^\w.-]+", "_", stem).encode()[:STEM_BYTES].decode(errors="ignore")


def _shortened(raw: Any, levels: int = LEVELS) -> Any:
    if isinstance(raw, Mapping | list | tuple) and not levels:
        return "…"
    if isinstance(raw, Mapping):
        return {name: _shortened(cell, levels - 1) for name, cell in raw.items()}
    if isinstance(raw, list | tuple):
        return [_shortened(cell, levels - 1) for cell in raw]
    if raw is None or isinstance(raw, bool | int | float):
        return raw
    text = str(raw)
    return text if len(text) <= RAW_CHARS else text[:RAW_CHARS] + "…"
