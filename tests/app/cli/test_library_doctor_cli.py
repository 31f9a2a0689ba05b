"""`wenlei library doctor`: as JSON, as lines, into review, and when refused."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
ROWS = """text,label
房间打扫得很干净床也很舒服,好评
房间打扫得很干净床也很舒服呢,差评
前台办理入住排了半个小时的队,差评
早餐的品种实在是太少了一点,差评
The breakfast was really good,好评
"""


@pytest.fixture
def hotel(home: Path, call: Call) -> Path:
    Path("a.csv").write_text(ROWS, encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    return home


def test_everything_that_was_found_comes_as_json_and_as_a_report(hotel: Path, call: Call) -> None:
    answer = call("doctor")
    kinds = ["duplicates", "leakage", "conflicts", "sparse_classes", "balance", "lengths", "scripts", "outliers"]
    assert [finding["kind"] for finding in answer["findings"]] == kinds
    assert (answer["samples"], answer["labelled"], answer["by_person"]) == (5, 5, 0)
    assert answer["findings"][2]["to_review"] == 2
    assert answer["findings"][0]["examples"][0]["text"].startswith("房间打扫得很干净")
    assert "queued" not in answer
    assert answer["report"] == str(hotel / "reports" / f"doctor-default-{datetime.now(UTC):%Y-%m-%d}.html")
    html = Path(answer["report"]).read_text(encoding="utf-8")
    assert "房间打扫得很干净床也很舒服呢" in html


def test_settings_reach_the_examination(hotel: Path, call: Call) -> None:
    answer = call("doctor", "--near", "1", "--max-length", "10", "--out", "here.html")
    assert (answer["near"], answer["max_length"], answer["report"]) == (1, 10, "here.html")
    by_kind = {finding["kind"]: finding["count"] for finding in answer["findings"]}
    assert (by_kind["duplicates"], by_kind["lengths"]) == (0, 5)
    assert Path("here.html").exists()


def test_the_findings_as_lines(hotel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["library", "doctor", "--out", "here.html"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "标签冲突 Conflicting labels  2" in out
    assert "1 groups of near duplicates, 2 samples" in out
    assert out.splitlines()[-1] == "报告 report  here.html"


def test_findings_are_queued_once(hotel: Path, call: Call) -> None:
    queued = call("doctor", "--to-review", "conflicts", "--to-review", "scripts")["queued"]
    assert queued == {"added": 3, "raised": 0, "known": 0}
    assert call("doctor", "--to-review", "conflicts")["queued"] == {"added": 0, "raised": 0, "known": 2}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--library", "none"), "there is no library 'none'"),
        (("--to-review", "nonsense"), "--to-review 'nonsense': give one of conflicts, scripts, outliers, label_errors"),
        (("--to-review", "balance"), "--to-review 'balance'"),
        (("--to-review", "label_errors"), "name a training by folds with --run"),
        (("--run", "nowhere"), "nowhere is not a run"),
        (("--bundle", "nowhere"), "nowhere is not a bundle"),
        (("--snapshot", "abcd"), "no snapshot on record begins with abcd"),
        (("--near", "0.3"), "give a similarity from 0.5 to 1"),
        (("--max-length", "0"), "--max-length 0"),
        (("--apply", "drop"), "--apply and --min-confidence go together"),
        (("--apply", "drop", "--min-confidence", "0.9"), "name a training by folds with --run"),
        (("--dry-run",), "--dry-run looks at what --apply would do"),
        (("--by", "无名氏", "--to-review", "conflicts"), "无名氏"),
    ],
)
def test_what_cannot_be_done_is_refused(hotel: Path, refusal: Refusal, arguments: tuple[str, ...], told: str) -> None:
    assert told in refusal("doctor", *arguments)
    assert not (hotel / "reports").exists()
