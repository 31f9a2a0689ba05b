"""`wenlei library snapshots`, `diff`, `export` and `verify`: what was frozen, and whether it still is what it was."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from app.library.cataloguing import library_size
from app.library.cataloguing import reindex as rebuild
from app.library.diffing import ChangeKind, Diff, TaxonomyDiff, diff_snapshots
from app.library.exporting import ExportFormat, export_label_names, export_snapshot, refuse_existing
from app.library.recorded import find_snapshot, list_snapshots
from app.library.shapes.snapshots import SnapshotShape, diff_shape, snapshot_shape
from app.library.shapes.upkeep import MOST_PROBLEMS, ReindexedShape, verified_shape
from app.library.verifying import rows_to_verify
from app.library.verifying import verify as verify_library
from app.settings import load_settings
from app.store.database import open_database
from model.console import JsonFlag, emit, progress, say
from model.errors import BadInput
from model.types import Sample, Split, preview

SHOWN_HASH = 12  # digits: enough to name a snapshot
MINUTE = len("2026-01-01T00:00")

OneLibrary = Annotated[str | None, typer.Option(help="样本库名称；省略则为全部 | name of the library, by default all")]
LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]
Reference = Annotated[
    str, typer.Argument(help="快照：哈希、其开头几位或文件夹 | a snapshot: hash, the beginning of one, or folder")
]


def snapshots(library: OneLibrary = None, as_json: JsonFlag = False) -> None:
    """列出冻结过的快照 | list the snapshots that were frozen, oldest first."""
    with open_database(load_settings()) as engine:
        found = list_snapshots(engine, library)
    rows = [snapshot_shape(record) for record in found]
    placed = [{**row, "path": str(record.path)} for row, record in zip(rows, found, strict=True)]
    emit({"snapshots": placed}, as_json=as_json, render=lambda console: console.print(_snapshot_table(rows)))


def diff(
    before: Reference,
    after: Reference,
    examples: Annotated[int, typer.Option(min=0, help="每类变化显示几条样本 | samples to show of each kind")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """比较两个快照：新增、删除、改标、换划分 | what changed from one snapshot to another."""
    with open_database(load_settings()) as engine:
        old, new = find_snapshot(engine, before), find_snapshot(engine, after)
    with progress("比较 | comparing", old.counts["total"] + new.counts["total"]) as advance:
        found = diff_snapshots(old, new, examples=examples, on_sample=advance)
    emit(diff_shape(old, new, found), as_json=as_json, render=lambda console: _render_diff(console, found))


def export(
    snapshot: Reference,
    file_format: Annotated[ExportFormat, typer.Option("--format", help="导出格式 | format")],
    out: Annotated[Path, typer.Option(help="导出到的文件；hf 为文件夹 | file to write; a folder for hf")],
    split: Annotated[Split | None, typer.Option(help="只导出一个划分 | one split only")] = None,
    label_names: Annotated[
        Path | None,
        typer.Option(help="另存类别及其顺序，供 import --label-names 使用 | also write the classes in their order"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """导出快照供其他工具使用 | write a snapshot in a format that other tools read."""
    if label_names == out:
        raise BadInput(f"--out and --label-names are both {out}; give two names")
    for path in filter(None, (out, label_names)):
        refuse_existing(path)
    with open_database(load_settings()) as engine:
        found = find_snapshot(engine, snapshot)
    with progress("导出 | exporting", found.counts[split or "total"]) as advance:
        exported = export_snapshot(found, file_format=file_format, out=out, split=split, on_sample=advance)
    if label_names:
        export_label_names(found.taxonomy, label_names)
    emit(
        {
            "snapshot": found.hash,
            "path": str(exported.path),
            "samples": exported.samples,
            "label_sep": exported.label_sep,
            "label_names": str(label_names) if label_names else None,
        },
        as_json=as_json,
    )


def verify(library: OneLibrary = None, as_json: JsonFlag = False) -> None:
    """检查样本库与全部快照；有问题则退出码为 2 | check the library and all its snapshots; exit code 2 on problems."""
    with open_database(load_settings()) as engine:
        total = rows_to_verify(engine, library)
        problems = []
        count = 0
        with progress("检查 | verifying", total) as advance:
            for problem in verify_library(engine, library=library, on_rows=advance):
                say(f"{problem.place}: {problem.what}")
                count += 1
                if count <= MOST_PROBLEMS:  # all of them are counted, and told on stderr
                    problems.append(problem)
    emit(
        verified_shape(count, problems),
        as_json=as_json,
        render=lambda console: console.print(f"{count} 个问题 | problems" if count else "完好 | clean"),
    )
    if count:
        raise typer.Exit(2)


def reindex(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """重建目录与检索索引（verify 提示不一致时） | make the catalogue and search index anew, where verify advises it."""
    with open_database(load_settings()) as engine:
        total = library_size(engine, library)
        with progress("重建 | indexing", total) as advance:
            rebuild(engine, library, on_samples=advance)
    emit(ReindexedShape(library=library, samples=total), as_json=as_json)


_STATES = {"present": "在 there", "gone": "已不在 gone", "damaged": "已损坏 damaged"}


def _snapshot_table(rows: list[SnapshotShape]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("时间 time", "快照 snapshot", "父 parent"):
        table.add_column(heading, no_wrap=True)
    table.add_column("样本 samples", justify="right")
    table.add_column("文件夹 folder")
    table.add_column("样本库 library")
    for row in rows:
        table.add_row(
            row["created_at"][:MINUTE],
            row["snapshot"][:SHOWN_HASH],
            (row["parent"] or "-")[:SHOWN_HASH],
            f"{row['counts']['total']:,}" if row["counts"] else "-",
            _STATES[row["state"]],
            row["library"],
        )
    return table


_KINDS = {
    ChangeKind.ADDED: "新增 | added",
    ChangeKind.REMOVED: "删除 | removed",
    ChangeKind.RELABELLED: "改标 | relabelled",
    ChangeKind.MOVED: "换划分 | moved between splits",
}


def _render_diff(console: Console, found: Diff) -> None:
    totals = Table.grid(padding=(0, 2))
    for kind, count in found.counts.items():
        totals.add_row(_KINDS[kind], f"{count:,}")
    totals.add_row("未变 | unchanged", f"{found.unchanged:,}")
    console.print(totals)
    for line in _taxonomy_lines(found.taxonomy):
        console.print(line)
    for pairs in (found.label_changes.most_common(), found.split_changes.most_common()):
        if pairs:
            table = Table("原来\nfrom", "现在\nto", "样本\nsamples")
            for (old, new), count in pairs:
                table.add_row(old or "-", new or "-", f"{count:,}")
            console.print(table)
    for kind, changes in found.examples.items():
        for change in changes:
            console.print(f"{_KINDS[kind]}: {_shown(change.before)} → {_shown(change.after)}: {change.sample.text}")


def _taxonomy_lines(taxonomy: TaxonomyDiff) -> Iterator[str]:
    if taxonomy.added:
        yield f"标签体系新增 | new in the taxonomy: {preview(taxonomy.added)}"
    if taxonomy.removed:
        yield f"标签体系不再有 | gone from the taxonomy: {preview(taxonomy.removed)}"
    if taxonomy.reordered:
        yield "标签体系的顺序变了 | the order of the taxonomy has changed"
    for what, pair in (
        ("层级分隔符 | level separator", taxonomy.level_sep),
        ("可有多个标签 | several labels a text", taxonomy.multiple),
    ):
        if pair:
            yield f"{what}: {pair[0]} → {pair[1]}"


def _shown(sample: Sample | None) -> str:
    return "-" if sample is None else f"{', '.join(sample.labels)} ({sample.split})"
