"""The pool: the samples of a library that carry no label now, in flat memory."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from app.store.catalogue import LABELLERS
from app.store.tables import catalogue, label_events, samples, sources, sweeps
from app.store.texts import SampleText


class Unlabelled(NamedTuple):
    """A sample without a label. spoken_of: a person, an import or a sweep has at some time said something about it."""

    sample: SampleText
    spoken_of: bool


def count_unlabelled(connection: sa.Connection, library_id: int) -> int:
    """How many samples of the library carry no label, whatever was said of them."""
    query = sa.select(sa.func.count()).select_from(catalogue)
    return connection.execute(query.where(*_without_label(library_id))).scalar_one()


def unlabelled_after(connection: sa.Connection, library_id: int, after: str, *, limit: int) -> Sequence[Unlabelled]:
    """The first samples without a label whose ids sort after `after`, sorted by the bytes of their ids."""
    said = sa.exists().where(
        label_events.c.library_id == library_id,
        label_events.c.sample_id == samples.c.id,
        label_events.c.actor_kind.in_(LABELLERS) | label_events.c.sweep_id.is_not(None),
    )
    same = (samples.c.library_id == catalogue.c.library_id) & (samples.c.id == catalogue.c.sample_id)
    query = (
        sa.select(samples.c.id, samples.c.text, samples.c.pair, said.label("spoken_of"))
        .join(catalogue, same)
        .where(*_without_label(library_id), catalogue.c.sample_id > after)
        .order_by(catalogue.c.sample_id)
        .limit(limit)
    )
    return [
        Unlabelled(SampleText(row.id, row.text, row.pair), bool(row.spoken_of)) for row in connection.execute(query)
    ]


def count_swept(connection: sa.Connection, library_id: int, kind: str) -> int:
    """How many samples have their current label from a sweep of `kind`."""
    query = _swept(sa.select(sa.func.count()).select_from(catalogue), library_id, kind)
    count: int = connection.execute(query).scalar_one()
    return count


def swept_after(
    connection: sa.Connection, library_id: int, kind: str, after: str, *, limit: int
) -> Sequence[SampleText]:
    """The first samples whose current label comes from a sweep of `kind` and whose ids sort after `after`, sorted."""
    same = (samples.c.library_id == catalogue.c.library_id) & (samples.c.id == catalogue.c.sample_id)
    query = (
        _swept(sa.select(samples.c.id, samples.c.text, samples.c.pair).join(catalogue, same), library_id, kind)
        .where(catalogue.c.sample_id > after)
        .order_by(catalogue.c.sample_id)
        .limit(limit)
    )
    return [SampleText(row.id, row.text, row.pair) for row in connection.execute(query)]


def labels_of(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The current labels, sorted, of these samples, if they have any; at most some ten thousand of them."""
    query = sa.select(catalogue.c.sample_id, catalogue.c.labels)
    here = (catalogue.c.library_id == library_id, catalogue.c.sample_id.in_(ids), catalogue.c.labels.is_not(None))
    return {row.sample_id: tuple(json.loads(row.labels)) for row in connection.execute(query.where(*here))}


def sources_of(connection: sa.Connection, library_id: int, ids: Sequence[str]) -> dict[str, str]:
    """The name of the file that each of these samples came from; at most some ten thousand of them."""
    query = sa.select(samples.c.id, sources.c.name).join(sources, sources.c.id == samples.c.source_id)
    rows = connection.execute(query.where(samples.c.library_id == library_id, samples.c.id.in_(ids)))
    return {row.id: row.name for row in rows}


def _swept(query: sa.Select[Any], library_id: int, kind: str) -> sa.Select[Any]:
    return (
        query.join(label_events, label_events.c.id == catalogue.c.event)
        .join(sweeps, sweeps.c.id == label_events.c.sweep_id)
        .where(catalogue.c.library_id == library_id, sweeps.c.kind == kind)
    )


def _without_label(library_id: int) -> tuple[sa.ColumnElement[bool], ...]:
    return catalogue.c.library_id == library_id, catalogue.c.labels.is_(None)
