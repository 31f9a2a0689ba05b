"""What the gate found and did, as the command prints it, HTTP answers it, and the sweep keeps it."""

from typing import Any

from typing_extensions import TypedDict

from app.library.gate.deciding import Rule
from app.library.gate.running import Applied, Weighed
from model.drift import Difference
from model.selective import Chosen
from model.types import Split

MOST_RULES = 1000  # of classes, told whole

ASSUMPTION = (
    "池与校准样本同类，校准样本的标签正确 | the pool is like the calibration samples, and the labels of these are right"
)
RESPECTS = {
    "confidence": "模型的把握 | how sure the model is",
    "labels": "预测的类别 | the predicted labels",
    "length": "文本长度 | the length of the texts",
}


class RuleShape(TypedDict):
    """A threshold. labels: that it is for; None: all. threshold: None where nothing is accepted, and `why` tells why.

    calibration, errors: samples at or above it, and how many of them are wrong. upper: the Clopper-Pearson bound of
    that. of: calibration samples in all. needed: how many it takes at least, without an error. confidence: that this
    threshold has to reach, beside the others of the run. pool, accepted: predictions of the pool, how many it accepts.
    """

    labels: list[str] | None
    threshold: float | None
    calibration: int
    errors: int
    upper: float | None
    of: int
    needed: int
    confidence: float
    pool: int
    accepted: int
    why: str | None


class CalibrationShape(TypedDict):
    """The calibration samples. accuracy: of all predictions for them. The other counts: see docs/gate.md."""

    snapshot: str
    split: str
    samples: int
    accuracy: float
    corrected: int
    by_machine: int
    unlabelled: int
    not_in_library: int


class DifferenceShape(TypedDict):
    """How much pool and calibration samples differ, 0 to 1, and how likely so much is by chance."""

    size: float
    p_value: float


class GateReport(TypedDict):
    """What was found. accepted, coverage: how many of the pool, and which share. warnings: read them.

    before: labels that the gate gave in earlier runs and that stand; the guarantee is for these and the new ones.
    """

    library: str
    model: str
    guarantee: str
    assumption: str
    max_error: float
    confidence: float
    per_class: bool
    calibration: CalibrationShape
    pool: int
    before: int
    accepted: int
    coverage: float
    rules: list[RuleShape]
    drift: dict[str, DifferenceShape]
    warnings: list[str]


class GateShape(GateReport):
    """What was found and done. sweep: its number, None where nothing was written. queued: samples put into review."""

    dry_run: bool
    sweep: int | None
    queued: int | None
    undo: str | None


def gate_report(weighed: Weighed) -> GateReport:
    """What was found, before anything is written."""
    accepted = int(weighed.decision.accepted.sum())
    calibration, bound = weighed.calibration, weighed.plan.bound
    return {
        "library": weighed.library,
        "model": weighed.model,
        "guarantee": guarantee(weighed),
        "assumption": ASSUMPTION,
        "max_error": bound.max_error,
        "confidence": bound.confidence,
        "per_class": weighed.plan.per_class,
        "calibration": {
            "snapshot": calibration.snapshot.hash,
            "split": calibration.split.value,
            "samples": len(calibration.samples),
            "accuracy": round(1 - float(weighed.wrong.mean()), 6),
            "corrected": calibration.corrected,
            "by_machine": calibration.by_machine,
            "unlabelled": calibration.unlabelled,
            "not_in_library": len(calibration.samples)
            + calibration.by_machine
            + calibration.unlabelled
            - calibration.known,
        },
        "pool": len(weighed.pool.ids),
        "before": weighed.before,
        "accepted": accepted,
        "coverage": round(accepted / len(weighed.pool.ids), 6),
        "rules": [_rule(rule) for rule in weighed.decision.rules[:MOST_RULES]],
        "drift": {name: _difference(found) for name, found in weighed.compared.whole._asdict().items()},
        "warnings": warnings(weighed),
    }


def gate_shape(report: GateReport, applied: Applied | None) -> GateShape:
    """What was found, and what was done; `applied`: None after a dry run."""
    sweep = applied.sweep if applied else None
    library = "" if report["library"] == "default" else f" --library {report['library']}"
    return {
        **report,
        "dry_run": applied is None,
        "accepted": applied.accepted if applied else report["accepted"],
        "sweep": sweep,
        "queued": applied.queued if applied else None,
        "undo": f"wenlei library sweeps --undo {sweep} --by NAME{library}" if sweep else None,
    }


def guarantee(weighed: Weighed) -> str:
    """What may be relied on, in a line."""
    bound, calibration = weighed.plan.bound, weighed.calibration
    if not weighed.decision.accepted.any():
        return "没有验收任何标签，因此无所保证 | nothing was accepted, so nothing is guaranteed"
    error, sure = f"{bound.max_error:.4g}", f"{bound.confidence:.4g}"
    where = f"{calibration.split} {calibration.snapshot.hash[:8]}, n={len(calibration.samples):,}"
    each, of_each = ("每一类中", " of each class") if weighed.plan.per_class else ("", "")
    also, of_earlier = (
        (
            f"（连同此前也合乎此要求的 {earlier:,} 条）",
            f", with the {earlier:,} of before that these rules accept, too,",
        )
        if (earlier := weighed.decision.earlier)
        else ("", "")
    )
    return (
        f"有 {sure} 的把握：验收的标签{also}{each}错误率不超过 {error}（校准 {where}） | with confidence {sure}, at "
        f"most {error} of the accepted labels{of_each}{of_earlier} are wrong (calibrated on {where})"
    )


def warnings(weighed: Weighed) -> list[str]:
    """What puts the guarantee into doubt."""
    calibration = weighed.calibration
    told = []
    for source, found in weighed.compared.warnings.items():
        chinese, english = zip(*(RESPECTS[name].split(" | ") for name in found), strict=True)
        part, of_part = ("池", "the pool") if source is None else (f"{source} 的文本", f"what came from {source}")
        told.append(
            f"{part}与校准样本不同（{'、'.join(chinese)}），保证可能不成立：先标注一些作校准 | {of_part} differs from "
            f"the calibration samples in {', '.join(english)}, so the guarantee may not hold: label some of it, drawn "
            "by lot, and calibrate on that"
        )
    if weighed.contradicted:
        told.append(
            f"别的模型此前验收的标签，有 {weighed.contradicted:,} 条这个模型另有判断；保证只说这个模型的 | of the "
            f"labels that another model gave before, {weighed.contradicted:,} are not what this one says, and the "
            "guarantee is about what this one says"
        )
    if calibration.split is Split.DEV:
        told.append(
            "用 dev 校准：模型与温度、阈值正是在它上面选的，错误率可能偏低；有 test 则用 test | calibrated on dev, on "
            "which the model, its temperature and thresholds were chosen, so that errors may seem rarer than they are: "
            "prefer test"
        )
    if weighed.plan.per_class and (
        left := [rule for rule in weighed.decision.rules if rule.pool and not rule.chosen.best]
    ):
        names = "、".join("+".join(rule.labels or ()) for rule in left[:8]) + ("…" if len(left) > 8 else "")
        told.append(
            f"{len(left)} 类的校准数据不足以保证，全部不予验收 | the data cannot support {len(left)} classes, none of "
            f"whose labels are accepted: {names}"
        )
    return told


def _rule(rule: Rule) -> RuleShape:
    chosen = rule.chosen
    best = chosen.best
    return {
        "labels": None if rule.labels is None else list(rule.labels),
        "threshold": best.threshold if best else None,
        "calibration": best.calibration if best else 0,
        "errors": best.errors if best else 0,
        "upper": round(chosen.upper, 6) if chosen.upper is not None else None,
        "of": chosen.calibration,
        "needed": chosen.needed,
        "confidence": round(chosen.bound.confidence, 6),
        "pool": rule.pool,
        "accepted": rule.accepted,
        "why": None if best else _why(rule, chosen),
    }


def _why(rule: Rule, chosen: Chosen) -> str:
    """Why nothing is accepted, and what would help."""
    if not rule.pool:
        return "没有可验收的预测 | no prediction could be accepted: the model names no labels that can go together"
    bound = chosen.bound
    if chosen.calibration < chosen.needed:
        why = (
            f"校准样本 {chosen.calibration:,} 条，至少要 {chosen.needed:,} 条且全对 | there are {chosen.calibration:,} "
            f"calibration samples, and it takes at least {chosen.needed:,} without an error for {bound.max_error:.4g}"
        )
    else:
        first = chosen.tests[0]
        why = (
            f"最有把握的 {first.calibration:,} 条校准样本中错 {first.errors:,} 条，太多 | of the {first.calibration:,} "
            f"calibration samples that the model is surest of, {first.errors:,} are wrong, too many for "
            f"{bound.max_error:.4g}"
        )
    if rule.supported is None:
        return why
    return f"{why}；max_error {rule.supported:g} 则可 | these data would support a max_error of {rule.supported:g}"


def _difference(found: Difference) -> DifferenceShape:
    return {"size": round(found.size, 4), "p_value": round(found.p_value, 6)}


def as_outcome(report: GateReport) -> dict[str, Any]:
    """The report as a sweep keeps it."""
    return dict(report)
