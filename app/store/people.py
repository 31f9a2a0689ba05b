"""Users and their API keys, of which only a hash is kept."""

from dataclasses import dataclass, field
from enum import StrEnum

import sqlalchemy as sa

from app.store.tables import api_keys, users
from model.errors import BadInput
from model.provenance import now
from model.types import preview


class Scope(StrEnum):
    """What a key opens; each one includes those before it."""

    CLASSIFY = "classify"
    OPERATE = "operate"
    ADMIN = "admin"

    def covers(self, needed: "Scope") -> bool:
        """Whether a key of this scope may do what `needed` is asked for."""
        order = list(Scope)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class User:
    """Somebody with a name. `scope`: the widest that a key of theirs may have. Times are ISO 8601."""

    name: str
    scope: Scope
    created_at: str
    revoked_at: str | None


@dataclass(frozen=True, slots=True)
class Key:
    """A key, told by its `id`. `rate`: requests in a time, such as 100/minute, or None for as many as come.

    revoked_at: when it was revoked, or its user if that was earlier.
    """

    id: str
    user: str
    scope: Scope
    rate: str | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    hash: str = field(repr=False)

    @property
    def state(self) -> str:
        """active, revoked or expired."""
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= now() else "active"


def add_user(connection: sa.Connection, name: str, scope: Scope) -> None:
    """Write a new user.

    Raises:
        BadInput: the name is taken, if only by somebody who was revoked.
    """
    if found := next(iter(_users(connection, users.c.name == name)), None):
        state = "was revoked" if found.revoked_at else "is there already"
        raise BadInput(f"user {name!r} {state}; names are never given twice, so choose another")
    connection.execute(sa.insert(users).values(name=name, scope=scope, created_at=now()))


def get_user(connection: sa.Connection, name: str) -> User:
    """The user of that name, who was not revoked.

    Raises:
        BadInput: there is none.
    """
    found = next(iter(_users(connection, users.c.name == name)), None)
    if found is None:
        names = preview([user.name for user in all_users(connection)]) or "none yet"
        raise BadInput(f"there is no user {name!r} (users: {names}); make one with wenlei user create {name}")
    if found.revoked_at:
        raise BadInput(f"user {name!r} was revoked at {found.revoked_at}; make another with wenlei user create")
    return found


def all_users(connection: sa.Connection) -> list[User]:
    """Every user, revoked ones too, in the order in which they came."""
    return _users(connection)


def revoke_user(connection: sa.Connection, name: str) -> None:
    """Let no key of the user open anything from now on.

    Raises:
        BadInput: there is no such user, or not any more.
    """
    user = get_user(connection, name)
    connection.execute(sa.update(users).where(users.c.name == user.name).values(revoked_at=now()))


def add_key(connection: sa.Connection, key: Key) -> None:
    """Write a new key of a user who exists."""
    owner = sa.select(users.c.id).where(users.c.name == key.user).scalar_subquery()
    connection.execute(
        sa.insert(api_keys).values(
            id=key.id,
            user_id=owner,
            scope=key.scope,
            rate=key.rate,
            hash=key.hash,
            created_at=key.created_at,
            expires_at=key.expires_at,
        )
    )


def find_key(connection: sa.Connection, key_id: str) -> Key | None:
    """The key of that id, in whatever state."""
    return next(iter(_keys(connection, api_keys.c.id == key_id)), None)


def all_keys(connection: sa.Connection) -> list[Key]:
    """Every key, in whatever state, in the order in which they came."""
    return _keys(connection)


def revoke_key(connection: sa.Connection, key_id: str) -> Key:
    """Let the key open nothing from now on; gives the key as it was.

    Raises:
        BadInput: there is no such key, or it was revoked before.
    """
    key = find_key(connection, key_id)
    if key is None:
        raise BadInput(f"there is no key {key_id!r}; wenlei key list shows them all")
    if key.revoked_at:
        raise BadInput(f"key {key_id} was revoked at {key.revoked_at} already")
    connection.execute(sa.update(api_keys).where(api_keys.c.id == key_id).values(revoked_at=now()))
    return key


def _users(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[User]:
    query = sa.select(users).where(*conditions).order_by(users.c.id)
    rows = connection.execute(query)
    return [User(row.name, Scope(row.scope), row.created_at, row.revoked_at) for row in rows]


def _keys(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[Key]:
    query = (
        sa.select(api_keys, users.c.name.label("user"), users.c.revoked_at.label("user_revoked_at"))
        .join(users, users.c.id == api_keys.c.user_id)
        .where(*conditions)
        .order_by(api_keys.c.created_at, api_keys.c.id)
    )
    return [
        Key(
            id=row.id,
            user=row.user,
            scope=Scope(row.scope),
            rate=row.rate,
            created_at=row.created_at,
            expires_at=row.expires_at,
            revoked_at=min(filter(None, (row.revoked_at, row.user_revoked_at)), default=None),
            hash=row.hash,
        )
        for row in connection.execute(query)
    ]
