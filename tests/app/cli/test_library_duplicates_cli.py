"""`wenlei library duplicates`: as JSON, as lines, and when refused."""

from collections.abc import Callable
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
前台办理入住排了半个小时的队啊,差评
前台办理入住排了半个小时的队！,差评
早餐的品种实在是太少了一点,差评
"""


@pytest.fixture
def hotel(home: Path, call: Call) -> Path:
    Path("a.csv").write_text(ROWS, encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    return home


def test_groups_as_json(hotel: Path, call: Call) -> None:
    found = call("duplicates")
    totals = {key: value for key, value in found.items() if key != "page"}
    assert totals == {"samples": 6, "groups": 2, "grouped": 5, "conflicting": 1, "threshold": 0.8}
    queue, clean = found["page"]
    assert (queue["size"], queue["conflict"], len(queue["members"])) == (3, False, 3)
    assert {member["text"]: member["labels"] for member in clean["members"]} == {
        "房间打扫得很干净床也很舒服": ["好评"],
        "房间打扫得很干净床也很舒服呢": ["差评"],
    }
    [pair] = clean["pairs"]
    assert {pair["left"], pair["right"]} == {member["sample"] for member in clean["members"]}
    assert (pair["similarity"], pair["conflict"]) == (pytest.approx(12 / 13), True)
    assert call("duplicates", "--conflicting")["page"] == [clean]
    assert call("duplicates", "--limit", "1", "--offset", "1")["page"] == [clean]
    assert call("duplicates", "--threshold", "1")["groups"] == 1


def test_groups_as_lines(hotel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["library", "duplicates", "--members", "2"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "1.  3 条 samples"
    assert shown[1].startswith("  [1]  ")
    assert "  差评  前台办理入住排了半个小时的队" in shown[1]
    assert shown[3:5] == ["  …  另有 1 条 more; --members", "    [1] – [2]  1.00"]
    assert shown[5] == "2.  2 条 samples  ! 标签不一致 labels differ"
    assert shown[8:] == [
        "  ! [1] – [2]  0.92",
        "1–2 / 2",
        "样本 samples 6  组 groups 2（5 条 samples）  标签不一致 labels differ 1",
    ]


def test_no_groups_as_lines(hotel: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["user", "create", "标注员甲"])
    capsys.readouterr()
    call("label", "房间打扫得很干净床也很舒服呢", "好评", "--text", "--by", "标注员甲")
    with pytest.raises(SystemExit) as ended:
        main(["library", "duplicates", "--conflicting"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.splitlines() == [
        "0 / 0",
        "样本 samples 6  组 groups 2（5 条 samples）  标签不一致 labels differ 0",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threshold", "0.3"), "--threshold 0.3: give a similarity from 0.5 to 1"),
        (("--library", "other"), "there is no library 'other'"),
    ],
)
def test_what_can_not_be_done_is_told_in_one_line(
    hotel: Path, refusal: Refusal, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal("duplicates", *arguments)
