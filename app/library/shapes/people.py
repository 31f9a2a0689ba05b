"""Users, keys and the audit log, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.store.audit import AuditEvent
from app.store.people import Key, Scope, User


class UserShape(TypedDict):
    """A user; `revoked_at` is null while they may hold keys."""

    name: str
    scope: Scope
    created_at: str
    revoked_at: str | None


class UserList(TypedDict):
    """All users, revoked ones too."""

    users: list[UserShape]


class MadeUser(TypedDict):
    """A user who was just made."""

    user: str
    scope: Scope


class RevokedUser(TypedDict):
    """A user whose keys open nothing any more."""

    user: str
    revoked: bool


class KeyShape(TypedDict):
    """All of a key but its secret. `state`: active, revoked or expired."""

    id: str
    user: str
    scope: Scope
    rate: str | None
    state: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class KeyList(TypedDict):
    """All keys, in whatever state."""

    keys: list[KeyShape]


class MadeKey(KeyShape):
    """A key at the only moment at which its secret is known: `key` is the whole of it."""

    key: str


class RevokedKey(TypedDict):
    """A key that opens nothing any more."""

    id: str
    revoked: bool


class AuditShape(TypedDict):
    """Who did what to what, when. `id`: what `before` counts from."""

    id: int
    at: str
    actor: str
    action: str
    target: str
    details: dict[str, str | None]


class AuditList(TypedDict):
    """The newest events first."""

    events: list[AuditShape]


def user_list(found: list[User]) -> UserList:
    """Users in the order in which they came."""
    return {
        "users": [
            {
                "name": user.name,
                "scope": user.scope,
                "created_at": user.created_at,
                "revoked_at": user.revoked_at,
            }
            for user in found
        ]
    }


def key_list(found: list[Key]) -> KeyList:
    """Keys in the order in which they came."""
    return {"keys": [_key(key) for key in found]}


def made_key(key: Key, whole: str) -> MadeKey:
    """A new key, and the `whole` of it as its holder sends it."""
    return {"key": whole, **_key(key)}


def audit_list(found: list[AuditEvent]) -> AuditList:
    """Events of the audit log."""
    return {
        "events": [
            {
                "id": event.id,
                "at": event.at,
                "actor": event.actor,
                "action": event.action,
                "target": event.target,
                "details": event.details,
            }
            for event in found
        ]
    }


def _key(key: Key) -> KeyShape:
    return {
        "id": key.id,
        "user": key.user,
        "scope": key.scope,
        "rate": key.rate,
        "state": key.state,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
    }
