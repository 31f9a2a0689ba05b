"""Real databases for tests: each test has its own, and only the first of a kind is migrated step by step."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import sqlalchemy as sa

from app.settings import Settings
from app.store.database import open_database


class Databases:
    """Makes databases of a kind, `sqlite` or `postgresql`, and gives their URLs.

    On PostgreSQL it is a schema of its own: as empty as a database, and made a hundred times faster.
    """

    def __init__(self, folder: Path, postgres: Callable[[], sa.URL]) -> None:
        self._folder, self._postgres = folder, postgres
        self._numbers = count()
        self._migrated: Path | None = None  # SQLite's file after the migrations
        self._migrations: str | None = None  # what they say to PostgreSQL

    def empty(self, kind: str, folder: Path) -> str:
        """A database with nothing in it; on SQLite, a file in `folder` that is not there yet."""
        name = f"wenlei_{next(self._numbers)}"
        if kind == "sqlite":
            return f"sqlite:///{folder}/{name}.db"
        server = sa.create_engine(self._postgres(), poolclass=sa.NullPool)
        with server.begin() as connection:
            connection.exec_driver_sql(f"CREATE SCHEMA {name}")
        options = {"options": f"-csearch_path={name}"}
        return self._postgres().update_query_dict(options).render_as_string(hide_password=False)

    def new(self, kind: str, folder: Path) -> str:
        """A database as the product's migrations leave an empty one, in a fraction of the time that they take."""
        return self._new_file(folder) if kind == "sqlite" else self._new_schema()

    def _new_file(self, folder: Path) -> str:
        if self._migrated is None:
            url = self.empty("sqlite", self._folder)
            self._migrate(url)
            self._migrated = Path(str(sa.make_url(url).database))
        url = self.empty("sqlite", folder)
        shutil.copyfile(self._migrated, str(sa.make_url(url).database))
        return url

    def _new_schema(self) -> str:
        if self._migrations is None:
            url = self.empty("postgresql", self._folder)
            with _changes() as statements:
                self._migrate(url)
            self._migrations = ";\n".join(statements)
        url = self.empty("postgresql", self._folder)
        engine = sa.create_engine(url, poolclass=sa.NullPool)
        with engine.begin() as connection:
            # all in one go, which the driver takes, and SQLAlchemy doesn't
            connection.connection.driver_connection.execute(self._migrations)
        return url

    def _migrate(self, url: str) -> None:
        with open_database(Settings(home=self._folder, database_url=url)):
            pass


@contextmanager
def _changes() -> Iterator[list[str]]:
    """The statements that change a database, as they are sent in the block."""
    statements: list[str] = []

    def record(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        if not statement.lstrip().upper().startswith("SELECT"):
            assert not parameters, statement
            statements.append(statement.replace("%%", "%"))  # doubled for a driver that would look for parameters

    sa.event.listen(sa.Engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", record)
