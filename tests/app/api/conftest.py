"""A server that opens libraries, and clients with keys of every scope."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest
import structlog
from argon2 import PasswordHasher

from app.main import create_app
from app.people import keys
from app.people.accounts import create_key, create_user
from app.people.keyring import Keyring
from app.settings import Settings
from app.store.database import open_database
from app.store.people import Scope
from tests.app.api.servers import EachThreadItsOwn, serving
from tests.app.library.workshop import Workshop


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of keys that cost nothing: every test makes keys, and none of them is worth guessing."""
    monkeypatch.setattr(keys, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


@pytest.fixture(autouse=True)
def plain_tracebacks() -> None:
    """Errors in the log as Python writes them: structlog's own draw every variable of every frame, for ten seconds."""
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.fixture
def workshop(settings: Settings) -> Iterator[Workshop]:
    """A home folder with its database, on SQLite and on PostgreSQL; the server reads the same."""
    with open_database(settings) as engine:
        yield Workshop(engine, settings.home)


@pytest.fixture
def client_of(workshop: Workshop, settings: Settings) -> Iterator[Callable[[Scope], httpx.Client]]:
    """Makes a client whose key, of user `operator`, has a scope; all talk to one server."""
    create_user(workshop.engine, "operator", Scope.ADMIN, actor="root")
    with ExitStack() as stack:
        server = stack.enter_context(serving(create_app(settings, keyring=Keyring(workshop.engine))))

        def make(scope: Scope) -> httpx.Client:
            key = create_key(workshop.engine, user="operator", scope=scope, actor="root")
            headers = {"Authorization": f"Bearer {key.secret.text}"}
            client = httpx.Client(
                base_url=server.client.base_url, headers=headers, timeout=60, transport=EachThreadItsOwn()
            )
            return stack.enter_context(client)

        yield make


@pytest.fixture
def operate(client_of: Callable[[Scope], httpx.Client]) -> httpx.Client:
    """A client that operates."""
    return client_of(Scope.OPERATE)


@pytest.fixture
def admin(client_of: Callable[[Scope], httpx.Client]) -> httpx.Client:
    """A client that may do everything."""
    return client_of(Scope.ADMIN)
