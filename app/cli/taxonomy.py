"""`wenlei taxonomy …`: which classes a library has. Changes are previewed, then made as one undoable event."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.library.declarations import read_declaration
from app.library.revisions import add, describe, merge, move, remove, rename, split
from app.library.taxonomies import (
    Change,
    Touched,
    Undo,
    change_taxonomy,
    list_versions,
    preview_change,
    show_taxonomy,
)
from app.people.accounts import check_person, who_runs_this
from app.settings import load_settings
from app.store.database import open_database
from app.store.libraries import Library
from app.store.taxonomies import ClassDetails, TaxonomyChange
from model.console import JsonFlag, emit, progress, say
from model.errors import BadInput
from model.types import Choice, Task, preview

app = typer.Typer(no_args_is_help=True, help="标签体系 | the taxonomy: which classes a library has")

SHOWN_HASH = 12
LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]
Label = Annotated[str, typer.Argument(help="类别：名称、编码或别名；层级写完整路径 | a class: name, code or alias")]
By = Annotated[str | None, typer.Option(help="由谁更改（用户名，默认系统用户） | who changes it: a user")]
Note = Annotated[str | None, typer.Option(help="备注 | a note")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="不再询问，直接生效 | put it into force without asking")]
Code = Annotated[str | None, typer.Option(help="编码 | its code")]
Description = Annotated[str | None, typer.Option(help="说明 | what belongs to it")]
Aliases = Annotated[
    list[str] | None, typer.Option("--alias", help="别名，可多次；导入时按此归类 | another name, that imports may use")
]


@app.command()
def show(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """显示类别、编码、样本数、说明、别名 | show the classes and how many samples carry each."""
    with open_database(load_settings()) as engine:
        found, counts = show_taxonomy(engine, library)
    emit(taxonomy_json(found, counts), as_json=as_json, render=lambda console: _render(console, found, counts))


@app.command()
def declare(
    file: Annotated[
        Path,
        typer.Argument(help="每行一类，或带表头的表格（名称、上级、编码、说明、别名） | a class a line, or a table"),
    ],
    task: Annotated[Task | None, typer.Option(help="任务（新库） | the task, of a new library")] = None,
    level_sep: Annotated[str | None, typer.Option(help="层级分隔符 | what parts the levels of a path")] = None,
    choices: Annotated[
        str | None, typer.Option(help="各层单选或多选，如 single,multi | how many children of a parent, by level")
    ] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """声明全部类别；此后导入不再新增类别 | declare all classes; imports add none from then on."""
    declaration = read_declaration(file, task=task, level_sep=level_sep, choices=_choices(choices))
    _change(library, declaration, by=by, note=note, yes=yes, as_json=as_json)


@app.command("add")
def add_class(
    label: Annotated[str, typer.Argument(help="新类别，层级写完整路径 | the new class; a whole path in a hierarchy")],
    code: Code = None,
    description: Description = None,
    alias: Aliases = None,
    before: Annotated[str | None, typer.Option(help="排在哪个类别之前 | the class that it comes before")] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """新增一个类别 | add a class."""
    details = ClassDetails(code, description, tuple(alias or ()))
    _change(library, add(label, details, before=before), by=by, note=note, yes=yes, as_json=as_json)


@app.command("describe")
def describe_class(
    label: Label,
    code: Code = None,
    description: Description = None,
    alias: Aliases = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """更改编码、说明、别名；空串表示去掉 | change the code, description or aliases; empty takes it away."""
    if (code, description, alias) == (None, None, None):
        raise BadInput("nothing to change; give --code, --description or --alias")
    change = describe(label, code=code, description=description, aliases=alias)
    _change(library, change, by=by, note=note, yes=yes, as_json=as_json)


@app.command("remove")
def remove_class(
    label: Label,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """删除一个类别；其样本变为无标签，待人决定 | remove a class; its samples wait for another label."""
    _change(library, remove(label), by=by, note=note, yes=yes, as_json=as_json)


@app.command("rename")
def rename_class(
    label: Label,
    to: Annotated[str, typer.Argument(help="新名称 | the new name")],
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """改名（类别或整个分支）；旧名保留为别名 | rename a class or a branch; the old name stays on as an alias."""
    _change(library, rename(label, to), by=by, note=note, yes=yes, as_json=as_json)


@app.command("merge")
def merge_classes(
    labels: Annotated[list[str], typer.Argument(help="要合并的类别 | the classes that become one")],
    into: Annotated[str, typer.Option(help="并入的类别，可为新类别 | the class that they become, maybe a new one")],
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """合并类别；旧名保留为别名 | merge classes; the old names stay on as aliases."""
    _change(library, merge(labels, into=into), by=by, note=note, yes=yes, as_json=as_json)


@app.command("split")
def split_class(
    label: Label,
    into: Annotated[list[str], typer.Option(help="拆成的类别，给出两次以上 | a class that comes of it; give several")],
    rest: Annotated[
        str | None, typer.Option(help="原有样本归入其中哪类；省略则待人决定 | where its samples go; else they wait")
    ] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """拆分一个类别 | split a class into several."""
    _change(library, split(label, into=into, rest=rest), by=by, note=note, yes=yes, as_json=as_json)


@app.command("move")
def move_class(
    label: Label,
    under: Annotated[
        str | None, typer.Option(help="新的上级；省略则移到最上层 | the new parent; else to the top")
    ] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """移动类别或整个分支到另一上级之下 | move a class or a branch under another parent."""
    _change(library, move(label, under=under), by=by, note=note, yes=yes, as_json=as_json)


@app.command()
def versions(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """标签体系的全部版本 | all versions of the taxonomy: who changed what, when."""
    with open_database(load_settings()) as engine:
        found = list_versions(engine, library)
    emit(
        {"library": library, "versions": [version_json(version) for version in found]},
        as_json=as_json,
        render=lambda console: console.print(_version_table(found)),
    )


@app.command("undo")
def undo_change(
    version: Annotated[
        int | None, typer.Argument(help="要撤销的版本，默认最近一次更改 | the version to undo, by default the last")
    ] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """撤销一次更改；撤销“撤销”即恢复 | undo a change; undo the undo to bring it back."""
    _change(library, Undo(version), by=by, note=note, yes=yes, as_json=as_json)


def taxonomy_json(found: Library, counts: dict[str, int]) -> dict[str, Any]:
    """A library's taxonomy as commands print it."""
    definition = found.definition
    return {
        "library": definition.name,
        "version": found.version,
        "declared": definition.declared,
        **definition.taxonomy.to_json(),
        "labels": [
            {"label": label, "samples": count, **definition.classes.get(label, ClassDetails()).to_json()}
            for label, count in counts.items()
        ],
        "branches": {
            branch: details.to_json() for branch, details in definition.classes.items() if branch not in counts
        },
    }


def version_json(version: TaxonomyChange) -> dict[str, Any]:
    """A version of a taxonomy as commands print it."""
    return {
        "version": version.version,
        "kind": version.kind,
        "asked": dict(version.asked),
        "undoes": version.undoes,
        "labels": list(version.taxonomy.labels),
        "declared": version.declared,
        "by": version.actor,
        "at": version.created_at,
        "note": version.note,
    }


def touched_json(touched: Touched, *, applied: bool) -> dict[str, Any]:
    """A change as commands print it, before or after it is put into force."""
    revision = touched.revision
    before, after = touched.before.labels, revision.definition.taxonomy.labels
    return {
        "applied": applied,
        "version": touched.version,
        "kind": revision.kind,
        "asked": dict(revision.asked),
        "added": [label for label in after if label not in before],
        "removed": [label for label in before if label not in after],
        "meanings": {label: list(meaning) for label, meaning in revision.meanings.items()},
        "carrying": touched.carrying,
        "samples": touched.samples,
        "unlabelled": touched.unlabelled,
        "snapshots": [snapshot._asdict() for snapshot in touched.snapshots],
    }


def _change(library: str, change: Change, *, by: str | None, note: str | None, yes: bool, as_json: bool) -> None:
    """Show what `change` touches, ask, and put it into force; without an answer, nothing is changed."""
    with open_database(load_settings()) as engine:
        actor = who_runs_this() if by is None else check_person(engine, by)
        if not yes:
            foreseen = preview_change(engine, library, change)
            if as_json or not sys.stdin.isatty():
                emit(
                    touched_json(foreseen, applied=False),
                    as_json=as_json,
                    render=lambda console: _touched(console, foreseen),
                )
                say("未生效；加 --yes 使之生效 | nothing was changed; add --yes to put it into force")
                return
            _touched(Console(), foreseen)
            if not typer.confirm("使之生效？| Put it into force?", err=True):
                say("未生效 | nothing was changed")
                return
        with progress("更新样本 | updating samples", None) as advance:
            done = change_taxonomy(engine, library, change, by=actor, note=note, on_samples=advance)
    emit(touched_json(done, applied=True), as_json=as_json, render=lambda console: _done(console, done))


def _choices(given: str | None) -> list[Choice] | None:
    if given is None:
        return None
    try:
        return [Choice(name.strip()) for name in given.split(",")]
    except ValueError:
        raise BadInput(f"--choices {given!r}: give single or multi for each level, as in single,multi") from None


def _render(console: Console, found: Library, counts: dict[str, int]) -> None:
    definition = found.definition
    taxonomy = definition.taxonomy
    state = "已声明 declared" if definition.declared else "随导入增长 grows by imports"
    choices = f"  各层 levels {', '.join(taxonomy.choices)}" if taxonomy.choices else ""
    table = Table(title=f"{definition.name}  {taxonomy.task}{choices}  版本 version {found.version}  {state}")
    table.add_column("类别\nclass", overflow="fold")
    table.add_column("编码\ncode", overflow="fold")
    table.add_column("样本\nsamples", justify="right")
    table.add_column("说明\ndescription", overflow="fold")
    table.add_column("别名\naliases", overflow="fold")
    for label, count in counts.items():
        details = definition.classes.get(label, ClassDetails())
        table.add_row(label, details.code, f"{count:,}", details.description, "、".join(details.aliases))
    console.print(table)


def _touched(console: Console, touched: Touched) -> None:
    revision = touched.revision
    asked = json.dumps(dict(revision.asked), ensure_ascii=False)
    console.print(f"{revision.kind} {asked} → 版本 version {touched.version}", soft_wrap=True)
    for label, meaning in list(revision.meanings.items())[:20]:
        becomes = "、".join(meaning) or "（待定 undecided）"
        console.print(f"  {label} → {becomes}  样本 samples {touched.carrying[label]:,}")
    console.print(
        f"  涉及样本 samples touched {touched.samples:,}，其中将无标签 left without a label {touched.unlabelled:,}"
    )
    if touched.snapshots:
        held = [f"{snapshot.hash[:SHOWN_HASH]} ({snapshot.samples:,})" for snapshot in touched.snapshots]
        console.print(
            f"  含有这些标签的快照（保持不变） snapshots that hold them, and stay as they are: {preview(held)}"
        )


def _done(console: Console, touched: Touched) -> None:
    _touched(console, touched)
    console.print("已生效；撤销：wenlei taxonomy undo | in force; take it back with wenlei taxonomy undo")


def _version_table(found: list[TaxonomyChange]) -> Table:
    table = Table("版本\nversion", "时间\ntime", "由谁\nby", "更改\nchange", "类别\nclasses", "备注\nnote")
    for version in found:
        what = version.kind + (f" {version.undoes}" if version.undoes else "")
        asked = json.dumps(dict(version.asked), ensure_ascii=False) if version.asked and not version.undoes else ""
        table.add_row(
            str(version.version),
            version.created_at,
            version.actor,
            f"{what} {asked}".strip(),
            f"{len(version.taxonomy.labels)}",
            version.note,
        )
    return table
