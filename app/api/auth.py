"""Every request needs a key, but for the few addresses that are open."""

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.middleware import IDENTITY, header, refuse_early
from app.api.scopes import OPEN, needed_scope
from app.errors import Forbidden, NotReady, RateLimited, Unauthorized
from app.people.keyring import Identity, Keyring
from model.errors import DatabaseUnavailable

log = structlog.get_logger("wenlei.keys")


class Authenticate:
    """Lets through what carries a key that is wide enough, before its body is read."""

    def __init__(self, app: ASGIApp, *, keyring: Keyring) -> None:
        self.app = app
        self.keyring = keyring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN:
            await self.app(scope, receive, send)
            return
        try:
            identity = scope[IDENTITY] = await self._identify(scope)
            _check(identity, scope["method"], scope["path"])
        except (Unauthorized, Forbidden, RateLimited, NotReady) as error:
            await refuse_early(error, scope, receive, send)
            return
        await self.app(scope, receive, send)

    async def _identify(self, scope: Scope) -> Identity:
        presented = _bearer(scope)
        client = scope.get("client")
        try:
            return await self.keyring.identify(presented, address=client[0] if client else "")
        except DatabaseUnavailable as error:
            log.error("keys can't be looked up", error=str(error))  # where the database is, is not told to strangers
            raise NotReady("keys can't be looked up at the moment; try again later") from None


def _check(identity: Identity, method: str, path: str) -> None:
    """Does the key reach so far?

    Raises:
        Forbidden: it does not.
    """
    needed = needed_scope(method, path)
    if not identity.scope.covers(needed):
        raise Forbidden(
            f"key {identity.key_id} has scope {identity.scope}, {method} {path[:100]} needs {needed}; "
            "ask whoever runs this server for a wider key"
        )


def _bearer(scope: Scope) -> str:
    """What stands after Bearer.

    Raises:
        Unauthorized: nothing does.
    """
    kind, _, presented = (header(scope, b"authorization") or b"").decode("latin-1").partition(" ")
    if kind.lower() != "bearer":
        raise Unauthorized("this server needs a key: send the header Authorization: Bearer wl_<id>_<secret>")
    return presented.strip()
