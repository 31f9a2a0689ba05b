"""`wenlei library …`: fill the standard-sample library and freeze it."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import library_labels, library_snapshots
from app.library.definition import ImportOptions
from app.library.formats import Format
from app.library.importing import import_files
from app.library.label_names import read_label_names
from app.library.rows import Columns
from app.library.snapshots import Conflicts, freeze, gaps
from app.library.splits import Splitter
from app.library.tables import Reading, Table
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress, say
from model.types import Task

app = typer.Typer(no_args_is_help=True, help="标准样本库：导入、快照 | the standard-sample library: import, snapshots")

LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]


@app.command("import")
def import_command(
    files: Annotated[list[Path], typer.Argument(help="数据文件，可为 .zip .gz .xz | data files, packed or not")],
    text: Annotated[
        str, typer.Option(help="文本列：列名，无表头时为序号（从 0 起） | column of the text: name or index")
    ],
    label: Annotated[str | None, typer.Option(help="标签列；省略则导入无标签文本 | column of the label")] = None,
    pair: Annotated[str | None, typer.Option(help="第二文本列（文本对任务） | column of the second text")] = None,
    library: LibraryName = "default",
    file_format: Annotated[Format, typer.Option("--format", help="文件格式 | format of the files")] = Format.AUTO,
    header: Annotated[
        bool, typer.Option("--header/--no-header", help="首行是否为列名 | first row names columns")
    ] = True,
    label_names: Annotated[
        Path | None, typer.Option(help="类别名称文件，第 i 行为类别 i | file that declares the classes in their order")
    ] = None,
    task: Annotated[Task | None, typer.Option(help="任务类型 | single, multi or hierarchical")] = None,
    label_sep: Annotated[str | None, typer.Option(help="多个标签之间的分隔符 | parts the labels of a text")] = None,
    level_sep: Annotated[str | None, typer.Option(help="标签层级之间的分隔符 | parts the levels of a label")] = None,
    split: Annotated[
        str | None, typer.Option(help="train、dev、test，或给出划分的列 | the split of all rows, or the column of it")
    ] = None,
    encoding: Annotated[str, typer.Option(help="字符编码，auto 自动识别 | character encoding")] = "auto",
    simplify: Annotated[
        bool | None,
        typer.Option(
            "--simplify/--no-simplify", help="新建样本库时：繁体转简体 | of a new library: simplify characters"
        ),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """把文本导入样本库，可重复执行 | import texts; the same file twice adds nothing."""
    settings = load_settings()
    options = ImportOptions(
        library=library,
        task=task,
        label_sep=label_sep,
        level_sep=level_sep,
        names=read_label_names(label_names) if label_names else None,
        simplify=simplify,
    )
    total = sum(file.stat().st_size for file in files if file.is_file())
    with open_database(settings) as engine, progress("导入 | importing", total) as advance:
        imported = import_files(
            engine,
            files,
            options=options,
            columns=Columns(text=text, label=label, pair=pair, split=split),
            reading=Reading(format=file_format, header=header, encoding=encoding),
            rejects_folder=settings.home / "rejects",
            on_read=advance,
            on_table=_tell_encoding,
            on_skipped=lambda name: say(f"{name}: 未导入 | left out"),
        )
    emit(
        {
            "read": imported.read,
            "added": imported.added,
            "duplicates": imported.duplicates,
            "rejected": imported.rejected,
            "rejects_file": str(imported.rejects_file) if imported.rejects_file else None,
        },
        as_json=as_json,
    )


@app.command("snapshot")
def snapshot_command(
    library: LibraryName = "default",
    test: Annotated[float, typer.Option(help="测试集比例（仅分给未划分的样本） | fraction for test")] = 0.1,
    dev: Annotated[float, typer.Option(help="开发集比例（仅分给未划分的样本） | fraction for dev")] = 0.1,
    seed: Annotated[int, typer.Option(help="划分的随机种子 | seed of the splits")] = 0,
    conflicts: Annotated[
        Conflicts, typer.Option(help="标签冲突的样本 | samples with conflicting labels")
    ] = Conflicts.KEEP,
    out: Annotated[Path | None, typer.Option(help="快照所在文件夹 | folder that the snapshot is put in")] = None,
    as_json: JsonFlag = False,
) -> None:
    """冻结样本库为不可变快照 | freeze the labelled samples; the same content gives the same snapshot."""
    settings = load_settings()
    with open_database(settings) as engine:
        frozen = freeze(
            engine,
            library=library,
            folder=out or settings.home / "snapshots" / library,
            splitter=Splitter(test=test, dev=dev, seed=seed),
            conflicts=conflicts,
        )
    for gap in gaps(frozen.snapshot):
        say(f"注意 | warning: {gap}")
    emit(
        {
            "snapshot": frozen.snapshot.hash,
            "path": str(frozen.snapshot.path),
            "counts": {**frozen.snapshot.counts, "conflicts": frozen.conflicts},
        },
        as_json=as_json,
    )


app.command("snapshots")(library_snapshots.snapshots)
app.command("diff")(library_snapshots.diff)
app.command("export")(library_snapshots.export)
app.command("verify")(library_snapshots.verify)
app.command("label")(library_labels.label)
app.command("history")(library_labels.show_history)
app.command("blame")(library_labels.blame)
app.command("undo")(library_labels.undo)
app.command("conflicts")(library_labels.conflicts)
app.command("agreement")(library_labels.agreement)


def _tell_encoding(table: Table) -> None:
    if table.encoding not in (None, "utf-8", "utf-8-sig"):
        say(f"{table.name}: 编码 | encoding {table.encoding}")
