"""Users and keys on both databases: who may have what, what is kept, and what the audit log says."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from app.people.accounts import any_active_key, create_key, create_user, retire_key, retire_user
from app.people.keys import new_secret, read_secret
from app.settings import Settings
from app.store.audit import latest_events
from app.store.database import open_database
from app.store.people import Scope, all_keys, all_users
from app.store.tables import api_keys, audit_events, users
from model.errors import BadInput


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    with open_database(settings) as engine:
        yield engine


def test_a_wider_scope_includes_the_narrower_ones() -> None:
    wide = [[scope.covers(needed) for needed in Scope] for scope in Scope]
    assert wide == [[True, False, False], [True, True, False], [True, True, True]]


def test_of_a_key_only_a_salted_hash_is_kept(engine: sa.Engine) -> None:
    create_user(engine, "标注员甲", Scope.ADMIN, actor="li")
    made = create_key(engine, user="标注员甲", scope=Scope.OPERATE, actor="li", rate="100/minute")
    with engine.connect() as connection:
        rows = [
            str(tuple(row)) for table in (users, api_keys, audit_events) for row in connection.execute(table.select())
        ]
        (kept,) = connection.scalars(sa.select(api_keys.c.hash))
    assert kept.startswith("$argon2id$")
    assert not [row for row in rows if made.secret.secret in row]
    assert made.secret.matches(kept)
    assert not new_secret().matches(kept)
    assert made.secret.hash() != kept


def test_no_repr_shows_a_secret_or_a_hash(engine: sa.Engine) -> None:
    create_user(engine, "li", Scope.ADMIN, actor="li")
    made = create_key(engine, user="li", scope=Scope.ADMIN, actor="li")
    shown = f"{made!r} {made} {made.secret!r} {made.key!r}"
    assert made.secret.secret not in shown
    assert "argon2" not in shown
    assert made.secret.id in shown


def test_a_key_is_read_back_from_its_text_and_nothing_else_is_one() -> None:
    secret = new_secret()
    assert read_secret(secret.text) == secret
    for text in ("", "wl_", secret.text + "0", secret.text[:-1], secret.text.upper(), " " + secret.text, secret.secret):
        assert read_secret(text) is None


def test_everything_is_on_record_newest_first(engine: sa.Engine) -> None:
    create_user(engine, "li", Scope.OPERATE, actor="root")
    made = create_key(engine, user="li", scope=Scope.CLASSIFY, actor="root", rate="5/second")
    retire_key(engine, made.key.id, actor="ann")
    retire_user(engine, "li", actor="ann")
    with engine.connect() as connection:
        events = latest_events(connection, 10)
        assert latest_events(connection, 1) == events[:1]
    told = [(event.actor, event.action, event.target, event.details) for event in events]
    details = {"user": "li", "scope": "classify", "expires_at": None, "rate": "5/second"}
    assert told == [
        ("ann", "user.revoke", "li", {}),
        ("ann", "key.revoke", made.key.id, {"user": "li"}),
        ("root", "key.create", made.key.id, details),
        ("root", "user.create", "li", {"scope": "operate"}),
    ]


@pytest.mark.parametrize("change", [audit_events.update().values(actor="nobody"), audit_events.delete()])
def test_the_audit_log_can_be_neither_changed_nor_deleted(engine: sa.Engine, change: sa.Executable) -> None:
    create_user(engine, "li", Scope.CLASSIFY, actor="root")
    with pytest.raises(DBAPIError, match="append-only"), engine.begin() as connection:
        connection.execute(change)
    with engine.connect() as connection:
        assert [event.actor for event in latest_events(connection, 10)] == ["root"]


def test_what_is_refused_leaves_no_trace(engine: sa.Engine) -> None:
    create_user(engine, "li", Scope.CLASSIFY, actor="root")
    create_user(engine, "wang", Scope.CLASSIFY, actor="root")
    retire_user(engine, "wang", actor="root")
    refusals = {
        "is there already": lambda: create_user(engine, "li", Scope.ADMIN, actor="x"),
        "was revoked; names are never given twice": lambda: create_user(engine, "wang", Scope.ADMIN, actor="x"),
        "without spaces": lambda: create_user(engine, "li si", Scope.ADMIN, actor="x"),
        r"no user 'zhao' \(users: li, wang\)": lambda: retire_user(engine, "zhao", actor="x"),
        "reach no further than classify": lambda: create_key(engine, user="li", scope=Scope.ADMIN, actor="x"),
        "'wang' was revoked at": lambda: create_key(engine, user="wang", scope=Scope.CLASSIFY, actor="x"),
        "can't be understood": lambda: create_key(engine, user="li", scope=Scope.CLASSIFY, actor="x", rate="often"),
        "at least 1": lambda: create_key(engine, user="li", scope=Scope.CLASSIFY, actor="x", rate="0/minute"),
        "at most 100,000": lambda: create_key(engine, user="li", scope=Scope.CLASSIFY, actor="x", rate="200000/day"),
        "no key 'abc'": lambda: retire_key(engine, "abc", actor="x"),
    }
    for message, attempt in refusals.items():
        with pytest.raises(BadInput, match=message):
            attempt()
    with engine.connect() as connection:
        assert all_keys(connection) == []
        assert [user.name for user in all_users(connection)] == ["li", "wang"]
        assert {event.actor for event in latest_events(connection, 100)} == {"root"}


def test_a_key_opens_something_until_it_expires_or_it_or_its_user_is_revoked(engine: sa.Engine) -> None:
    create_user(engine, "li", Scope.CLASSIFY, actor="root")
    assert not any_active_key(engine)
    create_key(engine, user="li", scope=Scope.CLASSIFY, actor="root", lifetime=timedelta(seconds=-1))
    assert not any_active_key(engine)
    revoked = create_key(engine, user="li", scope=Scope.CLASSIFY, actor="root", lifetime=timedelta(days=1))
    assert any_active_key(engine)
    retire_key(engine, revoked.key.id, actor="root")
    with pytest.raises(BadInput, match="already"):
        retire_key(engine, revoked.key.id, actor="root")
    assert not any_active_key(engine)
    create_key(engine, user="li", scope=Scope.CLASSIFY, actor="root")
    assert any_active_key(engine)
    with engine.connect() as connection:
        assert sorted(key.state for key in all_keys(connection)) == ["active", "expired", "revoked"]
    retire_user(engine, "li", actor="root")
    assert not any_active_key(engine)
