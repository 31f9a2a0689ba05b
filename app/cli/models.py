"""`wenlei models …`: which bundles are live, and how they came to be."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.cli.agreeing import By, Note, line, person
from app.promotion.promoting import CHAMPION, all_live, history_of, promote, reason, roll_back
from app.settings import load_settings
from app.store.database import open_database
from app.store.models import Move
from model.bundle import open_bundle
from model.console import JsonFlag, emit
from model.errors import UnknownModel
from model.snapshot import open_snapshot
from model.types import Split

app = typer.Typer(no_args_is_help=True, help="上线的模型：晋升、回退 | the models that are live: promote, roll back")

HEADINGS = ("模型 | model", "模型包 | bundle", "版本 | version", "变动 | move", "判断 | gate", "谁 | who", "时间 | at")
ModelName = Annotated[str, typer.Argument(help="模型名称 | name of the model")]
Alias = Annotated[str, typer.Option(help="别名，如 champion、challenger | alias")]


@app.command("list")
def list_models(as_json: JsonFlag = False) -> None:
    """列出现在上线的模型包 | list the bundles that are live now."""
    with open_database(load_settings()) as engine:
        found = all_live(engine)
    emit({"models": [_shape(move) for move in found]}, as_json=as_json, render=lambda console: _show(console, found))


@app.command()
def show(model: ModelName, alias: Alias = CHAMPION, as_json: JsonFlag = False) -> None:
    """一个别名的全部变动，新的在前 | all moves of an alias, the newest first."""
    with open_database(load_settings()) as engine:
        found = history_of(engine, model, alias)
    if not found:
        raise UnknownModel(f"there is no {model}@{alias}; wenlei models list shows what there is")
    emit(
        {"moves": [_shape(move) for move in reversed(found)]},
        as_json=as_json,
        render=lambda console: _show(console, found[::-1]),
    )


@app.command("promote")
def promote_bundle(
    bundle: Annotated[Path, typer.Argument(help="模型包文件夹 | folder of the bundle")],
    snapshot: Annotated[Path, typer.Option(help="用来判断的快照 | the snapshot that both are judged by")],
    model: Annotated[str, typer.Option(help="模型名称 | name of the model")] = "default",
    alias: Alias = CHAMPION,
    split: Annotated[Split, typer.Option(help="在哪个划分上 | which split")] = Split.TEST,
    margin: Annotated[
        float, typer.Option(min=0, max=20, help="最多可差多少分 | by how many points it may be worse")
    ] = 0.5,
    force: Annotated[bool, typer.Option("--force", help="不管判断，须写 --note | whatever the gate says")] = False,
    by: By = None,
    note: Note = None,
    as_json: JsonFlag = False,
) -> None:
    """让模型包上线：不比现任差才行 | let a bundle go live, if it is not worse than the one that is.

    例 Example:  wenlei models promote var/bundles/bert --snapshot var/snapshots/default/HASH
    """
    opened, judged_by = open_bundle(bundle), open_snapshot(snapshot)
    with open_database(load_settings()) as engine:
        move, verdict = promote(
            engine,
            opened,
            model=model,
            alias=alias,
            snapshot=judged_by,
            split=split,
            margin=margin / 100,
            by=person(engine, by),
            force=force,
            note=note,
        )

    def render(console: Console) -> None:
        line(console, f"{move.model}@{move.alias}  {move.bundle} {move.version}")
        line(console, reason(verdict))

    emit(_shape(move), as_json=as_json, render=render)


@app.command()
def rollback(
    model: ModelName, alias: Alias = CHAMPION, by: By = None, note: Note = None, as_json: JsonFlag = False
) -> None:
    """退回上一个 | go back to the bundle that was live before."""
    with open_database(load_settings()) as engine:
        move = roll_back(engine, model=model, alias=alias, by=person(engine, by), note=note)
    emit(
        _shape(move),
        as_json=as_json,
        render=lambda console: line(console, f"{move.model}@{move.alias}  {move.bundle} {move.version}"),
    )


def _shape(move: Move) -> dict[str, Any]:
    return {**move._asdict(), "verdict": dict(move.verdict)}


def _show(console: Console, found: list[Move]) -> None:
    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold", no_wrap="version" in heading)  # what is copied is not broken
    for move in found:
        figure = f"{100 * move.verdict['challenger']:.2f}" if move.verdict else ""
        action = f"{move.action} --force" if move.verdict.get("forced") else move.action
        name = f"{move.model}@{move.alias}"
        table.add_row(name, move.bundle, move.version, action, figure, move.actor, move.at[:16])
    console.print(table)
