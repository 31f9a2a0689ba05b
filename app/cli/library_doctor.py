"""`wenlei library doctor`: what is wrong with a library, and what to do about it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from app.cli.agreeing import By, LibraryName, Note, examples, line, person
from app.library.cataloguing import library_size
from app.library.doctor.applying import Action, Applied, apply_label_errors, check_min_confidence
from app.library.doctor.examining import MAX_LENGTH, Examination, Questions, examine
from app.library.doctor.findings import Severity
from app.library.doctor.referring import named_kinds, queue_findings
from app.library.doctor.report import SEVERITIES, TITLES, write_report
from app.library.shapes.doctor import applied_shape, examination_shape
from app.settings import load_settings
from app.store.database import open_database
from app.store.reviews import Queued
from model.console import JsonFlag, emit, progress
from model.errors import BadInput
from model.near import NearSettings

DOCTOR_EXAMPLES = examples(
    ("体检，不需要训练 | without training", "wenlei library doctor --library reviews"),
    (
        "用分折训练的预测找标签错误 | find label errors by predictions",
        "wenlei train --snapshot SNAPSHOT --folds 5 --out var/runs/folds",
        "wenlei library doctor --library reviews --run var/runs/folds",
    ),
    (
        "把发现的样本送去复核 | have them reviewed",
        "wenlei library doctor --library reviews --to-review conflicts --to-review outliers",
    ),
    (
        "自动清洗，可撤销 | clean automatically; it can be undone",
        "wenlei library doctor --library reviews --run var/runs/folds --apply drop --min-confidence 0.9 --dry-run",
    ),
)


def doctor(
    library: LibraryName = "default",
    run: Annotated[
        Path | None, typer.Option(help="分折训练的文件夹，用其预测判断标签 | a training by folds, to judge labels by")
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option(help="快照哈希或其开头，检查其划分 | a snapshot whose splits are looked at too")
    ] = None,
    bundle: Annotated[
        Path | None, typer.Option(help="模型包，用其分词器与上限 | a bundle, for its tokenizer and limit")
    ] = None,
    max_length: Annotated[int, typer.Option(help="模型读入的词元上限 | tokens that a model reads")] = MAX_LENGTH,
    near: Annotated[
        float, typer.Option(help="相似度达到多少算近重复 | how similar near duplicates are, 0.5 to 1")
    ] = NearSettings().threshold,
    out: Annotated[Path | None, typer.Option(help="报告文件 | the report, an HTML file")] = None,
    to_review: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND", help="把哪些发现送入复核队列，可多次 | findings to be reviewed, each its own"),
    ] = None,
    apply: Annotated[
        Action | None, typer.Option(help="清洗疑似错误的标签 | what to do with labels that are probably wrong")
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(help="清洗所需把握，0.5 到 1 | how sure that has to be, 0.5 to 1")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="只看清洗会改多少 | look only at what --apply would do")
    ] = False,
    by: By = None,
    note: Note = None,
    as_json: JsonFlag = False,
) -> None:
    """体检：重复、泄漏、冲突、标签错误、长度、文字等，出报告 | examine a library and write a report."""
    questions = Questions(near=near, max_length=max_length, bundle=bundle, snapshot=snapshot, run=run)
    kinds = named_kinds(to_review or (), has_run=run is not None)
    _check_apply(apply, min_confidence, run, dry_run=dry_run, to_review=bool(to_review))
    if out is not None and out.is_dir():  # rather now than after minutes
        raise BadInput(f"--out {out} is a folder; name the report's file, such as {out / 'doctor.html'}")
    settings = load_settings()
    with open_database(settings) as engine:
        who = person(engine, by)
        with progress("体检 | examining", 2 * library_size(engine, library)) as advance:
            found = examine(engine, library=library, questions=questions, on_samples=advance)
        path = out or settings.home / "reports" / f"doctor-{library}-{datetime.now(UTC):%Y-%m-%d}.html"
        shape = examination_shape(found)
        write_report(shape, path)
        queued = queue_findings(engine, found, kinds, by=who) if kinds else None
        applied = None
        if apply is not None and min_confidence is not None and found.judged is not None:
            with progress("清洗 | cleaning", None) as advance:
                applied = apply_label_errors(
                    engine,
                    found.census,
                    found.judged.run,
                    found.judged.predictions,
                    action=apply,
                    min_confidence=min_confidence,
                    by=who,
                    note=note,
                    dry_run=dry_run,
                    on_samples=advance,
                )
    result: dict[str, Any] = {**shape, "report": str(path)}
    if queued:
        result["queued"] = queued._asdict()
    if applied:
        result["applied"] = applied_shape(applied)
    emit(result, as_json=as_json, render=lambda console: _show(console, found, path, queued, applied, dry_run=dry_run))


def _check_apply(
    apply: Action | None, min_confidence: float | None, run: Path | None, *, dry_run: bool, to_review: bool
) -> None:
    if (apply is None) != (min_confidence is None):
        raise BadInput("--apply and --min-confidence go together: give both, or neither")
    if min_confidence is not None:
        check_min_confidence(min_confidence)  # before anything is queued
    if apply is not None and run is None:
        raise BadInput(f"--apply {apply}: it takes predictions; name a training by folds with --run")
    if dry_run and apply is None:
        raise BadInput("--dry-run looks at what --apply would do; without it nothing is changed anyway")
    if dry_run and to_review:
        raise BadInput("--to-review puts samples into review, and --dry-run is to change nothing: give one of them")


def _show(
    console: Console,
    found: Examination,
    path: Path,
    queued: Queued | None,
    applied: Applied | None,
    *,
    dry_run: bool,
) -> None:
    """Each finding with its summary and what comes next, then where the report is."""
    for finding in found.findings:
        chinese, english = TITLES[finding.kind]
        line(console, f"{SEVERITIES[finding.severity]}  {chinese} {english}  {finding.count:,}")
        line(console, f"    {finding.summary}")
        line(console, f"    {finding.summary_en}")
        if finding.severity is not Severity.FINE:
            for command in finding.commands:
                line(console, f"    → {command}")
    if queued:
        line(
            console,
            f"送入复核 queued: 新增 new {queued.added:,}  提前 raised {queued.raised:,}  已有 known {queued.known:,}",
        )
    if applied:
        line(
            console,
            f"清洗 {applied.action}: 找到 found {applied.found:,}  改动 changed {applied.changed:,}  "
            f"人标未动 kept for a person's word {applied.kept:,}  "
            f"dev、test 留给人 left to people, in dev and test {applied.held_out:,}  "
            + _written(applied, dry_run=dry_run),
        )
        if applied.sweep is not None:
            library = "" if found.library == "default" else f" --library {found.library}"
            undo = f"wenlei library sweeps --undo {applied.sweep} --by NAME{library}"
            line(console, f"整批撤销 to take it back: {undo}")
    line(console, f"报告 report  {path}")


def _written(applied: Applied, *, dry_run: bool) -> str:
    if applied.sweep is not None:
        return f"批次 sweep {applied.sweep}"
    return "仅预览，未写入 nothing was written (--dry-run)" if dry_run else "没有可改的 there was nothing to change"
