"""`wenlei library …`: fill the standard-sample library and freeze it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.cli import (
    library_doctor,
    library_duplicates,
    library_gate,
    library_import,
    library_labels,
    library_list,
    library_rollback,
    library_samples,
    library_snapshots,
    library_suggest,
    library_sweeps,
)
from app.library.cataloguing import library_size
from app.library.shapes.snapshots import frozen_shape
from app.library.snapshots import Conflicts, Frozen, freeze, gaps
from app.library.splits import SPLITS, Splitter
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress, say
from model.near import NearSettings

app = typer.Typer(no_args_is_help=True, help="标准样本库：导入、快照 | the standard-sample library: import, snapshots")

SHOWN_LABELS = 30

LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]

app.command("import")(library_import.import_command)


@app.command("snapshot")
def snapshot_command(
    library: LibraryName = "default",
    test: Annotated[float, typer.Option(help="测试集比例（仅分给未划分的样本） | fraction for test")] = 0.1,
    dev: Annotated[float, typer.Option(help="开发集比例（仅分给未划分的样本） | fraction for dev")] = 0.1,
    seed: Annotated[int, typer.Option(help="划分的随机种子 | seed of the splits")] = 0,
    conflicts: Annotated[
        Conflicts, typer.Option(help="标签冲突的样本 | samples with conflicting labels")
    ] = Conflicts.KEEP,
    near: Annotated[
        float, typer.Option(help="相似度达到多少算近重复，近重复不跨划分 | near duplicates share a split")
    ] = NearSettings().threshold,
    out: Annotated[Path | None, typer.Option(help="快照所在文件夹 | folder that the snapshot is put in")] = None,
    as_json: JsonFlag = False,
) -> None:
    """冻结样本库为不可变快照 | freeze the labelled samples; the same content gives the same snapshot."""
    settings = load_settings()
    with (
        open_database(settings) as engine,
        progress("冻结 | freezing", 2 * library_size(engine, library)) as advance,
    ):
        frozen = freeze(
            engine,
            library=library,
            folder=out or settings.home / "snapshots" / library,
            splitter=Splitter(test=test, dev=dev, seed=seed),
            conflicts=conflicts,
            near=NearSettings(near),
            on_samples=advance,
        )
    told = frozen_shape(frozen, gaps(frozen))
    for gap in told["warnings"]:
        say(f"注意 | warning: {gap}")
    emit(
        {**told, "path": str(frozen.snapshot.path)},
        as_json=as_json,
        render=lambda console: _show(console, frozen),
    )


def _show(console: Console, frozen: Frozen) -> None:
    """The splits and the classes side by side."""
    counts = frozen.snapshot.counts
    table = Table("", "总计 total", *SPLITS, title=frozen.snapshot.hash)
    table.add_row("样本 samples", *(f"{counts[each]:,}" for each in ("total", *SPLITS)))
    for source, name in (("person", "人 person"), ("import", "导入 import"), ("model", "机器 machine")):
        of_source = [frozen.sources[split][source] for split in SPLITS]
        if any(of_source):
            table.add_row(f"标签出自 labels by {name}", *(f"{count:,}" for count in (sum(of_source), *of_source)))
    table.add_section()
    labels = frozen.snapshot.taxonomy.labels
    for label in labels[:SHOWN_LABELS]:
        carrying = [counts["labels"][split][label] for split in SPLITS]
        table.add_row(label, *(f"{count:,}" for count in (sum(carrying), *carrying)))
    console.print(table)
    if len(labels) > SHOWN_LABELS:
        console.print(f"… {len(labels)} 个类别 classes; --json")
    if frozen.conflicts:
        console.print(f"标签冲突 conflicting labels: {frozen.conflicts:,}  wenlei library conflicts")
    console.print(str(frozen.snapshot.path), soft_wrap=True)


app.command("snapshots")(library_snapshots.snapshots)
app.command("diff")(library_snapshots.diff)
app.command("export")(library_snapshots.export)
app.command("verify")(library_snapshots.verify)
app.command("list")(library_list.list_libraries)
app.command("samples")(library_samples.list_samples)
app.command("reindex")(library_snapshots.reindex)
app.command("rollback", epilog=library_rollback.ROLLBACK_EXAMPLES)(library_rollback.rollback)
app.command("sweeps", epilog=library_sweeps.SWEEPS_EXAMPLES)(library_sweeps.sweeps)
app.command("label", epilog=library_gate.LABEL_EXAMPLES)(library_labels.label)
app.command("history")(library_labels.show_history)
app.command("blame")(library_labels.blame)
app.command("undo")(library_labels.undo)
app.command("conflicts")(library_labels.conflicts)
app.command("agreement")(library_labels.agreement)
app.command("duplicates")(library_duplicates.duplicates)
app.command("suggest", epilog=library_suggest.SUGGEST_EXAMPLES)(library_suggest.suggest_samples)
app.command("doctor", epilog=library_doctor.DOCTOR_EXAMPLES)(library_doctor.doctor)
