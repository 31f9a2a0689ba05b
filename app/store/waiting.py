"""Which samples wait for a look that somebody asked for, and why."""

import sqlalchemy as sa

from app.store.reviews import OPEN
from app.store.tables import review_items


def waiting_for(connection: sa.Connection, library_id: int, reason: str) -> set[str]:
    """The ids of the samples whose review is open for this reason."""
    query = sa.select(review_items.c.sample_id).where(
        review_items.c.library_id == library_id, review_items.c.state == OPEN, review_items.c.reason == reason
    )
    return set(connection.scalars(query))
