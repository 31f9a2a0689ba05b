"""The database: migrations, refusals, and events that can't be changed, on SQLite and PostgreSQL."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from app.settings import Settings
from app.store import database
from app.store.database import connect, open_database, reading, writing
from app.store.tables import label_events, libraries, samples
from model.errors import BadInput, DatabaseUnavailable
from tests.app.store.schemas import schema_differences
from tests.databases import Databases


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    with open_database(settings) as engine:
        yield engine


def test_migrations_make_the_tables_that_the_queries_expect(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert schema_differences(connection) == []


def test_opening_again_keeps_what_is_there(settings: Settings) -> None:
    for expected in (0, 1):
        with open_database(settings) as engine, connect(engine) as connection, writing(connection):
            assert connection.scalar(sa.select(sa.func.count()).select_from(libraries)) == expected
            if not expected:
                _add_library(connection)


def test_asking_whether_the_database_is_set_up_makes_nothing(settings: Settings, tmp_path: Path) -> None:
    assert not database.is_set_up(settings)
    assert not (tmp_path / "home").exists()
    assert not list(tmp_path.glob("*.db"))
    with open_database(settings):
        assert database.is_set_up(settings)


def test_opening_does_not_wait_for_somebody_who_writes(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_TIMEOUT", 0)
    with open_database(settings) as engine, connect(engine) as writer, writing(writer):
        _add_library(writer)
        with open_database(settings) as other, connect(other) as connection, reading(connection):
            assert connection.scalar(sa.select(sa.func.count()).select_from(libraries)) == 0


def test_when_all_connections_are_in_use_it_is_told(engine: sa.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.pool, "_timeout", 0.05)
    with ExitStack() as stack:
        for _ in range(15):  # as many as SQLAlchemy's pool gives out
            stack.enter_context(connect(engine))
        with pytest.raises(DatabaseUnavailable, match="all connections are in use; try again later"):
            stack.enter_context(connect(engine))


def test_a_database_of_a_newer_wenlei_is_refused(settings: Settings) -> None:
    with open_database(settings) as engine, engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(DatabaseUnavailable, match=r"has schema 9999.*update wenlei"), open_database(settings):
        pass


@pytest.mark.parametrize("change", [label_events.update().values(labels='["差评"]'), label_events.delete()])
def test_label_events_can_be_neither_changed_nor_deleted(engine: sa.Engine, change: sa.Executable) -> None:
    with engine.begin() as connection:
        library_id = _add_library(connection)
        sample = {"library_id": library_id, "id": "00", "text": "很好", "duplicate_group": 1, "source_id": 1, "line": 1}
        connection.execute(sa.insert(samples).values(sample))
        event = {
            "library_id": library_id,
            "sample_id": "00",
            "labels": '["好评"]',
            "actor_kind": "person",
            "actor": "王",
        }
        connection.execute(sa.insert(label_events).values({**event, "created_at": "2026-01-01"}))
    with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
        connection.execute(change)
    with engine.connect() as connection:
        assert connection.scalars(sa.select(label_events.c.labels)).all() == ['["好评"]']


def test_ids_sort_by_bytes(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        library_id = _add_library(connection)
        for sample_id in ("a", "B", "1", "A"):
            row = {"library_id": library_id, "text": "字", "duplicate_group": 1, "source_id": 1, "line": 1}
            connection.execute(sa.insert(samples).values({**row, "id": sample_id}))
        assert connection.scalars(sa.select(samples.c.id).order_by(samples.c.id)).all() == ["1", "A", "B", "a"]


def test_an_unreachable_server_is_told_without_the_password(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url="postgres://li:geheim@127.0.0.1:1/wenlei")
    assert "geheim" not in repr(settings)
    with pytest.raises(DatabaseUnavailable, match=r"127\.0\.0\.1") as refused, open_database(settings):
        pass
    assert "geheim" not in str(refused.value)


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "wenlei.db").write_text("这不是数据库" * 100, encoding="utf-8")
    with pytest.raises(DatabaseUnavailable, match="not a database"), open_database(Settings(home=tmp_path)):
        pass


def test_a_url_with_a_password_in_the_wrong_place_does_not_show_it(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url="postgresql://li:halb@geheim:geheim/db")
    with pytest.raises(BadInput, match="can't be understood") as refused, open_database(settings):
        pass
    assert "geheim" not in str(refused.value)


@pytest.mark.parametrize("url", ["mysql://host/db", "nonsense", "sqlite://", "oracle+none://x"])
def test_a_url_that_can_not_be_used_is_refused(tmp_path: Path, url: str) -> None:
    with (
        pytest.raises(BadInput, match="WENLEI_DATABASE_URL"),
        open_database(Settings(home=tmp_path, database_url=url)),
    ):
        pass


def _add_library(connection: sa.Connection) -> int:
    values = {"name": "reviews", "taxonomy": "{}", "declared": False, "normaliser": "{}", "created_at": "2026-01-01"}
    return connection.execute(sa.insert(libraries).values(values).returning(libraries.c.id)).scalar_one()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_other_tests_get_their_databases_as_the_migrations_leave_them(
    databases: Databases, tmp_path: Path, kind: str
) -> None:
    made = []
    for url in (databases.new(kind, tmp_path), databases.empty(kind, tmp_path)):
        with open_database(Settings(home=tmp_path, database_url=url)) as engine, engine.connect() as connection:
            assert schema_differences(connection) == []
            made.append(set(connection.execute(DEFINITIONS[kind]).all()))
    assert made[0] == made[1]


# All there is in a database, but for the name of the schema.
DEFINITIONS = {
    "sqlite": sa.text("SELECT type, name, tbl_name, sql FROM sqlite_master"),
    "postgresql": sa.text(
        "SELECT relname, replace(coalesce(pg_get_indexdef(indexrelid), ''), current_schema(), ''), "
        "(SELECT string_agg(replace(pg_get_triggerdef(t.oid), current_schema(), ''), ';' ORDER BY tgname) "
        "FROM pg_trigger t WHERE tgrelid = c.oid AND NOT tgisinternal) "
        "FROM pg_class c LEFT JOIN pg_index ON indexrelid = c.oid WHERE relnamespace = current_schema()::regnamespace"
    ),
}
