"""`wenlei key …`: API keys, shown once and kept as hashes."""

from datetime import timedelta
from typing import Annotated

import typer
from rich.table import Column, Table

from app.library.shapes.people import RevokedKey, key_list, made_key
from app.people.accounts import create_key, retire_key, who_runs_this
from app.people.keys import LONGEST_LIFE
from app.settings import load_settings
from app.store.database import connect, open_database, reading
from app.store.people import Key, Scope, all_keys
from model.console import JsonFlag, emit, say

app = typer.Typer(no_args_is_help=True, help="API 密钥 | API keys")


@app.command()
def create(
    user: Annotated[str, typer.Option(help="持有者 | the user who holds it")],
    scope: Annotated[
        Scope, typer.Option(help="权限，后者包含前者 | what it opens; each includes those before it")
    ] = Scope.CLASSIFY,
    expires: Annotated[
        int | None, typer.Option(min=1, max=LONGEST_LIFE, help="有效天数，默认不过期 | days until it expires")
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="请求频率上限，如 100/minute | the most requests in a time, as 100/minute")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """新建密钥，只显示这一次 | make a key and print it, this once."""
    lifetime = timedelta(days=expires) if expires else None
    with open_database(load_settings()) as engine:
        made = create_key(engine, user=user, scope=scope, actor=who_runs_this(), lifetime=lifetime, rate=rate)
    say("请现在保存，之后无法再看到 | keep it now, it can't be shown again")
    emit(
        made_key(made.key, made.secret.text),
        as_json=as_json,
        render=lambda console: console.print(made.secret.text, soft_wrap=True, highlight=False),
    )


@app.command("list")
def list_keys(as_json: JsonFlag = False) -> None:
    """列出密钥，不含其内容 | list the keys, never their secrets."""
    with open_database(load_settings()) as engine, connect(engine) as connection, reading(connection):
        found = all_keys(connection)
    emit(
        key_list(found),
        as_json=as_json,
        render=lambda console: console.print(_table(found)),
    )


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="密钥编号 | id of the key")], as_json: JsonFlag = False
) -> None:
    """停用密钥 | revoke a key, for good; servers hear of it within seconds."""
    with open_database(load_settings()) as engine:
        retire_key(engine, key_id, actor=who_runs_this())
    emit(RevokedKey(id=key_id, revoked=True), as_json=as_json)


def _table(found: list[Key]) -> Table:
    table = Table(Column("编号 | id", no_wrap=True))  # to be copied
    for heading in ("用户 | user", "权限 | scope", "频率 | rate", "状态 | state", "到期 | expires"):
        table.add_column(heading, overflow="fold")
    for key in found:
        table.add_row(key.id, key.user, key.scope, key.rate or "", key.state, key.expires_at or "")
    return table
