"""Open the database, bring its schema up to date, and give out connections whose errors people can read."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.settings import Settings
from model.errors import BadInput, DatabaseUnavailable, MissingExtra

BUSY_TIMEOUT = 60_000  # milliseconds a SQLite writer waits for another one: a large import takes its time
# What a connection to PostgreSQL is opened with, unless the URL says otherwise: a dead host is told in seconds, where
# libpq would wait for minutes, or for ever when it dies in the middle of a statement.
PATIENCE = {
    "connect_timeout": 10,  # seconds, and for each address that the host has
    "keepalives_idle": 30,  # seconds
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}
CACHE_KIB = 32 * 1024  # of page cache for each of SQLite's databases, the temporary one too; more is no faster
MIGRATION_LOCK = 0x77656E6C6569  # "wenlei": PostgreSQL's advisory lock, so that two servers don't migrate at once
_MIGRATIONS = Path(__file__).with_name("migrations")


@contextmanager
def open_database(settings: Settings) -> Iterator[sa.Engine]:
    """The database of `settings`, made or migrated to the newest schema where needed; closed after the block.

    Raises:
        BadInput: its URL can't be understood. MissingExtra: its driver is not installed.
        DatabaseUnavailable: it can't be reached, or a newer wenlei has written it.
    """
    engine = _engine(settings.database_url.get_secret_value())
    try:
        with connect(engine) as connection:
            with connection.begin():
                current = _is_current(connection)
            if not current:  # only then, for whoever writes to SQLite waits for all others who do
                with writing(connection):
                    _migrate(connection)
        yield engine
    finally:
        engine.dispose()


def is_set_up(settings: Settings) -> bool:
    """Whether the database is there, in the newest schema; nothing is made or written to find out.

    Raises:
        As `open_database`.
    """
    engine = _engine(settings.database_url.get_secret_value(), make_folder=False)
    try:
        if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).is_file():
            return False
        with connect(engine) as connection, connection.begin():
            return _is_current(connection)
    finally:
        engine.dispose()


@contextmanager
def connect(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection whose failures are told in one line, without the password and without the data.

    Raises:
        DatabaseUnavailable: the database can't be reached, is locked, full, or refuses a statement, or all connections
        are in use.
    """
    try:
        with engine.connect() as connection:
            yield connection
    except PoolTimeout as error:
        place = engine.url.render_as_string(hide_password=True)
        raise DatabaseUnavailable(f"database {place}: all connections are in use; try again later") from error
    except (DBAPIError, engine.dialect.loaded_dbapi.Error) as error:  # the latter from where we call the driver itself
        place = engine.url.render_as_string(hide_password=True)
        raised = error.orig if isinstance(error, DBAPIError) else error
        cause = _cause(raised)
        raise DatabaseUnavailable(f"database {place}: {cause}; {_way_out(engine, raised, cause)}") from error


@contextmanager
def writing(connection: sa.Connection) -> Iterator[None]:
    """One transaction that writes; on SQLite it takes the write lock at once rather than fail half-way."""
    connection.execution_options(sqlite_begin="IMMEDIATE")
    with connection.begin():
        yield


@contextmanager
def reading(connection: sa.Connection) -> Iterator[None]:
    """One transaction that reads; all its queries see the same state."""
    if connection.dialect.name == "postgresql":
        connection.execution_options(isolation_level="REPEATABLE READ")
    connection.execution_options(sqlite_begin="DEFERRED")
    with connection.begin():
        yield


def _engine(url: str, *, make_folder: bool = True) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        if parsed.get_backend_name() not in ("sqlite", "postgresql"):
            raise BadInput(f"database {parsed.get_backend_name()} is not supported; WENLEI_DATABASE_URL takes {_URLS}")
        engine = sa.create_engine(parsed, hide_parameters=True, **_options(parsed))
    except (ArgumentError, NoSuchModuleError, ValueError):  # ValueError: the port is no number
        raise BadInput(f"WENLEI_DATABASE_URL can't be understood; it takes {_URLS}") from None
    except ModuleNotFoundError as error:
        raise MissingExtra(
            f"the database's driver {error.name} is not installed: pip install 'wenlei[postgres]'"
        ) from None
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise BadInput(f"WENLEI_DATABASE_URL names no file; it takes {_URLS}")
        if make_folder:
            Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
        sa.event.listen(engine, "connect", _configure_sqlite)
        sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() != "postgresql":
        return {}
    patience = {name: value for name, value in PATIENCE.items() if name not in url.query}
    # a server that was away for a minute is found again: what waits in the pool is tried before it is used
    return {"connect_args": patience, "pool_pre_ping": True}


_URLS = "sqlite:///path/wenlei.db or postgresql://user:password@host/name"


def _configure_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # SQLAlchemy's begin event opens transactions, not the driver
    for pragma in (
        f"busy_timeout = {BUSY_TIMEOUT}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        f"cache_size = -{CACHE_KIB}",
        f"temp.cache_size = -{CACHE_KIB}",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('sqlite_begin', 'DEFERRED')}")


def _cause(error: BaseException | None) -> str:
    """What went wrong, without the details that PostgreSQL adds, for they quote the data."""
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    return str(primary or error).strip()


def _way_out(engine: sa.Engine, error: BaseException | None, cause: str) -> str:
    """What to do about it."""
    if getattr(error, "sqlstate", None) == _DISK_FULL or cause in _SQLITE_DISK_FULL:
        return "look at its disk, free some space and run it again, nothing was changed"
    if engine.dialect.name == "postgresql" and isinstance(error, engine.dialect.loaded_dbapi.OperationalError):
        return "run it again when the database is back; if that lasts, check WENLEI_DATABASE_URL"
    return "check WENLEI_DATABASE_URL"


_DISK_FULL = "53100"  # PostgreSQL's code
# SQLite calls most failures to write by the second name, a file that may grow no further among them.
_SQLITE_DISK_FULL = ("database or disk is full", "disk I/O error")


@cache
def _scripts() -> ScriptDirectory:
    """The migrations; they stay as they are while a process runs, and to read them takes longer than to open."""
    return ScriptDirectory(str(_MIGRATIONS))


def _is_current(connection: sa.Connection) -> bool:
    scripts = _scripts()
    known = {script.revision for script in scripts.walk_revisions()}
    current = MigrationContext.configure(connection).get_current_revision()
    if current is not None and current not in known:
        raise DatabaseUnavailable(
            f"database {connection.engine.url.render_as_string(hide_password=True)} has schema {current}, "
            f"this wenlei knows {scripts.get_current_head()}; update wenlei"
        )
    return current == scripts.get_current_head()


def _migrate(connection: sa.Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
    if _is_current(connection):  # somebody else was faster
        return
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
