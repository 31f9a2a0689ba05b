"""The commands of wenlei review, on both databases: for scripts, and one text at a time."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.cli import main
from app.settings import load_settings
from app.store.database import open_database
from app.store.tables import review_items
from model.text import sample_id

ROWS = "text,label\n房间很大,好评\n早餐凉了,好评\n隔音太差,差评\n前台热情,好评\n还可以吧,中评\n"
Answer = Callable[..., dict[str, Any]]
Sitting = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture
def answer(home: Path, capsys: pytest.CaptureFixture[str]) -> Answer:
    def run(*arguments: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        found = json.loads(out)
        assert isinstance(found, dict)
        return found

    return run


@pytest.fixture
def refused(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, "")
        return err

    return run


@pytest.fixture
def shown(home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        return out

    return run


@pytest.fixture
def queue(answer: Answer, home: Path) -> Answer:
    """Five reviews, three of them queued by hand: 早餐凉了 first, then 房间很大, then 隔音太差."""
    home.mkdir(parents=True)
    (home / "a.csv").write_text(ROWS, encoding="utf-8")
    answer("library", "import", str(home / "a.csv"), "--text", "text", "--label", "label")
    for name in ("标注员甲", "标注员乙"):
        answer("user", "create", name)
    for text, value in (("早餐凉了", "0.9"), ("房间很大", "0.5"), ("隔音太差", "0.1")):
        answer("review", "add", text, "--text", "--value", value, "--by", "标注员甲")
    return answer


@pytest.fixture
def sit(queue: Answer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Sitting:
    """A sitting of 标注员甲 who types these lines: the summary, and what was shown."""

    def run(*typed: str) -> tuple[dict[str, Any], str]:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{each}\n" for each in typed)))
        with pytest.raises(SystemExit) as ended:
            main(["review", "start", "--by", "标注员甲", "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        return json.loads(out), err

    return run


def labels(answer: Answer, text: str) -> list[str] | None:
    found: list[str] | None = answer("library", "history", text, "--text")["labels"]
    return found


def test_a_script_claims_and_decides(queue: Answer) -> None:
    first = queue("review", "claim", "--by", "标注员甲")["review"]
    assert (first["text"], first["labels"], first["proposed"], first["reason"]) == (
        "早餐凉了",
        ["好评"],
        None,
        "by_hand",
    )
    done = queue("review", "change", str(first["item"]), "差评", "--by", "标注员甲", "--note", "凉了就是不好")
    assert (done["decided"], done["state"], done["waits"], labels(queue, "早餐凉了")) == (
        ["差评"],
        "done",
        False,
        ["差评"],
    )
    second = queue("review", "claim", "--by", "标注员甲")["review"]
    assert queue("review", "accept", str(second["item"]), "--by", "标注员甲")["decided"] == ["好评"]
    third = queue("review", "claim", "--by", "标注员甲", "--reason", "by_hand")["review"]
    assert queue("review", "skip", str(third["item"]), "--by", "标注员甲")["state"] == "open"
    assert queue("review", "claim", "--by", "标注员甲") == {"review": None}
    again = queue("review", "claim", str(third["item"]), "--by", "标注员乙", "--lease", "5")["review"]
    assert (again["text"], again["claimed_by"]) == ("隔音太差", "标注员乙")
    assert queue("review", "release", str(third["item"]), "--by", "标注员乙")["state"] == "open"
    assert queue("review", "undo", str(first["item"]), "--by", "标注员甲")["labels"] == ["好评"]
    stats = queue("review", "stats")
    assert (stats["open"], stats["held"], stats["done"], stats["reasons"]) == (2, 0, 1, {"by_hand": 2})
    assert stats["today"] == {"标注员甲": {"accept": 1, "change": 1, "skip": 1, "undo": 1}}


def test_open_items_are_listed_in_order_page_by_page(queue: Answer, shown: Callable[..., str]) -> None:
    page = queue("review", "list", "--limit", "2", "--offset", "1")
    assert (page["total"], [each["text"] for each in page["reviews"]]) == (3, ["房间很大", "隔音太差"])
    assert queue("review", "list", "--reason", "hard")["total"] == 0
    queue("review", "claim", "--by", "标注员甲")
    table = shown("review", "list")
    assert "1–3 / 3" in table
    assert "标注员甲" in table.replace("\n", "")
    told = shown("review", "stats")
    assert "待复核 open 3（已领取 held 1）" in told
    assert "有人要求 by_hand  3" in told
    claimed = shown("review", "claim", "--by", "标注员乙")
    assert claimed.splitlines()[:2] == ["房间很大", "  当前 now       好评"]


def test_samples_are_added_all_or_none_by_somebody_who_is_known(queue: Answer, refused: Callable[..., str]) -> None:
    both = queue("review", "add", sample_id("前台热情")[:10], sample_id("房间很大"), "--by", "标注员乙")
    assert (both["added"], both["raised"], both["known"]) == (1, 1, 0)
    assert "no sample whose id begins with" in refused("review", "add", "ffff", "--by", "标注员乙")
    assert "路人" in refused("review", "add", sample_id("还可以吧"), "--by", "路人")
    assert queue("review", "stats")["open"] == 4


def test_what_can_not_be_done_is_refused_in_a_line(queue: Answer, refused: Callable[..., str]) -> None:
    item = str(queue("review", "claim", "--by", "标注员甲")["review"]["item"])
    for arguments, message in (
        (("accept", item, "--by", "标注员乙"), f"review item {item} is with 标注员甲 until"),
        (("claim", item, "--by", "标注员乙"), f"review item {item} is with 标注员甲 until"),
        (("change", item, "没有的", "--by", "标注员甲"), "'没有的' is not in the taxonomy"),
        (("accept", "99", "--by", "标注员甲"), "there is no review item 99"),
        (("claim", "--by", "路人"), "路人"),
        (("start", "--by", "路人"), "路人"),
        (("list", "--library", "none"), "there is no library 'none'"),
    ):
        assert message in refused("review", *arguments), arguments


def test_one_text_at_a_time_keys_accept_change_and_skip(sit: Sitting, queue: Answer) -> None:
    done, told = sit("", "1", "s")
    assert done == {"library": "default", "by": "标注员甲", "accept": 1, "change": 1, "none": 0, "skip": 1, "undo": 0}
    assert (labels(queue, "早餐凉了"), labels(queue, "房间很大"), labels(queue, "隔音太差")) == (
        ["好评"],
        ["中评"],
        ["差评"],
    )
    shown = [text for text in told.splitlines() if text in ("早餐凉了", "房间很大", "隔音太差")]
    assert shown == ["早餐凉了", "房间很大", "隔音太差"]
    assert "  1 中评  2 好评  3 差评" in told
    assert "── 已决定 done 1  还剩约 left about 2 ──" in told
    assert "没有可复核的了 | nothing is left to review" in told
    assert queue("review", "stats")["held"] == 0


def test_names_aliases_and_pieces_of_them_change_the_label(sit: Sitting, queue: Answer) -> None:
    queue("taxonomy", "describe", "差评", "--code", "a", "--alias", "不满意", "--yes")
    done, told = sit("不满意", "没有这种", "评", "3", "=a")
    assert (done["change"], done["accept"]) == (3, 0)
    assert [labels(queue, text) for text in ("早餐凉了", "房间很大", "隔音太差")] == [["差评"], ["差评"], ["差评"]]
    assert "! 没有类别含有 | no class is called like '没有这种'" in told


def test_the_key_n_says_that_no_class_fits_and_is_taken_back(sit: Sitting, queue: Answer) -> None:
    queue("taxonomy", "describe", "差评", "--code", "n", "--yes")
    done, told = sit("n", "n", "u", "=n", "q")
    assert done == {"library": "default", "by": "标注员甲", "accept": 0, "change": 1, "none": 2, "skip": 0, "undo": 1}
    assert (labels(queue, "早餐凉了"), labels(queue, "房间很大")) == (None, ["差评"])
    assert "都不是 none  编号 item 1" in told
    assert "  当前 now （无 none）  事件 event 6" in told
    assert "n 都不是" in told
    assert "n none of these" in told


def test_a_script_decides_that_no_class_fits(queue: Answer, shown: Callable[..., str]) -> None:
    item = str(queue("review", "claim", "--by", "标注员甲")["review"]["item"])
    done = queue("review", "none", item, "--by", "标注员甲", "--note", "广告")
    assert (done["action"], done["decided"], done["state"], done["labels"]) == ("none", [], "done", None)
    assert queue("library", "history", "早餐凉了", "--text")["events"][-1]["note"] == "广告"
    assert "都不是 none 1" in shown("review", "stats")
    assert queue("library", "verify")["problems"] == 0


def test_a_decision_is_taken_back_and_made_again(sit: Sitting, queue: Answer) -> None:
    done, told = sit("u", "差评", "u", "中评", "q")
    assert done == {"library": "default", "by": "标注员甲", "accept": 0, "change": 2, "none": 0, "skip": 0, "undo": 1}
    assert "! 这次还没有决定可撤回" in told
    assert [text for text in told.splitlines() if text in ("早餐凉了", "房间很大")] == [
        "早餐凉了",
        "房间很大",
        "早餐凉了",
        "房间很大",
    ]
    assert labels(queue, "早餐凉了") == ["中评"]
    assert queue("review", "stats")["held"] == 0


class _Slow(io.StringIO):
    """Lines that are typed so slowly that the lease is over before the first, and 标注员乙 has the item."""

    def readline(self, *size: Any) -> str:
        if not self.tell():
            with open_database(load_settings()) as engine:
                taken = sa.update(review_items).where(review_items.c.claimed_by == "标注员甲")
                with engine.begin() as connection:
                    connection.execute(taken.values(claimed_by="标注员乙"))
        return super().readline(*size)


def test_a_lease_that_ran_out_is_told_and_the_next_item_comes(
    queue: Answer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", _Slow("差评\n\nq\n"))
    with pytest.raises(SystemExit) as ended:
        main(["review", "start", "--by", "标注员甲"])
    told = capsys.readouterr().out.splitlines()
    assert ended.value.code == 0
    assert sum(line.startswith("! review item 1 is with 标注员乙 until") for line in told) == 2
    assert [text for text in told if text in ("早餐凉了", "房间很大", "隔音太差")] == [
        "早餐凉了",
        "房间很大",
        "隔音太差",
    ]
    assert (labels(queue, "早餐凉了"), labels(queue, "房间很大")) == (["好评"], ["好评"])
    assert queue("review", "stats")["today"] == {"标注员甲": {"accept": 1}}


def test_the_end_of_the_input_gives_the_item_back(sit: Sitting, queue: Answer) -> None:
    assert sit()[0]["accept"] == 0
    assert queue("review", "stats")["held"] == 0


def test_where_two_have_to_agree_the_first_is_told_to_wait(sit: Sitting, queue: Answer) -> None:
    queue("taxonomy", "describe", "差评", "--reviewers", "2", "--yes")
    _, told = sit("差评", "q")
    assert "等另一人意见一致后生效" in told
    assert labels(queue, "早餐凉了") == ["好评"]
    item = queue("review", "claim", "--by", "标注员乙")["review"]
    assert queue("review", "change", str(item["item"]), "差评", "--by", "标注员乙")["labels"] == ["差评"]


def test_several_labels_are_typed_at_once_where_a_text_takes_several(
    answer: Answer, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir(parents=True)
    (home / "a.csv").write_text("text,label\n房间大早餐凉,房间;早餐\n", encoding="utf-8")
    options = ("--text", "text", "--label", "label", "--task", "multi", "--label-sep", ";")
    answer("library", "import", str(home / "a.csv"), *options)
    answer("user", "create", "标注员甲")
    answer("review", "add", "房间大早餐凉", "--text", "--by", "标注员甲")
    monkeypatch.setattr("sys.stdin", io.StringIO("2、房间\n"))
    with pytest.raises(SystemExit):
        main(["review", "start", "--by", "标注员甲"])
    told = capsys.readouterr().out
    assert "改标签 change 房间 + 早餐" in told
    assert labels(answer, "房间大早餐凉") == ["房间", "早餐"]
