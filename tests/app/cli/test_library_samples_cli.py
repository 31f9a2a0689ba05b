"""`wenlei library samples`: as JSON, as a table with the matches marked, and when refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from app.cli import library_samples, main
from app.library.browsing import SamplePage
from app.store.listing import ListedSample

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
ROWS = "text,label\n房间[大],好评\n早餐凉,中评\n早餐凉,差评\n隔音差,差评\n早餐Buffet一般,好评\n"


@pytest.fixture
def reviews(home: Path, call: Call) -> Path:
    Path("a.csv").write_text(ROWS, encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    return home


def test_samples_as_json(reviews: Path, call: Call) -> None:
    found = call("samples", "--search", "buffet")
    (sample,) = found["samples"]
    assert (found["total"], found["total_is_exact"], found["next"]) == (1, True, None)
    assert (len(sample.pop("id")), sample.pop("number")) == (32, 4)
    assert sample == {
        "text": "早餐Buffet一般",
        "pair": None,
        "labels": ["好评"],
        "conflict": False,
        "source": "a.csv",
        "line": 6,
    }


def test_filters_an_order_and_pages(reviews: Path, call: Call) -> None:
    def listed(*arguments: str) -> list[str]:
        return [sample["text"] for sample in call("samples", *arguments)["samples"]]

    assert listed("--label", "差评") == ["隔音差"]
    assert listed("--conflict") == ["早餐凉"]
    assert listed("--unlabelled") == []
    assert listed("--sort", "-arrival", "--per-page", "3") == ["早餐Buffet一般", "隔音差", "早餐凉"]
    assert listed("--sort", "-arrival", "--per-page", "3", "--page", "2") == ["房间[大]"]
    last = call("samples", "--per-page", "3")["next"]
    assert listed("--per-page", "3", "--after", last) == ["早餐Buffet一般"]


def test_a_table_says_which_samples_of_how_many(reviews: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    ids = [sample["id"] for sample in call("samples", "--per-page", "2")["samples"]]
    with pytest.raises(SystemExit) as ended:
        main(["library", "samples", "--per-page", "2", "--page", "1"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(sample_id in shown for sample_id in ids)
    assert "中评 !" in shown
    assert shown.endswith(f"! 标签有分歧 in conflict\n1–2 / 4\n下一页 next: --after {ids[-1]}\n")


def test_every_match_is_marked(home: Path) -> None:
    sample = ListedSample(1, "0" * 32, "Wifi慢，换wifi", "WIFI好", ("差评",), False, "a.csv", 2)
    marked = library_samples._text(sample, "wifi")
    assert [marked.plain[span.start : span.end] for span in marked.spans] == ["Wifi", "wifi", "WIFI"]


def test_a_lower_bound_is_told_as_one(home: Path) -> None:
    console = Console(width=200)
    page = SamplePage((), "的", 1001, False, None)
    with console.capture() as captured:
        library_samples._show(console, page, first=1)
    assert captured.get().endswith("0 / 1,001 以上 or more\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--label", "好平"), "label '好平' is not in the taxonomy"),
        (("--sort", "date"), "sort 'date': give one of arrival"),
        (("--after", "ffff"), "no sample of that id"),
        (("--page", "52", "--search", "早餐"), "a search has pages up to its sample 1,000"),
        (("--library", "other"), "there is no library 'other'"),
    ],
)
def test_what_cannot_be_asked(reviews: Path, refusal: Refusal, arguments: tuple[str, ...], message: str) -> None:
    assert message in refusal("samples", *arguments)
