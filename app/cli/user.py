"""`wenlei user …`: the people and programs that hold keys."""

from typing import Annotated

import typer
from rich.table import Table

from app.library.shapes.people import MadeUser, RevokedUser, user_list
from app.people.accounts import create_user, retire_user, who_runs_this
from app.settings import load_settings
from app.store.database import connect, open_database, reading
from app.store.people import Scope, User, all_users
from model.console import JsonFlag, emit

app = typer.Typer(no_args_is_help=True, help="用户 | users, who hold keys")

Name = Annotated[str, typer.Argument(help="用户名 | name of the user")]


@app.command()
def create(
    name: Name,
    scope: Annotated[
        Scope, typer.Option(help="其密钥的最大权限 | the widest scope that a key of theirs may have")
    ] = Scope.CLASSIFY,
    as_json: JsonFlag = False,
) -> None:
    """新建用户 | make a user, who has no key yet."""
    with open_database(load_settings()) as engine:
        create_user(engine, name, scope, actor=who_runs_this())
    emit(MadeUser(user=name, scope=scope), as_json=as_json)


@app.command("list")
def list_users(as_json: JsonFlag = False) -> None:
    """列出用户 | list the users, revoked ones too."""
    with open_database(load_settings()) as engine, connect(engine) as connection, reading(connection):
        found = all_users(connection)
    emit(
        user_list(found),
        as_json=as_json,
        render=lambda console: console.print(_table(found)),
    )


@app.command()
def revoke(name: Name, as_json: JsonFlag = False) -> None:
    """停用用户及其全部密钥 | revoke a user and all of their keys, for good."""
    with open_database(load_settings()) as engine:
        retire_user(engine, name, actor=who_runs_this())
    emit(RevokedUser(user=name, revoked=True), as_json=as_json)


def _table(found: list[User]) -> Table:
    table = Table()
    for heading in ("用户 | user", "最大权限 | scope", "创建 | created", "停用 | revoked"):
        table.add_column(heading, overflow="fold")
    for user in found:
        table.add_row(user.name, user.scope, user.created_at, user.revoked_at or "")
    return table
