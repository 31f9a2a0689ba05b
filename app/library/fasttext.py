"""fastText's training files: a line a text, its labels as words that begin with `__label__`."""

import re
from collections.abc import Iterable, Iterator

from app.library.readers import Row

_LABEL = re.compile(r"(?:^|(?<=\s))__label__(\S+)\s*")


def begins_with_label(line: str) -> bool:
    """Whether the first word of `line` is a label."""
    return _LABEL.match(line) is not None


def fasttext_rows(lines: Iterable[str]) -> Iterator[Row]:
    """The text of each line in the first cell, the list of its labels in the second."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield Row(number, [_LABEL.sub("", line).strip(), _LABEL.findall(line)])
