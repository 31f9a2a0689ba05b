"""Migrations: a database of the first schema, with a library in it, becomes one of today and loses nothing."""

import json

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError

from app.library.browsing import browse
from app.library.splits import duplicate_group
from app.library.taxonomies import list_versions, show_taxonomy
from app.library.verifying import verify
from app.settings import Settings
from app.store import database
from app.store.database import open_database
from app.store.tables import label_events
from model.text import Normaliser, sample_id
from model.types import Task, Taxonomy
from tests.app.store.schemas import schema_differences

ROWS = {
    "libraries": {
        "id": 1,
        "name": "reviews",
        "taxonomy": json.dumps(Taxonomy(Task.SINGLE, ("好评",)).to_json()),
        "declared": False,
        "normaliser": json.dumps(Normaliser().to_json()),
        "created_at": "2026-01-01",
    },
    "sources": {"id": 1, "library_id": 1, "name": "a.csv", "sha256": "0" * 64, "imported_at": "2026-01-01"},
    "samples": {
        "library_id": 1,
        "id": sample_id("很好"),
        "text": "很好",
        "duplicate_group": duplicate_group("", "很好", None),
        "source_id": 1,
        "line": 1,
    },
    "label_events": {
        "library_id": 1,
        "sample_id": sample_id("很好"),
        "labels": '["好评"]',
        "actor_kind": "import",
        "actor": "wenlei library import",
        "created_at": "2026-01-01",
    },
}


def test_a_library_of_the_first_schema_is_taken_along(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(database.command, "upgrade", _only_to_the_first)
        with open_database(settings) as engine, engine.begin() as connection:
            for table, row in ROWS.items():
                columns = [sa.column(name) for name in row]
                connection.execute(sa.insert(sa.table(table, *columns)).values(row))
    with open_database(settings) as engine:
        with engine.connect() as connection:
            assert schema_differences(connection) == []
            for table, row in ROWS.items():
                columns = [sa.column(name) for name in row]
                assert connection.execute(sa.select(*columns).select_from(sa.table(table))).all() == [
                    tuple(row.values())
                ]
            assert connection.scalars(sa.select(label_events.c.undoes)).all() == [None]
        with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
            connection.execute(label_events.update().values(undoes=1))
        # the catalogue, which that schema did not have, is made when it is first needed
        assert browse(engine, library="reviews", query="很").samples[0].labels == ("好评",)
        assert show_taxonomy(engine, "reviews")[1] == {"好评": 1}
        assert [version.kind for version in list_versions(engine, "reviews")] == ["start"]
        assert list(verify(engine)) == []


UPGRADE = command.upgrade


def _only_to_the_first(config: Config, _head: str) -> None:
    UPGRADE(config, "0001")
