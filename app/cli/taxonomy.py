"""`wenlei taxonomy …`: which classes a library has. Changes are previewed, then made as one undoable event."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.agreeing import By, Foreseen, LibraryName, Note, Yes, agreed, examples, person
from app.cli.taxonomy_views import show_classes, show_in_force, show_touched, show_versions
from app.library.declarations import read_declaration
from app.library.revisions import add, describe, merge, move, remove, rename, split
from app.library.shapes.taxonomy import taxonomy_shape, touched_shape, versions_shape
from app.library.taxonomies import (
    Change,
    Undo,
    change_taxonomy,
    list_versions,
    preview_change,
    show_taxonomy,
)
from app.settings import load_settings
from app.store.database import open_database
from app.store.taxonomies import ClassDetails
from model.console import JsonFlag, emit, progress
from model.errors import BadInput
from model.types import Choice, Task

app = typer.Typer(
    no_args_is_help=True,
    help="标签体系 | the taxonomy: which classes a library has",
    epilog=examples(
        ("看看有哪些类别 | see the classes", "wenlei taxonomy show"),
        ("先预览：会涉及多少样本、哪些快照 | look first at what it touches", "wenlei taxonomy rename 差评 不满意"),
        (
            "直接生效，并记下由谁 | put it into force, and say who did",
            "wenlei taxonomy rename 差评 不满意 --yes --by 标注员甲",
        ),
        ("两类并作一类 | two classes become one", "wenlei taxonomy merge 好评 中评 --into 不差"),
        ("一类拆成几类 | one becomes several", "wenlei taxonomy split 不满意 --into 卫生 --into 噪音 --rest 噪音"),
        (
            "谁在何时改了什么，再撤销 | who changed what, and take it back",
            "wenlei taxonomy versions",
            "wenlei taxonomy undo",
        ),
    ),
)

Label = Annotated[
    str, typer.Argument(help="类别：名称、编码或别名；层级写完整路径 | a class: name, code, alias, or whole path")
]
Code = Annotated[str | None, typer.Option(help="编码 | its code")]
Description = Annotated[str | None, typer.Option(help="说明 | what belongs to it")]
Aliases = Annotated[
    list[str] | None, typer.Option("--alias", help="别名，可多次；导入时按此归类 | another name, that imports may use")
]
NewAliases = Annotated[
    list[str] | None,
    typer.Option(
        "--alias", help="别名，可多次，取代原有别名 | another name; those given take the place of the old ones"
    ),
]


@app.command()
def show(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """列出类别及其样本数、编码、说明、别名 | list the classes, with the samples of each."""
    with open_database(load_settings()) as engine:
        found, counts = show_taxonomy(engine, library)
    emit(taxonomy_shape(found, counts), as_json=as_json, render=lambda console: show_classes(console, found, counts))


@app.command(
    epilog=examples(
        ("每行一类 | a class a line", "wenlei taxonomy declare classes.txt --library 评论"),
        (
            "列：名称 name、上级 parent、编码 code、说明 description、别名 aliases、复核人数 reviewers",
            "wenlei taxonomy declare classes.xlsx --library 事件 --choices single,multi",
        ),
    )
)
def declare(
    file: Annotated[
        Path,
        typer.Argument(help="文件：每行一类，或带表头的表格 | a class a line, or a table with a header"),
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
    """从文件声明全部类别；此后导入不再新增类别 | declare all classes from a file; imports add none then."""
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
    """新增一个类别；可带编码、说明、别名 | add a class."""
    details = ClassDetails(code, description, tuple(alias or ()))
    _change(library, add(label, details, before=before), by=by, note=note, yes=yes, as_json=as_json)


@app.command("describe")
def describe_class(
    label: Label,
    code: Code = None,
    description: Description = None,
    alias: NewAliases = None,
    reviewers: Annotated[
        int | None,
        typer.Option(help="复核时须几人意见一致，1 或 2 | how many persons have to agree in a review, 1 or 2"),
    ] = None,
    library: LibraryName = "default",
    by: By = None,
    note: Note = None,
    yes: Yes = False,
    as_json: JsonFlag = False,
) -> None:
    """更改编码、说明、别名、复核人数；空串即去掉 | change code, description, aliases, reviewers; empty removes."""
    if (code, description, alias, reviewers) == (None, None, None, None):
        raise BadInput("nothing to change; give --code, --description, --alias or --reviewers")
    change = describe(label, code=code, description=description, aliases=alias, reviewers=reviewers)
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
    """删除一个类别；其样本待人重新标注 | remove a class; its samples wait for a label."""
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
    """类别或分支改名；旧名成为别名 | rename a class or branch; the old name is an alias then."""
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
    """合并类别；旧名成为别名 | merge classes; the old names are aliases then."""
    _change(library, merge(labels, into=into), by=by, note=note, yes=yes, as_json=as_json)


@app.command(
    "split",
    epilog=examples(
        ("样本归入其一 | its samples go to one", "wenlei taxonomy split 差评 --into 卫生 --into 噪音 --rest 噪音"),
        ("样本待人标注 | its samples wait for a label", "wenlei taxonomy split 差评 --into 卫生 --into 噪音"),
        (
            "原类别留下，分出一类 | it stays, and one comes of it",
            "wenlei taxonomy split 差评 --into 差评 --into 噪音 --rest 差评",
        ),
    ),
)
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
    """一个类别拆成几个；样本归入其一或待人标注 | split a class; its samples go to one, or wait."""
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
    """类别或分支移到另一上级之下 | move a class or branch under another parent."""
    _change(library, move(label, under=under), by=by, note=note, yes=yes, as_json=as_json)


@app.command()
def versions(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """全部版本：谁、何时、改了什么 | all versions: who changed what, when."""
    with open_database(load_settings()) as engine:
        found = list_versions(engine, library)
    emit(
        versions_shape(library, found),
        as_json=as_json,
        render=lambda console: show_versions(console, found),
    )


@app.command(
    "undo",
    epilog=examples(
        ("由后往前，一次一个 | from the last to the first", "wenlei taxonomy undo"),
        ("第 5 版是撤销：再撤销，即恢复 | version 5 was an undo: take that back", "wenlei taxonomy undo 5"),
    ),
)
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
    """撤销一次更改；再撤销“撤销”即恢复 | undo a change, or an undo."""
    _change(library, Undo(version), by=by, note=note, yes=yes, as_json=as_json)


def _change(library: str, change: Change, *, by: str | None, note: str | None, yes: bool, as_json: bool) -> None:
    """Show what `change` touches, ask, and put it into force; without an answer, nothing is changed."""
    with open_database(load_settings()) as engine:
        actor = person(engine, by)

        def foresee() -> Foreseen:
            touched = preview_change(engine, library, change)
            return Foreseen(
                touched_shape(touched, applied=False), lambda console: show_touched(console, touched, library)
            )

        if not agreed(foresee, yes=yes, as_json=as_json):
            return
        with progress("更新样本 | updating samples", None) as advance:
            done = change_taxonomy(engine, library, change, by=actor, note=note, on_samples=advance)

    def render(console: Console) -> None:
        if yes:  # else it was shown before it was agreed to
            show_touched(console, done, library)
        show_in_force(console, done, library)

    emit(touched_shape(done, applied=True), as_json=as_json, render=render)


def _choices(given: str | None) -> list[Choice] | None:
    if given is None:
        return None
    try:
        return [Choice(name.strip()) for name in given.split(",")]
    except ValueError:
        raise BadInput(f"--choices {given!r}: give single or multi for each level, as in single,multi") from None
