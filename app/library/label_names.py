"""Read a file that names the classes: a name a line, or JSON objects of a number and a name each."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.library.cells import label_name
from app.library.encoding import detect_encoding
from app.library.sources import Source
from model.errors import BadInput


def read_label_names(path: Path) -> tuple[str, ...]:
    """The names in the order of their classes: position i names class i.

    Raises:
        BadInput: the file can't be read, a name is empty or stands twice, or the numbers are not 0, 1, 2, …
    """
    if not path.is_file():
        raise BadInput(f"--label-names {path}: there is no such file")
    encoding = detect_encoding(Source(path).open, name=str(path))
    try:
        text = path.read_text(encoding).rstrip()
    except UnicodeDecodeError as error:
        raise BadInput(f"--label-names {path}: byte {error.start + 1} is not {encoding}; save it as UTF-8") from None
    json_text = text.lstrip()
    raw_names = _from_json(json_text, path) if json_text[:1] in ("{", "[") else text.splitlines()
    names = check_label_names(raw_names, place=f"--label-names {path}, line")
    if not names:
        raise BadInput(f"--label-names {path} is empty; write one class name a line")
    return names


def check_label_names(raw_names: Iterable[str], *, place: str) -> tuple[str, ...]:
    """The names as labels are spelled; `place`: what messages call them, before their number.

    Raises:
        BadInput: a name is empty or stands twice.
    """
    names: dict[str, None] = {}
    for number, name in enumerate(map(label_name, raw_names), 1):
        if not name:
            raise BadInput(f"{place} {number}: the name is empty")
        if name in names:
            raise BadInput(f"{place} {number}: {name!r} stands twice")
        names[name] = None
    return tuple(names)


def _from_json(text: str, path: Path) -> list[str]:
    try:
        objects = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines() if line]
    except ValueError as error:
        raise BadInput(f"--label-names {path} is not JSON: {error}") from None
    numbered = dict(_number_and_name(item, path) for item in objects)
    if len(numbered) < len(objects) or sorted(numbered) != list(range(len(objects))):
        raise BadInput(f"--label-names {path}: the {len(objects)} numbers must be 0 to {len(objects) - 1}, each once")
    return [numbered[number] for number in sorted(numbered)]


def _number_and_name(item: Any, path: Path) -> tuple[int, str]:
    values = list(item.values()) if isinstance(item, dict) else []
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    names = [value for value in values if isinstance(value, str)]
    if len(numbers) != 1 or len(names) != 1:
        raise BadInput(f"--label-names {path}: {str(item)[:80]} is not an object of one number and one name")
    return numbers[0], names[0]
