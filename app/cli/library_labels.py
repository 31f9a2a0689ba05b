"""The commands of `wenlei library` about labels: who says what of a sample, who disagrees, and how to take it back."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.library_gate import Asked, label_pool
from app.library.agreement import measure_agreement
from app.library.disputes import list_disputes
from app.library.history import History, history
from app.library.labelling import label_sample, undo_event
from app.library.shapes.labels import (
    agreement_shape,
    disputes_shape,
    event_shape,
    history_shape,
    spoken_shape,
    undone_shape,
)
from app.people.accounts import check_person
from app.settings import load_settings
from app.store.database import open_database
from app.store.events import RecordedEvent
from model.console import JsonFlag, emit
from model.errors import BadInput
from model.types import Split

LibraryName = Annotated[str, typer.Option(help="样本库名称 | name of the library")]
SampleName = Annotated[
    str, typer.Argument(help="样本编号或其开头；加 --text 则为文本 | id of the sample, or its beginning")
]
IsText = Annotated[bool, typer.Option("--text", help="SAMPLE 是文本本身 | SAMPLE is the text itself")]
Person = Annotated[str, typer.Option(help="标注人：wenlei 用户 | who says so: a user, see wenlei user create")]
Note = Annotated[str | None, typer.Option(help="备注 | a note")]
POOL = "让模型给未标注的样本打标签 | to let a model label what nobody has labelled"


def label(
    by: Person,
    sample: Annotated[
        str | None, typer.Argument(help="样本编号或其开头；加 --text 则为文本 | id of the sample, or its beginning")
    ] = None,
    labels: Annotated[
        list[str] | None, typer.Argument(metavar="[LABEL]...", help="标签；层级标签写完整路径 | the labels")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="不属于任何类别 | it belongs to none of the classes")] = False,
    confidence: Annotated[
        float | None,
        typer.Option(help="把握，0 到 1；与 --bundle 同用时为保证的把握，默认 0.95 | how sure; of the guarantee: 0.95"),
    ] = None,
    note: Note = None,
    is_text: IsText = False,
    bundle: Annotated[
        Path | None, typer.Option(rich_help_panel=POOL, help="模型包目录 | folder of the bundle that labels")
    ] = None,
    max_error: Annotated[
        float | None,
        typer.Option(
            rich_help_panel=POOL, help="验收的标签最多错多少，如 0.02 | share that may be wrong, such as 0.02"
        ),
    ] = None,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", rich_help_panel=POOL, help="每一类都保证 | for each class, and not only in all"),
    ] = False,
    calibration: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=POOL, help="校准用的快照，默认训练所用的 | snapshot to calibrate on; the training's"
        ),
    ] = None,
    split: Annotated[
        Split | None, typer.Option(rich_help_panel=POOL, help="校准用的划分，默认 test | its split, by default test")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(rich_help_panel=POOL, help="精度（fp32、int8），默认最小的 | precision, by default the smallest"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", rich_help_panel=POOL, help="只试算，不写入 | look only, write nothing")
    ] = False,
    no_review: Annotated[
        bool, typer.Option("--no-review", rich_help_panel=POOL, help="其余不送复核 | don't queue the rest for review")
    ] = False,
    library: LibraryName = "default",
    as_json: JsonFlag = False,
) -> None:
    """给样本打标签，人的标签优先；或让模型给其余的打标签，保证错误率 | label a sample, or let a model do so."""
    of_pool = {
        "--max-error": max_error is not None,
        "--per-class": per_class,
        "--calibration": calibration is not None,
        "--split": split is not None,
        "--precision": precision is not None,
        "--dry-run": dry_run,
        "--no-review": no_review,
    }
    if bundle is not None:
        if sample is not None or is_text:
            raise BadInput("a sample and --bundle are both given; --bundle labels all that nobody has labelled")
        if none:
            raise BadInput("--none and --bundle are both given; --none is what a person says of one sample")
        asked = Asked(library, by, per_class, calibration, split, precision, note, dry_run, not no_review)
        label_pool(bundle, max_error, confidence, asked, as_json=as_json)
        return
    if given := [option for option, is_given in of_pool.items() if is_given]:
        raise BadInput(f"{', '.join(given)}: only for labelling by a model; name one with --bundle")
    if sample is None or not (labels or none):
        raise BadInput(
            "give a sample and its labels, or --none where no class fits, or --bundle and --max-error to let a model "
            "label the rest"
        )
    with open_database(load_settings()) as engine:
        spoken = label_sample(
            engine,
            library=library,
            sample=sample,
            is_text=is_text,
            labels=labels or (),
            none=none,
            by=check_person(engine, by),
            confidence=confidence,
            note=note,
        )
    emit(spoken_shape(spoken), as_json=as_json)


def undo(
    event: Annotated[int, typer.Argument(min=1, max=2**63 - 1, help="事件编号，见 history | number of the event")],
    by: Person,
    note: Note = None,
    as_json: JsonFlag = False,
) -> None:
    """撤销一个事件；撤销“撤销”即恢复 | withdraw an event by another one; undo the undo to bring it back."""
    with open_database(load_settings()) as engine:
        spoken = undo_event(engine, event, by=check_person(engine, by), note=note)
    emit(undone_shape(spoken, event), as_json=as_json)


def show_history(
    sample: SampleName, is_text: IsText = False, library: LibraryName = "default", as_json: JsonFlag = False
) -> None:
    """样本的全部标签事件，* 为当前标签的来源 | every label event of a sample; * marks the one that counts."""
    with open_database(load_settings()) as engine:
        found = history(engine, library=library, sample=sample, is_text=is_text)
    emit(history_shape(found), as_json=as_json, render=lambda console: _show_history(console, found))


def blame(
    sample: SampleName, is_text: IsText = False, library: LibraryName = "default", as_json: JsonFlag = False
) -> None:
    """当前标签出自谁、何时、何处 | the one event that the current label comes from."""
    with open_database(load_settings()) as engine:
        recorded = history(engine, library=library, sample=sample, is_text=is_text).blame()
    emit(event_shape(recorded), as_json=as_json, render=lambda console: _show(console, _line(recorded)))


def conflicts(
    library: LibraryName = "default",
    limit: Annotated[int, typer.Option(min=1, help="最多显示几条 | at most so many")] = 20,
    offset: Annotated[int, typer.Option(min=0, help="跳过前几条 | after the first so many")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """标签有分歧的样本及各方标签 | samples on which persons or imports disagree, with what each says."""
    with open_database(load_settings()) as engine:
        page = list_disputes(engine, library=library, limit=limit, offset=offset)

    def show(console: Console) -> None:
        for dispute in page.disputes:
            _show(console, f"{dispute.sample.id}  {_texts(dispute.sample.text, dispute.sample.pair)}")
            for recorded in dispute.candidates:
                mark = "*" if recorded.event.id == dispute.current.event else " "
                _show(console, f"  {mark} {_line(recorded)}")
        first = min(offset + 1, page.total)
        _show(
            console, f"{first}–{offset + len(page.disputes)} / {page.total}" if page.disputes else f"0 / {page.total}"
        )

    emit(disputes_shape(page), as_json=as_json, render=show)


def agreement(library: LibraryName = "default", as_json: JsonFlag = False) -> None:
    """标注人之间的一致性：Cohen κ、Krippendorff α | agreement between the persons who label."""
    with open_database(load_settings()) as engine:
        measured = measure_agreement(engine, library=library)

    def show(console: Console) -> None:
        _show(
            console,
            f"样本 samples {measured.samples}  一致率 observed {measured.observed:.3f}  α {_figure(measured.alpha)}",
        )
        for pair in measured.pairs:
            names, figures = " – ".join(pair.persons), f"{pair.observed:.3f}  κ {_figure(pair.kappa)}"
            _show(console, f"  {names}: 样本 samples {pair.samples}  一致率 observed {figures}")

    emit(agreement_shape(measured), as_json=as_json, render=show)


def _show_history(console: Console, found: History) -> None:
    _show(console, f"{found.sample.id}  {_texts(found.sample.text, found.sample.pair)}")
    for recorded in found.sample.recorded:
        event = recorded.event.id
        current = found.current is not None and event == found.current.event
        undone = f"  （已被 {found.undone_by[event]} 撤销 undone）" if event in found.undone_by else ""
        gone = "  （已回滚 rolled back）" if recorded.rolled_back else ""
        _show(console, f"{'*' if current else ' '} {_line(recorded)}{undone}{gone}")
    if found.current is None:
        _show(console, "当前没有标签 no label now")
    elif found.current.conflict:
        _show(console, "标签有分歧 in conflict")


def _line(recorded: RecordedEvent) -> str:
    """An event on one line: number, time, who, what, and what else is known."""
    event = recorded.event
    said = f"撤销 undoes {event.undoes}" if event.undoes else " + ".join(recorded.said) or "无标签 no label"
    if recorded.said != event.labels and not event.undoes:
        said += f" → {' + '.join(event.labels) or '（待定 undecided）'}"
    parts = [
        str(event.id),
        recorded.event.at,
        f"{event.actor_kind} {event.actor}",
        said,
        f"把握 confidence {recorded.confidence:g}" if recorded.confidence is not None else "",
        f"{recorded.source}:{recorded.line}" if recorded.source else "",
        f"“{recorded.note}”" if recorded.note else "",
    ]
    return "  ".join(filter(None, parts))


def _texts(text: str, pair: str | None) -> str:
    return text if pair is None else f"{text} ‖ {pair}"


def _figure(value: float | None) -> str:
    return "无定义 undefined" if value is None else f"{value:.3f}"


def _show(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False)
