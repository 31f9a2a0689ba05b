"""Make and revoke users and keys, each with its line in the audit log."""

import getpass
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from app.people.keys import Secret, new_secret
from app.people.rates import read_rate
from app.store.audit import record
from app.store.database import connect, reading, writing
from app.store.people import Key, Scope, add_key, add_user, all_keys, get_user, revoke_key, revoke_user
from model.errors import BadInput
from model.provenance import now

USER_NAME = re.compile(r"[\w.@-]{1,64}")


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key at the only moment at which its secret is known."""

    key: Key
    secret: Secret


def create_user(engine: sa.Engine, name: str, scope: Scope, *, actor: str) -> None:
    """Make a user.

    Raises:
        BadInput: the name is taken, or is not one word of letters, digits and . _ @ -.
    """
    if not USER_NAME.fullmatch(name):
        raise BadInput(f"user {name!r}: a name is 1 to 64 letters, digits or . _ @ - without spaces")
    with connect(engine) as connection, writing(connection):
        add_user(connection, name, scope)
        record(connection, actor=actor, action="user.create", target=name, scope=scope)


def retire_user(engine: sa.Engine, name: str, *, actor: str) -> None:
    """Revoke a user, and so all of their keys.

    Raises:
        BadInput: there is no such user, or not any more.
    """
    with connect(engine) as connection, writing(connection):
        revoke_user(connection, name)
        record(connection, actor=actor, action="user.revoke", target=name)


def check_person(engine: sa.Engine, name: str) -> str:
    """`name`, if it is that of a user, so that whoever is said to have said something is somebody.

    Raises:
        BadInput: there is no such user, or not any more.
    """
    if not USER_NAME.fullmatch(name):
        raise BadInput(f"--by {name!r} names no user: a name is 1 to 64 letters, digits or . _ @ - without spaces")
    with connect(engine) as connection, reading(connection):
        get_user(connection, name)
    return name


def create_key(
    engine: sa.Engine,
    *,
    user: str,
    scope: Scope,
    actor: str,
    lifetime: timedelta | None = None,
    rate: str | None = None,
) -> NewKey:
    """Make a key of a user; nobody can have it again after this.

    Raises:
        BadInput: there is no such user, their scope is narrower, or the rate is none.
    """
    if rate is not None:
        read_rate(rate)
    secret = new_secret()
    expires_at = (datetime.now(UTC) + lifetime).isoformat(timespec="seconds") if lifetime is not None else None
    key = Key(secret.id, user, scope, rate, now(), expires_at, revoked_at=None, hash=secret.hash())
    with connect(engine) as connection, writing(connection):
        owner = get_user(connection, user)
        if not owner.scope.covers(scope):
            raise BadInput(f"--scope {scope}: keys of user {user!r} reach no further than {owner.scope}")
        add_key(connection, key)
        details = {"user": user, "scope": scope, "expires_at": expires_at, "rate": rate}
        record(connection, actor=actor, action="key.create", target=key.id, **details)
    return NewKey(key, secret)


def retire_key(engine: sa.Engine, key_id: str, *, actor: str) -> None:
    """Revoke a key.

    Raises:
        BadInput: there is no such key, or it was revoked before.
    """
    with connect(engine) as connection, writing(connection):
        key = revoke_key(connection, key_id)
        record(connection, actor=actor, action="key.revoke", target=key_id, user=key.user)


def any_active_key(engine: sa.Engine) -> bool:
    """Whether there is a key that opens anything."""
    with connect(engine) as connection, reading(connection):
        return any(key.state == "active" for key in all_keys(connection))


def who_runs_this() -> str:
    """The person at the command line, as the operating system knows them."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        return f"uid {os.getuid()}"
