"""The report of a comparison: one HTML file that needs nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from model.comparison import NAMES, CandidateShape, ComparisonShape, PairShape, SliceShape, shown, shown_metrics
from model.reports.drawing import draw
from model.reports.page import environment
from training.comparison.recommending import SIGNIFICANT

SHOWN_CLASSES = 40  # of the table of classes: those on which candidates differ most
CONFUSED_CLASSES = 12  # of the confusion matrices: those that are confused most
SHOWN_CHARACTERS = 200  # of a text
_TEMPLATES = Path(__file__).with_name("templates")

Plot = Mapping[str, Any]


def render_report(comparison: ComparisonShape) -> str:
    """The report as HTML; names, texts and labels in it are escaped."""
    best = comparison["candidates"][0]["name"]
    return (
        environment(_TEMPLATES)
        .get_template("comparison.html.j2")
        .render(
            comparison=comparison,
            metric=NAMES[comparison["metric"]],
            metrics=[NAMES[name] for name in shown_metrics(comparison)],
            rows=[_row(candidate, comparison) for candidate in comparison["candidates"]],
            pairs=[_pair(pair, comparison) for pair in comparison["pairs"]],
            flips=[pair for pair in comparison["pairs"] if pair["one"] == best and pair["examples"]],
            shown=SHOWN_CHARACTERS,
            plots={name: draw(plots) for name, plots in _plots(comparison).items()},
            version=metadata.version("wenlei"),
        )
    )


def _row(candidate: CandidateShape, comparison: ComparisonShape) -> dict[str, Any]:
    """A line of the table of candidates."""
    against = next((pair for pair in comparison["pairs"] if pair["other"] == candidate["name"]), None)
    fastest = min(candidate["speed"].values(), key=lambda pace: pace["p50_ms"], default=None)
    return {
        "name": candidate["name"],
        "chosen": candidate["name"] == comparison["recommendation"]["candidate"],
        "figures": [shown(candidate["figures"][name]) for name in shown_metrics(comparison)],
        "ece": f"{candidate['ece']:.3f}",
        "verdict": None if against is None else _verdict(against, comparison),
        "minutes": f"{candidate['seconds'] / 60:.1f}",
        "memory": f"{candidate['memory_mib']:,}",
        "size": f"{candidate['size_mib']:.1f}",
        "p50": "" if fastest is None else f"{fastest['p50_ms']:.2f}",
        "p99": "" if fastest is None else f"{fastest['p99_ms']:.2f}",
        "texts_per_second": "" if fastest is None else f"{fastest['texts_per_second']:,.0f}",
    }


def _verdict(pair: PairShape, comparison: ComparisonShape) -> tuple[str, str]:
    """What may be said of `other` beside `one`, and how grave it is."""
    if pair["differences"][comparison["metric"]]["p_holm"] < SIGNIFICANT:
        better = (
            "显著更差，但在容许之内 worse, within the margin" if pair["equivalence"]["not_worse"] else "显著更差 worse"
        )
        return better, "serious"
    if pair["equivalence"]["not_worse"]:
        return "不更差 not worse", "fine"
    return "未分胜负 undecided", "notable"


def _pair(pair: PairShape, comparison: ComparisonShape) -> dict[str, Any]:
    difference, test = pair["differences"][comparison["metric"]], pair["mcnemar"]
    return {
        "one": pair["one"],
        "other": pair["other"],
        "difference": shown(difference),
        "p": f"{difference['p_holm']:.2g}",
        "only_one": f"{test['only_one']:,}",
        "only_other": f"{test['only_other']:,}",
        "both_wrong": f"{pair['flips']['both_wrong']:,}",
        "mcnemar": f"{test['p_holm']:.2g}",
        "verdict": _verdict(pair, comparison),
    }


def _plots(comparison: ComparisonShape) -> dict[str, list[Plot]]:
    candidates = comparison["candidates"]
    return {
        "standing": [_spans(candidates, comparison["metric"])],
        "pareto": [_pareto(candidates, comparison["metric"])],
        "classes": list(_classes(candidates, comparison["labels"])),
        "confusion": list(_confusion(candidates, comparison["labels"])),
        "trust": [_reliability(candidates), _risk(candidates)],
        "slices": list(_slices(candidates)),
    }


def _spans(candidates: Sequence[CandidateShape], metric: str) -> Plot:
    title, title_en = NAMES[metric]
    return {
        "title": f"{title}与 95% 区间",
        "title_en": f"{title_en} and its 95 % interval",
        "spans": [
            [its["name"], *(100 * its["figures"][metric][edge] for edge in ("low", "value", "high"))]
            for its in candidates
        ],
    }


def _pareto(candidates: Sequence[CandidateShape], metric: str) -> Plot:
    """Against what one text takes; against the size of the weights where speed was not measured."""
    fast = all(its["speed"] for its in candidates)
    points = []
    for its in candidates:
        cost = min(pace["p50_ms"] for pace in its["speed"].values()) if fast else its["size_mib"]
        value = 100 * its["figures"][metric]["value"]
        unit = "ms" if fast else "MiB"
        points.append(
            {"name": its["name"], "x": cost, "y": value, "tip": f"{its['name']}: {value:.2f}, {cost:.2f} {unit}"}
        )
    title, title_en = NAMES[metric]
    return {
        "title": f"{title}与代价：左上最好",
        "title_en": f"{title_en} against cost: the upper left is best",
        "points": points,
        "log_x": True,
        "x": "一条文本的毫秒数（中位） ms a text, median" if fast else "权重 weights, MiB",
        "y": f"{title} {title_en}",
    }


def _classes(candidates: Sequence[CandidateShape], labels: Sequence[str]) -> Iterator[Plot]:
    spread = {label: _spread([its["per_label"][label] for its in candidates]) for label in labels}
    listed = sorted(labels, key=lambda label: -spread[label])[:SHOWN_CLASSES]
    values = [[round(100 * its["per_label"][label], 1) for its in candidates] for label in listed]
    left_out = len(labels) - len(listed)
    yield {
        "title": "各类别的 F1，差别大的在前" + (f"（另有 {left_out} 类）" if left_out else ""),
        "title_en": "F1 of each class, those first on which they differ most",
        "matrix": {
            "columns": [its["name"] for its in candidates],
            "rows": listed,
            "values": values,
            "weights": [[100 - value for value in row] for row in values],
        },
    }
    if levels := candidates[0]["per_level"]:
        yield {
            "title": "各层的准确率",
            "title_en": "accuracy of each level",
            "matrix": {
                "columns": [its["name"] for its in candidates],
                "rows": [f"第 {level} 层 level {level}" for level in levels],
                "values": [[round(100 * its["per_level"][level], 2) for its in candidates] for level in levels],
                "weights": [[100 - 100 * its["per_level"][level] for its in candidates] for level in levels],
            },
        }


def _confusion(candidates: Sequence[CandidateShape], labels: Sequence[str]) -> Iterator[Plot]:
    """Side by side, of the same classes: those that are confused most."""
    with_matrix = [its for its in candidates if its["confusion"]]
    if not with_matrix:
        return
    errors = [0.0] * len(labels)
    for its in with_matrix:
        for gold, row in enumerate(its["confusion"]):
            for said, count in enumerate(row):
                if gold != said:
                    errors[gold] += count
                    errors[said] += count
    chosen = sorted(sorted(range(len(labels)), key=lambda label: -errors[label])[:CONFUSED_CLASSES])
    for its in with_matrix:
        matrix = [[round(its["confusion"][gold][said], 1) for said in chosen] for gold in chosen]
        yield {
            "title": its["name"],
            "title_en": "rows: gold; columns: said",
            "matrix": {
                "columns": [labels[label] for label in chosen],
                "rows": [labels[label] for label in chosen],
                "values": matrix,
                "weights": [
                    [0.0 if gold == said else value for said, value in enumerate(row)]
                    for gold, row in enumerate(matrix)
                ],
            },
        }


def _reliability(candidates: Sequence[CandidateShape]) -> Plot:
    return {
        "title": "可靠性：越贴近虚线，分数越可信",
        "title_en": "reliability: the nearer to the dashed line, the more the scores can be trusted",
        "lines": [
            {"name": its["name"], "points": [[each["sure"], each["right"]] for each in its["reliability"]]}
            for its in candidates
        ],
        "x": "分数 score",
        "y": "正确的比例 share that is right",
        "x_range": [0, 1],
        "y_range": [0, 1],
        "diagonal": True,
    }


def _risk(candidates: Sequence[CandidateShape]) -> Plot:
    return {
        "title": "只回答最有把握的一部分时，错多少",
        "title_en": "risk against coverage: errors if only the surest are answered",
        "lines": [
            {
                "name": f"{its['name']}（AURC {its['risk_coverage']['area']:.4f}）",
                "points": [
                    [100 * x, 100 * y]
                    for x, y in zip(its["risk_coverage"]["coverage"], its["risk_coverage"]["risk"], strict=True)
                ],
            }
            for its in candidates
        ],
        "x": "回答的比例 coverage, %",
        "y": "其中错误 risk, %",
        "x_range": [0, 100],
    }


def _slices(candidates: Sequence[CandidateShape]) -> Iterator[Plot]:
    """Of all candidates; empty where one was not looked at."""
    longest = max((its["slices"] for its in candidates), key=len)
    for kind in dict.fromkeys(part["kind"] for part in longest):
        rows = [part for part in longest if part["kind"] == kind]
        values = [[_accuracy_on(its, part) for its in candidates] for part in rows]
        yield {
            "title": kind,
            "title_en": "accuracy",
            "matrix": {
                "columns": [its["name"] for its in candidates],
                "rows": [f"{part['name']}（{part['n']:,} 条）" for part in rows],
                "values": values,
                "weights": [[None if value is None else 100 - value for value in row] for row in values],
            },
        }


def _accuracy_on(candidate: CandidateShape, part: SliceShape) -> float | None:
    found = (one for one in candidate["slices"] if (one["kind"], one["name"]) == (part["kind"], part["name"]))
    return next((round(100 * one["accuracy"]["value"], 2) for one in found), None)


def _spread(values: Sequence[float]) -> float:
    return max(values) - min(values)
