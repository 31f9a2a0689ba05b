"""`wenlei library label`, `history`, `blame`, `undo`, `conflicts`, `agreement`: as JSON, as lines, and when refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
ROWS = "text,label\n房间大,好评\n早餐凉,中评\n早餐凉,差评\n隔音差,差评\n"


@pytest.fixture
def reviews(home: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> Path:
    """Four labels of three texts, and two users, and one who is none any more."""
    Path("a.csv").write_text(ROWS, encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    for command in ("create 标注员甲", "create 标注员乙", "create 已离职", "revoke 已离职"):
        with pytest.raises(SystemExit):
            main(["user", *command.split(), "--json"])
    capsys.readouterr()
    return home


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Callable[..., list[str]]:
    """The lines that a person sees."""

    def run(*arguments: str) -> list[str]:
        with pytest.raises(SystemExit) as ended:
            main(["library", *arguments])
        assert ended.value.code == 0
        return capsys.readouterr().out.splitlines()

    return run


def test_a_label_its_history_and_its_undo(reviews: Path, call: Call) -> None:
    spoken = call("label", "早餐凉", "差评", "--text", "--by", "标注员甲", "--confidence", "0.9", "--note", "看过原文")
    assert (spoken["labels"], spoken["conflict"]) == (["差评"], False)
    blamed = call("blame", spoken["sample"][:10])
    assert {key: blamed[key] for key in ("event", "kind", "who", "labels", "confidence", "note", "source")} == {
        "event": spoken["event"],
        "kind": "person",
        "who": "标注员甲",
        "labels": ["差评"],
        "confidence": 0.9,
        "note": "看过原文",
        "source": None,
    }
    undone = call("undo", str(spoken["event"]), "--by", "标注员乙")
    assert (undone["undoes"], undone["labels"], undone["conflict"]) == (spoken["event"], ["中评"], True)
    assert (undone["library"], undone["text"]) == ("default", "早餐凉")
    told = call("history", spoken["sample"])
    assert (told["text"], told["labels"], told["conflict"]) == ("早餐凉", ["中评"], True)
    assert [(event["kind"], event["labels"], event["undone_by"], event["current"]) for event in told["events"]] == [
        ("import", ["中评"], None, True),
        ("import", ["差评"], None, False),
        ("person", ["差评"], undone["event"], False),
        ("person", None, None, False),
    ]


def test_a_history_reads_line_by_line(reviews: Path, call: Call, lines: Callable[..., list[str]]) -> None:
    spoken = call(
        "label", "早餐凉", "差评", "--text", "--by", "标注员甲", "--confidence", "0.9", "--note", "看过[原]文"
    )
    undone = call("undo", str(spoken["event"]), "--by", "标注员乙")
    shown = lines("history", "早餐凉", "--text")
    assert shown[0] == f"{spoken['sample']}  早餐凉"
    assert shown[1].startswith("* 2  2")
    assert shown[1].endswith("import wenlei library import  中评  a.csv:3")
    assert "  person 标注员甲  差评  把握 confidence 0.9  “看过[原]文”" in shown[3]
    assert shown[3].endswith(f"已被 {undone['event']} 撤销 undone）")
    assert shown[4].endswith(f"person 标注员乙  撤销 undoes {spoken['event']}")
    assert shown[5:] == ["标签有分歧 in conflict"]
    assert lines("blame", "早餐凉", "--text") == [shown[1].removeprefix("* ")]


def test_conflicts_page_by_page(reviews: Path, call: Call, lines: Callable[..., list[str]]) -> None:
    call("label", "房间大", "好评", "--text", "--by", "标注员甲")
    call("label", "房间大", "差评", "--text", "--by", "标注员乙")
    found = call("conflicts")
    assert found["total"] == 2
    assert {
        conflict["text"]: (conflict["labels"], [(said["who"], said["labels"]) for said in conflict["candidates"]])
        for conflict in found["conflicts"]
    } == {
        "房间大": (["差评"], [("标注员甲", ["好评"]), ("标注员乙", ["差评"])]),
        "早餐凉": (["中评"], [("wenlei library import", ["中评"]), ("wenlei library import", ["差评"])]),
    }
    pages = [call("conflicts", "--limit", "1", "--offset", str(offset))["conflicts"] for offset in range(3)]
    assert pages == [found["conflicts"][:1], found["conflicts"][1:], []]
    shown = lines("conflicts", "--limit", "1", "--offset", "1")
    assert [line.strip()[:1] == "*" for line in shown].count(True) == 1
    assert shown[-1] == "2–2 / 2"


def test_a_text_of_no_class_has_no_label_and_its_history_says_so(
    reviews: Path, call: Call, refusal: Refusal, lines: Callable[..., list[str]]
) -> None:
    spoken = call("label", "房间大", "--none", "--text", "--by", "标注员甲", "--note", "广告")
    assert (spoken["labels"], spoken["conflict"]) == (None, False)
    said = call("history", "房间大", "--text")["events"][-1]
    assert (said["who"], said["labels"], said["said"], said["current"]) == ("标注员甲", [], [], False)
    shown = lines("history", "房间大", "--text")
    assert shown[-2].endswith("  person 标注员甲  无标签 no label  “广告”")
    assert shown[-1] == "当前没有标签 no label now"
    assert "has no label" in refusal("blame", "房间大", "--text")
    assert "房间大" in "".join(lines("samples", "--unlabelled"))
    assert call("undo", str(spoken["event"]), "--by", "标注员甲")["labels"] == ["好评"]


def test_agreement_of_two_persons(reviews: Path, call: Call, refusal: Refusal, lines: Callable[..., list[str]]) -> None:
    assert "no sample that two persons labelled" in refusal("agreement")
    for by, words in (("标注员甲", ("好评", "中评", "差评")), ("标注员乙", ("好评", "差评", "差评"))):
        for text, word in zip(("房间大", "早餐凉", "隔音差"), words, strict=True):
            call("label", text, word, "--text", "--by", by)
    measured = call("agreement")
    assert (measured["samples"], measured["persons"]) == (3, {"标注员乙": 3, "标注员甲": 3})
    assert measured["pairs"] == [
        {
            "persons": ["标注员乙", "标注员甲"],
            "samples": 3,
            "observed": pytest.approx(2 / 3),
            "kappa": pytest.approx(0.5),
        }
    ]
    assert measured["alpha"] == pytest.approx(1 - 5 * 2 / (36 - 4 - 1 - 9))
    assert lines("agreement") == [
        "样本 samples 3  一致率 observed 0.667  α 0.545",
        "  标注员乙 – 标注员甲: 样本 samples 3  一致率 observed 0.667  κ 0.500",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("label", "房间大", "好平", "--text", "--by", "标注员甲"), "label '好平' is not in the taxonomy"),
        (("label", "房间大", "好评", "--none", "--text", "--by", "标注员甲"), "give either the labels or --none"),
        (
            ("label", "房间大", "--text", "--by", "标注员甲"),
            "give a sample and its labels, or --none where no class fits",
        ),
        (("label", "--none", "--by", "标注员甲"), "give a sample and its labels"),
        (("label", "--none", "--bundle", "b", "--by", "标注员甲"), "--none and --bundle are both given"),
        (("label", "ffff", "好评", "--by", "标注员甲"), "no sample whose id begins with 'ffff'"),
        (("undo", "99", "--by", "标注员甲"), "there is no event 99"),
        (("label", "房间大", "差评", "--text", "--by", "标注员丙"), "make one with wenlei user create 标注员丙"),
        (("label", "房间大", "差评", "--text", "--by", "标注员 甲"), "--by '标注员 甲' names no user"),
        (("label", "房间大", "差评", "--text", "--by", "已离职"), "user '已离职' was revoked at"),
        (("undo", "1", "--by", "已离职"), "user '已离职' was revoked at"),
        (("undo", "1", "--by", "标注员丙"), "there is no user '标注员丙'"),
        (("history", "房间小", "--text"), "no sample with the text '房间小'"),
        (("blame", "0", "--library", "other"), "there is no library 'other'"),
    ],
)
def test_what_can_not_be_done_is_told_in_one_line(
    reviews: Path, call: Call, refusal: Refusal, arguments: tuple[str, ...], message: str
) -> None:
    assert message in refusal(*arguments)
    assert call("history", "房间大", "--text")["labels"] == ["好评"]
