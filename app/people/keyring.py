"""Whose key is it? Asked once a request, so it must cost next to nothing.

argon2 runs once a key: from then on the SHA-256 of what was presented is compared with that of the verified key.
Every few seconds the database is asked again, so that a revocation is heard of.
"""

import asyncio
import hmac
import time
from dataclasses import dataclass, field
from hashlib import sha256

import sqlalchemy as sa
from limits import RateLimitItem

from app.errors import Unauthorized
from app.people.keys import Secret, read_secret
from app.people.rates import Rates, read_rate
from app.store.database import connect, reading
from app.store.people import Key, Scope, find_key

RECHECK_SECONDS = 5.0  # at most so long does a key go on to work after it was revoked or has expired


@dataclass(frozen=True, slots=True)
class Identity:
    """Who asks, by which key."""

    key_id: str
    user: str
    scope: Scope
    rate: RateLimitItem | None


@dataclass(frozen=True, slots=True)
class _Verified:
    """A key whose secret was right. `digest`: SHA-256 of the whole key. `until`: monotonic seconds."""

    identity: Identity
    digest: bytes = field(repr=False)
    hash: str = field(repr=False)
    until: float


class Keyring:
    """The keys of a database, as one process knows them."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self._rates = Rates()
        self._verified: dict[str, _Verified] = {}
        # One at a time: strangers must not take more than one core, nor the memory of many verifications.
        self._turn = asyncio.Lock()

    async def identify(self, presented: str, *, address: str) -> Identity:
        """Who holds the key that was `presented` from `address`; counts the request.

        Raises:
            Unauthorized: it is no key, or it is unknown, revoked or expired.
            RateLimited: the key was used too often, or the address tried too many that were none.
            DatabaseUnavailable: it can't be looked up.
        """
        secret = read_secret(presented)
        if secret is None:
            raise Unauthorized("this is not a key of wenlei's; send the whole of wl_<id>_<secret> after Bearer")
        digest = sha256(presented.encode()).digest()
        verified = self._known(secret, digest)
        if verified is None:
            verified = await self._verify(secret, digest, address)
        elif time.monotonic() >= verified.until:
            verified = await self._recheck(secret, verified)
        identity = verified.identity
        if identity.rate:
            self._rates.take(identity.key_id, identity.rate)
        return identity

    def _known(self, secret: Secret, digest: bytes) -> _Verified | None:
        verified = self._verified.get(secret.id)
        return verified if verified and hmac.compare_digest(verified.digest, digest) else None

    async def _verify(self, secret: Secret, digest: bytes, address: str) -> _Verified:
        """Look the key up, which costs little, and only if it is there compare its secret, which costs much."""
        async with self._turn:
            if verified := self._known(secret, digest):  # another request with the same key was faster
                return verified
            self._rates.check_address(address)
            key = await self._find(secret.id)
            if key is None or not await asyncio.to_thread(secret.matches, key.hash):
                self._rates.count_failure(address)
                raise _no_such_key()
            return self._remember(key, digest)

    async def _recheck(self, secret: Secret, verified: _Verified) -> _Verified:
        """Ask the database whether the key still opens anything; the secret was right and is the same."""
        key = await self._find(secret.id)
        if key is None or key.hash != verified.hash:
            self._verified.pop(secret.id, None)
            raise _no_such_key()
        return self._remember(key, verified.digest)

    async def _find(self, key_id: str) -> Key | None:
        """The key if it is active."""

        def find() -> Key | None:
            with connect(self.engine) as connection, reading(connection):
                return find_key(connection, key_id)

        key = await asyncio.to_thread(find)
        return key if key and key.state == "active" else None

    def _remember(self, key: Key, digest: bytes) -> _Verified:
        rate = read_rate(key.rate) if key.rate else None
        identity = Identity(key_id=key.id, user=key.user, scope=key.scope, rate=rate)
        until = time.monotonic() + RECHECK_SECONDS
        verified = self._verified[key.id] = _Verified(identity, digest, key.hash, until)
        return verified


def _no_such_key() -> Unauthorized:
    return Unauthorized("the key is unknown, revoked or expired; ask whoever runs this server for another")
