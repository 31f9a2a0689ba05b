"""Find the sample that a person means: by its id, by the beginning of its id, or by its text."""

import re

import sqlalchemy as sa

from app.store.libraries import Library
from app.store.samples import ids_from
from model.errors import UnknownSample
from model.text import check_text, sample_id
from model.types import preview

_ID_START = re.compile(r"[0-9a-f]{1,32}")
LOOKED_AT = 9  # ids that begin alike; a message shows a few


def find_sample(connection: sa.Connection, library: Library, sample: str, *, is_text: bool = False) -> str:
    """The id of the one sample of `library` that `sample` means: its text, or the beginning of its id.

    Raises:
        UnknownSample: there is none, or there are several. BadText: the text is none.
    """
    name = library.definition.name
    if is_text:
        start = sample_id(check_text(library.definition.normaliser(sample), where="--text"))
        missing = (
            f"library {name!r} has no sample with the text {sample[:40]!r}; a pair of texts is found by its id only"
        )
    else:
        start = sample.strip().lower()
        missing = f"library {name!r} has no sample whose id begins with {sample[:40]!r}; add --text if it is a text"
    found = ids_from(connection, library.id, start, limit=LOOKED_AT) if _ID_START.fullmatch(start) else []
    if not found:
        raise UnknownSample(missing)
    if len(found) > 1:
        raise UnknownSample(f"{preview(found, 3)} all begin with {start!r}; give more digits of the id")
    return found[0]
