"""/v1/users, /v1/keys and /v1/audit: who may do what, and who did what. All of it is for admins."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from app.api.asked import Asked
from app.api.bodies import PROBLEMS
from app.api.deps import Asker, Database
from app.library.shapes.people import (
    AuditList,
    KeyList,
    MadeKey,
    MadeUser,
    RevokedKey,
    RevokedUser,
    UserList,
    audit_list,
    key_list,
    made_key,
    user_list,
)
from app.people.accounts import create_key, create_user, retire_key, retire_user
from app.people.keys import LONGEST_LIFE
from app.store.audit import latest_events
from app.store.database import connect, reading
from app.store.people import Scope, all_keys, all_users

router = APIRouter(prefix="/v1", tags=["people"], responses=PROBLEMS)

MOST_EVENTS = 1000  # in one answer
LARGEST_ID = 2**63 - 1

PathUser = Annotated[str, Path(pattern=r"^[\w.@-]{1,64}$", alias="name", description="用户名 | name of the user")]
PathKey = Annotated[str, Path(pattern="^[0-9a-f]{1,64}$", alias="id", description="密钥编号 | id of the key")]


class NewUser(Asked):
    """A user to make. `scope`: the widest that a key of theirs may have."""

    name: str = Field(max_length=64, examples=["标注员甲"])
    scope: Scope = Scope.CLASSIFY


class KeyWanted(Asked):
    """A key to make. `expires`: days until it does. `rate`: the most requests in a time."""

    user: str = Field(pattern=r"^[\w.@-]{1,64}$", examples=["标注员甲"])
    scope: Scope = Scope.CLASSIFY
    expires: int | None = Field(default=None, ge=1, le=LONGEST_LIFE)
    rate: str | None = Field(default=None, max_length=64, examples=["100/minute"])


class AuditPage(Asked):
    """Which events of the log."""

    limit: int = Field(default=100, ge=1, le=MOST_EVENTS, description="最多条数 | how many at most")
    before: int | None = Field(
        default=None, ge=1, le=LARGEST_ID, description="只列此编号之前的 | only those before this id"
    )


@router.get("/users", summary="用户列表 | All users")
def list_users(engine: Database) -> UserList:
    """Every user, revoked ones too."""
    with connect(engine) as connection, reading(connection):
        return user_list(all_users(connection))


@router.post("/users", status_code=201, summary="新建用户 | Make a user")
def make_user(wanted: NewUser, engine: Database, asker: Asker) -> MadeUser:
    """A user, who has no key yet."""
    create_user(engine, wanted.name, wanted.scope, actor=asker.user)
    return {"user": wanted.name, "scope": wanted.scope}


@router.delete("/users/{name}", summary="停用用户及其全部密钥 | Revoke a user and all of their keys")
def revoke_user(name: PathUser, engine: Database, asker: Asker) -> RevokedUser:
    """For good; servers hear of it within seconds."""
    retire_user(engine, name, actor=asker.user)
    return {"user": name, "revoked": True}


@router.get("/keys", summary="密钥列表，不含其内容 | All keys, never their secrets")
def list_keys(engine: Database) -> KeyList:
    """Every key, in whatever state."""
    with connect(engine) as connection, reading(connection):
        return key_list(all_keys(connection))


@router.post("/keys", status_code=201, summary="新建密钥，只显示这一次 | Make a key, shown this once")
def make_key(wanted: KeyWanted, engine: Database, asker: Asker, response: Response) -> MadeKey:
    """A key of a user, no wider than they are. `key` is the whole of it, and nobody can have it again."""
    response.headers["Cache-Control"] = "no-store"
    made = create_key(
        engine,
        user=wanted.user,
        scope=wanted.scope,
        actor=asker.user,
        lifetime=timedelta(days=wanted.expires) if wanted.expires else None,
        rate=wanted.rate,
    )
    return made_key(made.key, made.secret.text)


@router.delete("/keys/{id}", summary="停用密钥 | Revoke a key")
def revoke_key(key_id: PathKey, engine: Database, asker: Asker) -> RevokedKey:
    """For good; servers hear of it within seconds."""
    retire_key(engine, key_id, actor=asker.user)
    return {"id": key_id, "revoked": True}


@router.get("/audit", summary="审计日志，新的在前 | The log of who did what, the newest first")
def list_audit(page: Annotated[AuditPage, Query()], engine: Database) -> AuditList:
    """Events that nobody can change. To page on, give the last `id` as `before`."""
    with connect(engine) as connection, reading(connection):
        return audit_list(latest_events(connection, page.limit, before=page.before))
