"""The review queue: which samples people should look at, and what each look is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import review_items
from app.store.taxonomies import to_json
from model.files import canonical_json
from model.run import now

ITEMS_AT_ONCE = 5_000
OPEN = "open"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A sample that people should look at, and why.

    value: what a look is worth, 0 to 1: the chance that it changes the label. proposed: the labels that a machine would
    give, `proposed_by` it, this sure (0 to 1). details: what to show beside it.
    """

    sample_id: str
    reason: str
    value: float
    proposed: tuple[str, ...] | None = None
    proposed_by: str | None = None
    confidence: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class Queued(NamedTuple):
    """added: new items. raised: open ones that are worth more now. known: open ones that stay as they are."""

    added: int
    raised: int
    known: int


def add_items(connection: sa.Connection, library_id: int, wanted: Sequence[Wanted], *, by: str, version: int) -> Queued:
    """Queue samples, each once; one that waits already takes the new reason where that makes it worth more.

    Items that somebody has claimed stay as they are. version: of the taxonomy that labels are proposed in.
    """
    added = raised = known = 0
    for start in range(0, len(wanted), ITEMS_AT_ONCE):
        some = {item.sample_id: item for item in wanted[start : start + ITEMS_AT_ONCE]}
        waiting = _waiting(connection, library_id, list(some))
        new = [_values(item) for sample_id, item in some.items() if sample_id not in waiting]
        shared = {"library_id": library_id, "created_by": by, "created_at": now(), "state": OPEN}
        if new:
            connection.execute(
                sa.insert(review_items), [shared | {"taxonomy_version": version} | values for values in new]
            )
        better = [
            {"of_item": row.id, "version": version} | {f"new_{name}": value for name, value in _values(item).items()}
            for sample_id, row in waiting.items()
            if (item := some[sample_id]).value > row.value and row.claimed_by is None
        ]
        if better:
            columns = [name for name in _values(wanted[0]) if name != "sample_id"]
            connection.execute(
                sa.update(review_items)
                .where(review_items.c.id == sa.bindparam("of_item"))
                .values(
                    {name: sa.bindparam(f"new_{name}") for name in columns}
                    | {"taxonomy_version": sa.bindparam("version")}
                ),
                better,
            )
        added, raised, known = added + len(new), raised + len(better), known + len(waiting) - len(better)
    return Queued(added, raised, known)


def _waiting(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> dict[str, Any]:
    """The open items of these samples, by sample."""
    columns = [review_items.c[name] for name in ("id", "sample_id", "value", "claimed_by")]
    query = sa.select(*columns).where(
        review_items.c.library_id == library_id, review_items.c.state == OPEN, review_items.c.sample_id.in_(ids)
    )
    return {row.sample_id: row for row in connection.execute(query)}


def _values(item: Wanted) -> dict[str, Any]:
    return {
        "sample_id": item.sample_id,
        "reason": item.reason,
        "value": item.value,
        "proposed": None if item.proposed is None else canonical_json(sorted(item.proposed)).decode(),
        "proposed_by": item.proposed_by,
        "confidence": item.confidence,
        "details": to_json(item.details),
    }
