"""A server with models and keys, as somebody who operates it reaches it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from app.main import create_app
from app.people.accounts import create_key, create_user
from app.people.keyring import Keyring
from app.settings import Settings
from app.store.people import Scope
from model.bundle import Bundle
from tests.app.api.servers import serving
from tests.app.library.workshop import Workshop


@contextmanager
def operating(workshop: Workshop, settings: Settings, bundles: Sequence[Bundle]) -> Iterator[httpx.Client]:
    """A client with a key of scope operate, of a server with these models and the workshop's libraries."""
    served = settings.model_copy(update={"bundles": tuple(bundle.path for bundle in bundles)})
    create_user(workshop.engine, "operator", Scope.ADMIN, actor="root")
    key = create_key(workshop.engine, user="operator", scope=Scope.OPERATE, actor="root")
    with serving(create_app(served, keyring=Keyring(workshop.engine))) as server:
        server.client.headers["Authorization"] = f"Bearer {key.secret.text}"
        yield server.client
