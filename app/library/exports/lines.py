"""Formats of one record a line: JSON lines, doccano and fastText."""

import re
from collections.abc import Iterable
from pathlib import Path

from app.library.exports.content import Content, to_json
from model.errors import BadInput
from model.types import Taxonomy

_MARK = "__label__"
_MARK_IN_TEXT = re.compile(rf"(?<!\S){_MARK}")


def write_jsonl(content: Content, path: Path) -> None:
    """One JSON object a sample."""
    _write(path, (to_json(content.record(sample)) for sample in content.samples()))


def write_doccano(content: Content, path: Path) -> None:
    """doccano's JSONL for text classification: a text and a list of labels; it keeps other fields as metadata."""
    _write(
        path,
        (
            to_json(
                {
                    "text": sample.text,
                    "label": list(sample.labels),
                    **({"pair": sample.pair} if sample.pair is not None else {}),
                    "sample_id": sample.id,
                    "split": sample.split.value,
                }
            )
            for sample in content.samples()
        ),
    )


def write_fasttext(content: Content, path: Path) -> None:
    """fastText's format for supervised training: `__label__A __label__B text`.

    fastText ends a label at white space, so that inside of one becomes `_`; a word of a text that looks like a label
    loses an underscore.

    Raises:
        BadInput: there are pairs of texts, or two labels become one.
    """
    if content.has_pairs:
        raise BadInput("fastText knows no pairs of texts; take jsonl, csv or parquet")
    marks = _marks(content.taxonomy)
    _write(
        path,
        (
            " ".join([*(marks[label] for label in sample.labels), *_MARK_IN_TEXT.sub("__label_", sample.text).split()])
            for sample in content.samples()
        ),
    )


def _marks(taxonomy: Taxonomy) -> dict[str, str]:
    marks = {label: _MARK + "_".join(label.split()) for label in taxonomy.labels}
    owners: dict[str, str] = {}
    for label, mark in marks.items():
        if (other := owners.setdefault(mark, label)) != label:
            raise BadInput(
                f"labels {other!r} and {label!r} would both be {mark} in fastText; take jsonl, csv or parquet"
            )
    return marks


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
