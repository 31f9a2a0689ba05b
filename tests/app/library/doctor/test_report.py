"""The report: whole in one file, safe to open, and a plot for every figure."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from app.library.doctor.report import render_report, write_report
from app.library.shapes.doctor import ExaminationShape, FindingShape
from model.reports.drawing import draw
from model.reports.page import content_policy
from model.reports.plots import bars, histogram

NASTY = "<script>alert('坏')</script> & \"引号\""
VOID = {"meta", "rect", "line", "br"}


def finding(**given: object) -> FindingShape:
    shape: FindingShape = {
        "kind": "conflicts",
        "severity": "notable",
        "count": 1234,
        "summary": "一条分歧",
        "summary_en": "one conflict",
        "figures": {},
        "examples": [],
        "commands": ["wenlei library conflicts --library default"],
        "to_review": 1,
    }
    return {**shape, **given}


def report(*findings: FindingShape) -> ExaminationShape:
    return {
        "library": "default",
        "at": "2026-11-30T00:00:00+00:00",
        "taxonomy_version": 1,
        "samples": 9092,
        "labelled": 9000,
        "by_person": 5,
        "near": 0.8,
        "max_length": 128,
        "snapshot": None,
        "run": None,
        "findings": list(findings),
    }


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open; collects tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def example(**given: object) -> dict[str, object]:
    shape = {"sample": "a" * 32, "text": "房间大", "pair": None, "labels": ["好评"], "proposed": None, "score": None}
    return {**shape, "why": "", **given}


def test_the_report_is_one_file_without_script_network_or_style_attributes() -> None:
    html = render_report(report(finding(figures={"plots": [bars("甲", "a", [("x", 1)])]})))
    page = parsed(html)
    assert {tag for tag, _ in page.seen}.isdisjoint({"script", "link", "img", "iframe", "object", "form"})
    for _, attributes in page.seen:
        assert attributes.keys().isdisjoint({"style", "src", "onload", "onclick"})
        assert (attributes.get("href") or "#").startswith("#")
    assert "http" not in re.sub(r'http-equiv="', "", html)
    policies = [attributes["content"] for tag, attributes in page.seen if tag == "meta" and "http-equiv" in attributes]
    assert policies == [content_policy()]


def test_texts_and_labels_are_shown_and_not_run() -> None:
    shown = [example(text=NASTY, pair="另一句", labels=[NASTY], proposed=["差评"], score=0.9, why=NASTY)]
    page = parsed(render_report(report(finding(examples=shown, summary=NASTY))))
    assert "script" not in {tag for tag, _ in page.seen}
    assert page.text.count(NASTY) >= 4
    assert f"{NASTY} ‖ 另一句" in page.text
    assert "0.90" in page.text


def test_a_finding_says_how_much_it_matters_and_what_to_run_next() -> None:
    page = parsed(render_report(report(finding(), finding(kind="lengths", severity="serious", commands=[]))))
    assert "留意 notable" in page.text
    assert "严重 serious" in page.text
    assert "1,234" in page.text
    assert "wenlei library conflicts --library default" in page.text
    assert {attributes["id"] for tag, attributes in page.seen if tag == "section"} == {"conflicts", "lengths"}


def test_samples_without_labels_and_very_long_texts_are_shown() -> None:
    page = parsed(render_report(report(finding(examples=[example(labels=None, text="长" * 2000)]))))
    assert "无标签 none" in page.text
    assert 300 <= page.text.count("长") < 400


@pytest.mark.parametrize(
    ("plot", "drawn"),
    [
        (bars("甲", "a", [("好评", 3), ("差评", 1)]), "bars"),
        (histogram("乙", "b", [1, 2, 2, 9], x="字", mark=5, mark_name="上限"), "columns"),
        ({"title": "丙", "title_en": "c", "matrix": {"rows": ["好评"], "columns": ["差评"], "values": [[3]]}}, "rows"),
    ],
)
def test_bars_histograms_and_matrices_are_drawn(plot: dict[str, object], drawn: str) -> None:
    [drawing] = draw([plot])
    assert [name for name in ("bars", "columns", "rows") if getattr(drawing, name)] == [drawn]
    page = parsed(render_report(report(finding(figures={"plots": [plot]}))))
    assert str(plot["title"]) in page.text
    assert {"bars": "rect", "columns": "rect", "rows": "td"}[drawn] in {tag for tag, _ in page.seen}


def test_a_plot_without_anything_is_left_out() -> None:
    assert draw([bars("甲", "a", []), histogram("乙", "b", [], x="字"), {"title": "丙"}]) == []


def test_a_histogram_stands_on_its_axis_and_marks_the_limit() -> None:
    [drawing] = draw([histogram("字", "c", [10] * 50 + [200] * 50, x="字", mark=128, mark_name="上限")])
    assert drawing.mark is not None
    assert 0 < drawing.mark.x < 640
    assert {round(column.y + column.height, 1) for column in drawing.columns} == {148.0}
    assert sum(int(column.tip.split(": ")[1]) for column in drawing.columns) == 100


def test_what_is_beyond_the_axis_stands_in_the_last_column() -> None:
    plot = histogram("字", "c", [10] * 999 + [20_000], x="字")
    assert sum(plot["histogram"]["counts"]) == 1000
    assert plot["histogram"]["edges"][-1] < 100


def test_small_shares_are_drawn_against_each_other_and_large_ones_against_all() -> None:
    [small] = draw([bars("甲", "a", [("x", 1), ("y", 2)], unit="%")])
    assert [bar.length for bar in small.bars] == [50, 100]
    [large] = draw([bars("甲", "a", [("x", 30), ("y", 2)], unit="%")])
    assert [bar.length for bar in large.bars] == [30, 2]


def test_a_report_replaces_the_one_before_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "reports" / "doctor.html"
    write_report(report(), path)
    write_report(report(finding(summary="新的一份")), path)
    assert "新的一份" in path.read_text(encoding="utf-8")
    assert list(path.parent.iterdir()) == [path]
