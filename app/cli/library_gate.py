"""`wenlei library label --bundle B --max-error E`: label what nobody has labelled, under a bound on the errors."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from app.cli.agreeing import examples, line
from app.library.gate.running import NOTE_CHARS, Plan, apply, prepare, texts_to_judge, weigh
from app.library.shapes.gate import GateShape, as_outcome, gate_report, gate_shape
from app.people.accounts import check_person
from app.serving.registry import load_classifier
from app.settings import load_settings
from app.store.database import open_database
from model.bundle import open_bundle
from model.console import emit, progress, say
from model.errors import BadInput
from model.selective import Bound
from model.types import Split

SHOWN_RULES = 40
CONFIDENCE = 0.95


LABEL_EXAMPLES = examples(
    ("标注一个样本 | label a sample", "wenlei library label 9f8a07dd 差评 --by 标注员甲"),
    (
        "试算：模型能替人标多少，错误率不超过 2% | how much a model could label, at most 2% of it wrong",
        "wenlei library label --bundle var/bundles/reviews --max-error 0.02 --by 标注员甲 --dry-run",
    ),
    (
        "验收，其余送复核 | accept that much, and review the rest",
        "wenlei library label --bundle var/bundles/reviews --max-error 0.02 --by 标注员甲",
    ),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was asked for beside the bound; `split` None: test."""

    library: str
    by: str
    per_class: bool
    calibration: str | None
    split: Split | None
    precision: str | None
    note: str | None
    dry_run: bool
    review: bool


def label_pool(bundle: Path, max_error: float | None, confidence: float | None, asked: Asked, *, as_json: bool) -> None:
    """Label the samples of a library that were never labelled, as far as the guarantee allows.

    Raises:
        BadInput: there is no --max-error, and whatever `weigh` and `apply` refuse.
    """
    if max_error is None:
        raise BadInput("--bundle needs --max-error: the share of accepted labels that may be wrong, such as 0.02")
    plan = Plan(
        bound=Bound(max_error, CONFIDENCE if confidence is None else confidence),
        per_class=asked.per_class,
        calibration=asked.calibration,
        split=asked.split or Split.TEST,
    )
    settings = load_settings(precision=asked.precision)
    opened = open_bundle(bundle)
    with open_database(settings) as engine:
        person = check_person(engine, asked.by)
        classifier = load_classifier(opened, settings)
        with progress("比对校准与训练样本 | comparing with what was trained on", None) as compared:
            prepared = prepare(
                engine,
                library=asked.library,
                classifier=classifier,
                trained_on=opened.manifest.snapshot,
                plan=plan,
                on_compared=compared,
            )
        texts = len(prepared.calibration.samples) + texts_to_judge(engine, asked.library)
        with progress("判断 | judging", texts) as scored:
            weighed = weigh(engine, prepared, classifier, on_scored=scored)
        report = gate_report(weighed)
        for warning in report["warnings"]:
            say(f"注意 | warning: {warning}")
        applied = None
        if not asked.dry_run:
            note = "; ".join(filter(None, (asked.note, report["guarantee"])))
            with progress("写入 | writing", report["pool"]) as written:
                applied = apply(
                    engine,
                    weighed,
                    by=person,
                    report=as_outcome(report),
                    note=note[:NOTE_CHARS],
                    review=asked.review,
                    on_written=written,
                )
    done = gate_shape(report, applied)
    emit(done, as_json=as_json, render=lambda console: _show(console, done))


def _show(console: Console, done: GateShape) -> None:
    calibration = done["calibration"]
    line(console, done["guarantee"])
    line(console, f"前提 assumption: {done['assumption']}")
    line(
        console,
        f"校准 calibration: {calibration['samples']:,}  准确率 accuracy {calibration['accuracy']:.4f}  "
        f"{calibration['split']} {calibration['snapshot']}",
    )
    left_out = {"机器标签 by machine": calibration["by_machine"], "已无标签 no label": calibration["unlabelled"]}
    if any(left_out.values()):
        line(console, "  未用 left out: " + "  ".join(f"{name} {count:,}" for name, count in left_out.items() if count))
    if calibration["corrected"]:
        line(console, f"  改用今天的标签 with the label of today: {calibration['corrected']:,}")
    if done["per_class"]:
        console.print(_table(done))
        for rule in done["rules"][:SHOWN_RULES]:
            if rule["why"] is not None:
                line(console, f"  {' + '.join(rule['labels'] or [])}: {rule['why']}")
    else:
        _show_rule(console, done)
    for name, found in done["drift"].items():
        line(console, f"  {name}: 差异 difference {found['size']:.3f}  p {found['p_value']:.4f}")
    line(console, f"验收 accepted {done['accepted']:,} / {done['pool']:,} ({done['coverage']:.1%})")
    if done["before"]:
        line(console, f"此前验收 accepted before {done['before']:,}")
    if done["queued"] is not None:
        line(console, f"送复核 in review {done['queued']:,}")
    if done["dry_run"]:
        line(console, "未写入 nothing was written (--dry-run)")
    elif done["sweep"] is not None:
        line(console, f"批次 sweep {done['sweep']}；整批撤销 to take it back: {done['undo']}")


def _show_rule(console: Console, done: GateShape) -> None:
    rule = done["rules"][0]
    if rule["threshold"] is None:
        line(console, f"不予验收 nothing is accepted: {rule['why']}")
        return
    line(
        console,
        f"阈值 threshold {rule['threshold']:.6f}：其上校准样本 calibration samples above {rule['calibration']:,}，"
        f"错 wrong {rule['errors']:,}，上界 upper bound {rule['upper']:.4f}",
    )


def _table(done: GateShape) -> Table:
    table = Table("类别\nclass", "阈值\nthreshold", "校准\nsamples", "错\nwrong", "上界\nbound", "验收\naccepted")
    for rule in done["rules"][:SHOWN_RULES]:
        passed = rule["threshold"] is not None
        table.add_row(
            " + ".join(rule["labels"] or []),
            f"{rule['threshold']:.4f}" if passed else "",
            f"{rule['calibration'] if passed else rule['of']:,}",
            f"{rule['errors']:,}" if passed else "",
            f"{rule['upper']:.4f}" if passed else "",
            f"{rule['accepted']:,} / {rule['pool']:,}",
        )
    return table
