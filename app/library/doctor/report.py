"""The report: one HTML file that needs nothing else: no script, no network, no file beside it."""

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from app.library.doctor.findings import Kind, Severity
from app.library.shapes.doctor import ExaminationShape, ExampleShape, FindingShape
from model.reports.drawing import draw
from model.reports.page import environment, write_page

SHOWN_CHARACTERS = 300  # of a text
TITLES = {
    Kind.DUPLICATES: ("近似重复", "Near duplicates"),
    Kind.LEAKAGE: ("划分泄漏", "Leakage between splits"),
    Kind.CONFLICTS: ("标签冲突", "Conflicting labels"),
    Kind.SPARSE_CLASSES: ("样本稀少的类别", "Sparse classes"),
    Kind.BALANCE: ("类别均衡", "Class balance"),
    Kind.LENGTHS: ("长度与模型上限", "Length against the model's limit"),
    Kind.SCRIPTS: ("语言与文字", "Languages and scripts"),
    Kind.OUTLIERS: ("异常文本", "Outliers"),
    Kind.LABEL_ERRORS: ("疑似标签错误", "Probable label errors"),
    Kind.OFF_TAXONOMY: ("不属于任何类别", "Off-taxonomy texts"),
    Kind.AMBIGUOUS_CLASSES: ("易混类别", "Ambiguous classes"),
    Kind.HARD_SAMPLES: ("困难样本", "Hard samples"),
}
SEVERITIES = {
    Severity.SERIOUS: "严重 serious",
    Severity.NOTABLE: "留意 notable",
    Severity.FINE: "无碍 fine",
}
_TEMPLATES = Path(__file__).with_name("templates")


def render_report(report: ExaminationShape) -> str:
    """The report as HTML; texts and labels in it are escaped."""
    return (
        environment(_TEMPLATES)
        .get_template("report.html.j2")
        .render(
            report=report,
            facts=_facts(report),
            findings=[_shown(finding) for finding in report["findings"]],
            terms=_terms(report),
            version=metadata.version("wenlei"),
        )
    )


def write_report(report: ExaminationShape, path: Path) -> Path:
    """Write the report to `path`, all at once; a report that is there already is replaced."""
    return write_page(render_report(report), path)


def _facts(report: ExaminationShape) -> list[tuple[str, str]]:
    facts = [
        (f"{report['samples']:,}", "样本 samples"),
        (f"{report['labelled']:,}", "有标签 labelled"),
        (f"{report['by_person']:,}", "由人标注 by persons"),
    ]
    for severity in (Severity.SERIOUS, Severity.NOTABLE):
        count = sum(finding["severity"] == severity for finding in report["findings"])
        facts.append((f"{count}", SEVERITIES[severity]))
    return facts


def _shown(finding: FindingShape) -> dict[str, Any]:
    title, title_en = TITLES[Kind(finding["kind"])]
    plots: list[Mapping[str, Any]] = finding["figures"].get("plots", [])
    return {
        **finding,
        "title": title,
        "title_en": title_en,
        "severity_name": SEVERITIES[Severity(finding["severity"])],
        "drawings": draw(plots),
        "examples": [{**example, "text": _text(example)} for example in finding["examples"]],
    }


def _text(example: ExampleShape) -> str:
    text = " ‖ ".join(part for part in (example["text"], example["pair"]) if part is not None)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _terms(report: ExaminationShape) -> str:
    """With which settings, and on which predictions, it was made."""
    parts = [f"近似 near ≥ {report['near']:g}", f"词元上限 max_length {report['max_length']}"]
    parts.append(f"标签体系版本 taxonomy version {report['taxonomy_version']}")
    if report["snapshot"]:
        parts.append(f"快照 snapshot {report['snapshot']}")
    if run := report["run"]:
        left_out = run["gone"] + run["relabelled"] + run["leaked"]
        parts.append(
            f"分折训练 run {run['run']}：{run['predictions']:,} 条预测 predictions，"
            f"{left_out:,} 条样本已不在或已改标，未用 left out as gone or relabelled"
        )
    return " · ".join(parts)
