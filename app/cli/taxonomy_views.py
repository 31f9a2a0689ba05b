"""How people read a taxonomy, its versions, and what a change of it touches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from app.cli.agreeing import line
from app.library.taxonomies import Touched
from app.store.libraries import Library
from app.store.taxonomies import ClassDetails, TaxonomyChange
from model.types import Taxonomy, preview

SHOWN_HASH = 12  # digits: enough to name a snapshot
SHOWN_MEANINGS = 20
UNDECIDED, NO_LABEL = "（待定 undecided）", "（无标签 none）"
MINUTE = len("2026-01-01T00:00")


def show_classes(console: Console, found: Library, counts: Mapping[str, int]) -> None:
    """A row for each class; branches of which something is known stand above the first class below them."""
    definition = found.definition
    state = "已声明 declared" if definition.declared else "随导入增长 grows by imports"
    line(console, f"{definition.name}  {_kind(definition.taxonomy)}  版本 version {found.version}  {state}")
    if not counts:
        line(console, "还没有类别 | no classes yet: wenlei library import, wenlei taxonomy add")
        return
    table = Table()
    table.add_column("类别\nclass", overflow="fold")
    table.add_column("编码\ncode", overflow="fold")
    table.add_column("样本\nsamples", justify="right", no_wrap=True)
    table.add_column("说明\ndescription", overflow="fold")
    table.add_column("别名\naliases", overflow="fold")
    is_paired = any(details.reviewers > 1 for details in definition.classes.values())
    if is_paired:
        table.add_column("复核人数\nreviewers", justify="right", no_wrap=True)
    for name, count in _rows(found, counts):
        details = definition.classes.get(name, ClassDetails())
        shown = f"{count:,}" if count is not None else ""
        name += "" if count is not None else definition.taxonomy.level_sep or ""
        reviewers = [f"{details.reviewers}"] if is_paired else []
        table.add_row(name, details.code, shown, details.description, "、".join(details.aliases), *reviewers)
    console.print(table)


def show_touched(console: Console, touched: Touched, library: str) -> None:
    """What a change makes of the classes, and how many samples and which snapshots that concerns."""
    revision, before, after = touched.revision, touched.before, touched.revision.definition.taxonomy
    line(console, f"{what_changed(revision.kind, revision.asked)}（版本 version {touched.version}）")
    if touched.version == 1:
        line(console, f"  新建样本库 | a new library: {library}  {_kind(after)}")
    becoming = list(_becoming(touched))
    for was, becomes, samples in becoming[:SHOWN_MEANINGS]:
        line(console, f"  {was} → {becomes}  样本 samples {samples:,}")
    if (more := len(becoming) - SHOWN_MEANINGS) > 0:
        line(console, f"  … 另有 {more:,} 项，见 --json | {more:,} more, see --json")
    became = {label for outcome in touched.outcomes for label in outcome.after}
    became.update(label for meaning in revision.meanings.values() for label in meaning)
    added = [label for label in after.labels if label not in before.labels and label not in became]
    gone = [label for label in before.labels if label not in after.labels and label not in revision.meanings]
    for what, labels in (("新类别 | new classes", added), ("不再有 | gone", gone)):
        if labels:
            line(console, f"  {what}: {preview(labels)}")
    if touched.version == 1:
        return
    if sorted(before.labels) == sorted(after.labels) and before.labels != after.labels:
        line(console, f"  新的顺序 | in another order: {preview(after.labels)}")
    line(
        console,
        f"  涉及样本 samples touched {touched.samples:,}，其中将无标签 left without a label {touched.unlabelled:,}",
    )
    if touched.snapshots:
        held = [f"{snapshot.hash[:SHOWN_HASH]} ({snapshot.samples:,})" for snapshot in touched.snapshots]
        line(
            console, f"  含旧标签的快照保持不变 | snapshots that hold the old labels stay as they are: {preview(held)}"
        )


def show_in_force(console: Console, touched: Touched, library: str) -> None:
    """That the change holds now, and how to take it back."""
    if touched.version == 1:
        line(console, "已生效 | in force")
        return
    way = f"wenlei taxonomy undo {touched.version}" + ("" if library == "default" else f" --library {library}")
    line(console, f"已生效；撤销 | in force; to take it back: {way}")


def show_versions(console: Console, found: Sequence[TaxonomyChange]) -> None:
    """A row for each version, oldest first; notes in quotes below what was changed."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("版本\nversion", justify="right", no_wrap=True)
    table.add_column("时间\ntime", no_wrap=True)
    table.add_column("由谁\nby", overflow="fold")
    table.add_column("更改\nchange", overflow="fold", min_width=30)
    for version in found:
        change = what_changed(version.kind, version.asked or {"labels": len(version.taxonomy.labels)})
        note = f"\n“{version.note}”" if version.note else ""
        table.add_row(f"{version.version}", version.created_at[:MINUTE], version.actor, change + note)
    console.print(table)


def what_changed(kind: str, asked: Mapping[str, Any]) -> str:
    """A change in a few words, as `改名 rename: 差评 → 不满意`."""
    name = f"{_KINDS[kind]} {kind}" if kind in _KINDS else kind
    told = _TOLD[kind](asked) if kind in _TOLD and asked else ""
    return f"{name}: {told}" if told else name


_KINDS = {
    "start": "开始",
    "import": "导入",
    "declare": "声明",
    "add": "新增",
    "describe": "说明",
    "remove": "删除",
    "rename": "改名",
    "move": "移动",
    "merge": "合并",
    "split": "拆分",
    "undo": "撤销",
    "rollback": "回滚",
}


def _details(asked: Mapping[str, Any]) -> str:
    known = ClassDetails.from_json(dict(asked))
    parts = [
        asked["label"],
        f"编码 code {known.code}" if known.code else "",
        f"说明 description {known.description}" if known.description else "",
        f"别名 aliases {'、'.join(known.aliases)}" if known.aliases else "",
        f"复核人数 reviewers {known.reviewers}" if "reviewers" in asked else "",
    ]
    return "  ".join(filter(None, parts))


def _split(asked: Mapping[str, Any]) -> str:
    rest = f"（其余 the rest → {asked['rest']}）" if asked["rest"] else ""
    return f"{asked['label']} → {'、'.join(asked['into'])}{rest}"


_TOLD: dict[str, Callable[[Mapping[str, Any]], str]] = {
    **dict.fromkeys(("start", "import", "declare"), lambda asked: f"{asked['labels']:,} 类 classes"),
    "add": _details,
    "describe": _details,
    "remove": lambda asked: str(asked["label"]),
    "rename": lambda asked: f"{asked['label']} → {asked['to']}",
    "move": lambda asked: f"{asked['label']} → {asked['under'] or '最上层 the top'}",
    "merge": lambda asked: f"{'、'.join(asked['labels'])} → {asked['into']}",
    "split": _split,
    "undo": lambda asked: f"版本 version {asked['version']}",
    "rollback": lambda asked: str(asked["snapshot"])[:SHOWN_HASH],
}


def _becoming(touched: Touched) -> Iterator[tuple[str, str, int]]:
    """What becomes of what, and of how many samples: of classes, or of all that samples carry where it is taken back.

    What a class means after an undo differs from sample to sample, as those from before have their old labels again.
    """
    if touched.revision.base is None:
        for label, meaning in touched.revision.meanings.items():
            yield label, "、".join(meaning) or UNDECIDED, touched.carrying[label]
    else:
        for outcome in touched.outcomes:
            yield " + ".join(outcome.before) or NO_LABEL, " + ".join(outcome.after) or UNDECIDED, outcome.samples


def _kind(taxonomy: Taxonomy) -> str:
    levels = f"（各层 levels {', '.join(taxonomy.choices)}）" if taxonomy.choices else ""
    return f"任务 task {taxonomy.task}{levels}"


def _rows(found: Library, counts: Mapping[str, int]) -> Iterator[tuple[str, int | None]]:
    """Classes with their counts, and before them the branches of which something is known, with None."""
    taxonomy, seen = found.definition.taxonomy, set(counts)
    for label, count in counts.items():
        levels = taxonomy.levels(label)
        for depth in range(1, len(levels)):
            branch = (taxonomy.level_sep or "").join(levels[:depth])
            if branch in found.definition.classes and branch not in seen:
                seen.add(branch)
                yield branch, None
        yield label, count
