"""Migrations: a database of the first schema, with a library in it, becomes one of today and loses nothing."""

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError

from app.settings import Settings
from app.store import database
from app.store.database import open_database
from app.store.tables import label_events
from tests.app.store.schemas import schema_differences

ROWS = {
    "libraries": {
        "id": 1,
        "name": "reviews",
        "taxonomy": "{}",
        "declared": False,
        "normaliser": "{}",
        "created_at": "2026-01-01",
    },
    "samples": {"library_id": 1, "id": "00", "text": "很好", "duplicate_group": 1, "source_id": 1, "line": 1},
    "label_events": {
        "library_id": 1,
        "sample_id": "00",
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


UPGRADE = command.upgrade


def _only_to_the_first(config: Config, _head: str) -> None:
    UPGRADE(config, "0001")
