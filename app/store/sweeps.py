"""Sweeps: what a machine decided about many samples in one go, with the label events that it consists of."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.tables import label_events, sweeps
from app.store.taxonomies import to_json
from model.files import canonical_json
from model.provenance import now

ROWS_AT_ONCE = 10_000


class Sweep(NamedTuple):
    """A sweep of `kind`: drop, relabel, gate, or undo, which withdraws the events of sweep `undoes`.

    actor: the machine that decided. asked: with which settings. outcome: what came of it. by: who had it done.
    """

    id: int
    kind: str
    actor: str
    asked: Mapping[str, Any]
    outcome: Mapping[str, Any]
    undoes: int | None
    by: str
    created_at: str
    note: str | None


class SweptLabels(NamedTuple):
    """What a sweep says about a sample. labels: sorted; none take its label away. confidence: 0 to 1."""

    sample_id: str
    labels: tuple[str, ...]
    confidence: float | None


def record_sweep(
    connection: sa.Connection,
    library_id: int,
    *,
    kind: str,
    actor: str,
    asked: Mapping[str, Any],
    outcome: Mapping[str, Any],
    by: str,
    undoes: int | None = None,
    note: str | None = None,
) -> int:
    """Append a sweep, whose events follow; its number."""
    values = {
        "library_id": library_id,
        "kind": kind,
        "actor": actor,
        "asked": to_json(asked),
        "outcome": to_json(outcome),
        "undoes": undoes,
        "by": by,
        "created_at": now(),
        "note": note,
    }
    sweep: int = connection.execute(sa.insert(sweeps).values(values).returning(sweeps.c.id)).scalar_one()
    return sweep


def add_swept(
    connection: sa.Connection, library_id: int, sweep: int, rows: Sequence[SweptLabels], *, actor: str, version: int
) -> None:
    """Append what a model says in a sweep. version: of the taxonomy that it says it in."""
    if not rows:
        return
    shared = {
        "library_id": library_id,
        "actor_kind": "model",
        "actor": actor,
        "created_at": now(),
        "taxonomy_version": version,
        "sweep_id": sweep,
    }
    said = (
        {"sample_id": row.sample_id, "labels": canonical_json(row.labels).decode(), "confidence": row.confidence}
        for row in rows
    )
    connection.execute(sa.insert(label_events), [shared | each for each in said])


def add_undoes(
    connection: sa.Connection, library_id: int, sweep: int, events: Mapping[int, str], *, person: str, version: int
) -> None:
    """Append that a person withdraws events, each the number of one → its sample's id, in a sweep."""
    if not events:
        return
    shared = {
        "library_id": library_id,
        "labels": "[]",
        "actor_kind": "person",
        "actor": person,
        "created_at": now(),
        "taxonomy_version": version,
        "sweep_id": sweep,
    }
    rows = [shared | {"sample_id": sample_id, "undoes": event} for event, sample_id in events.items()]
    connection.execute(sa.insert(label_events), rows)


def sweep_history(connection: sa.Connection, library_id: int) -> list[Sweep]:
    """All sweeps of the library and their undoings, oldest first."""
    columns = [sweeps.c[name] for name in Sweep._fields]
    query = sa.select(*columns).where(sweeps.c.library_id == library_id).order_by(sweeps.c.id)
    return [
        Sweep(*row)._replace(asked=json.loads(row.asked), outcome=json.loads(row.outcome))
        for row in connection.execute(query)
    ]


def swept_samples(connection: sa.Connection, sweep: int) -> Iterator[list[str]]:
    """The ids of the samples that the sweep speaks about, sorted, some at a time."""
    last = ""
    query = sa.select(label_events.c.sample_id).where(label_events.c.sweep_id == sweep)
    query = query.distinct().order_by(label_events.c.sample_id).limit(ROWS_AT_ONCE)
    while some := list(connection.scalars(query.where(label_events.c.sample_id > last))):
        yield some
        last = some[-1]
