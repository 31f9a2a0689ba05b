"""The texts of a library alone, without what was said about them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from app.store.samples import ROWS_AT_ONCE
from app.store.tables import samples


class SampleText(NamedTuple):
    """A sample's id, its text, and the other text if it is a pair."""

    id: str
    text: str
    pair: str | None


def texts_by_id(connection: sa.Connection, library_id: int) -> Iterator[SampleText]:
    """All samples of the library, labelled or not, sorted by the bytes of their ids, in flat memory."""
    rows = connection.execute(_texts(library_id).order_by(samples.c.id).execution_options(yield_per=ROWS_AT_ONCE))
    for row in rows:
        yield SampleText(row.id, row.text, row.pair)


def texts_of(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> dict[str, SampleText]:
    """The samples of these ids, by id."""
    found = {}
    for start in range(0, len(ids), ROWS_AT_ONCE):  # a statement takes no more than some ten thousand values
        some = ids[start : start + ROWS_AT_ONCE]
        for row in connection.execute(_texts(library_id).where(samples.c.id.in_(some))):
            found[row.id] = SampleText(row.id, row.text, row.pair)
    return found


def _texts(library_id: int) -> sa.Select[tuple[str, str, str | None]]:
    return sa.select(samples.c.id, samples.c.text, samples.c.pair).where(samples.c.library_id == library_id)
