"""`wenlei library rollback` from the command line: looked at first, done, taken back, refused."""

import os
import pty
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]


@pytest.fixture
def frozen(home: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> str:
    """A snapshot, and afterwards a label that a person gave and a class that has another name."""
    Path("a.csv").write_text("text,label\n房间大,好评\n早餐凉,差评\n", encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    snapshot = str(call("snapshot")["snapshot"])
    for command in ("user create 标注员甲", "taxonomy rename 差评 不满意 --yes"):
        with pytest.raises(SystemExit) as ended:
            main(command.split())
        assert ended.value.code == 0
    capsys.readouterr()
    call("label", "早餐凉", "好评", "--text", "--by", "标注员甲")
    return snapshot


def test_a_rollback_is_only_looked_at_without_yes(call: Call, frozen: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = call("history", "早餐凉", "--text")
    assert call("rollback", frozen[:8]) == {
        "applied": False,
        "undo": False,
        "snapshot": frozen,
        "events": 1,
        "samples": 1,
        "classes_gone": ["不满意"],
        "classes_back": ["差评"],
    }
    with pytest.raises(SystemExit):
        main(["library", "rollback", frozen])
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        f"回滚到快照 roll back to snapshot: {frozen}",
        "  不再算数的事件 events that count no more 1，涉及样本 samples touched 1",
        "  不再有的类别 | classes gone: 不满意",
        "  恢复的类别 | classes back: 差评",
    ]
    assert err == "未生效；加 --yes 使之生效 | nothing was changed; add --yes to put it into force\n"
    assert call("history", "早餐凉", "--text") == said


def test_the_same_snapshot_is_frozen_again_and_undo_brings_everything_back(
    call: Call, refusal: Refusal, frozen: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lived = call("snapshot")["snapshot"]
    folder = str(home / "snapshots" / "default" / frozen)
    assert call("rollback", folder, "--yes", "--by", "标注员甲", "--note", "标错了")["applied"]
    assert call("snapshot")["snapshot"] == frozen
    told = call("history", "早餐凉", "--text")
    assert [(event["who"], event["rolled_back"], event["current"]) for event in told["events"]] == [
        ("wenlei library import", False, True),
        ("标注员甲", True, False),
    ]
    assert "as it was in snapshot" in refusal("rollback", frozen, "--yes")
    with pytest.raises(SystemExit):
        main(["library", "rollback", "--undo", "--yes"])
    assert capsys.readouterr().out.splitlines() == [
        f"撤销回滚 undo the rollback to: {frozen}",
        "  再次算数的事件 events that count again 1，涉及样本 samples touched 1",
        "  不再有的类别 | classes gone: 差评",
        "  恢复的类别 | classes back: 不满意",
        f"已生效；再次回滚 | in force; to roll back again: wenlei library rollback {frozen}",
    ]
    assert call("snapshot")["snapshot"] == lived
    assert "has no rollback to undo" in refusal("rollback", "--undo", "--yes")
    with pytest.raises(SystemExit):
        main(["audit", "list"])
    audited = "".join(capsys.readouterr().out.split())
    assert ("标注员甲" in audited, "undo" in audited) == (True, True)


@pytest.mark.parametrize(("keys", "done"), [("y\n", True), ("n\n", False), ("\x04", False)])
def test_on_a_terminal_it_asks(
    call: Call,
    frozen: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    keys: str,
    done: bool,
) -> None:
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.write(keyboard, keys.encode())
        with pytest.raises(SystemExit) as ended:
            main(["library", "rollback", frozen])
    os.close(keyboard)
    out, err = capsys.readouterr()
    assert "events that count no more 1" in err
    assert ended.value.code == (0 if done else 1)
    assert ("in force; to take it back: wenlei library rollback --undo" in out) == done
    assert ("nothing was changed" in err) != done
    assert call("history", "早餐凉", "--text")["labels"] == (["差评"] if done else ["好评"])


REFUSALS: list[tuple[tuple[str, ...], str]] = [
    ((), "give either the snapshot to go back to, or --undo"),
    (("ffff", "--undo"), "give either the snapshot to go back to, or --undo"),
    (("ffff", "--yes"), "'ffff' begins no snapshot on record of library 'default'"),
    (("", "--yes"), "'' is not a hash (4 to 32 of its digits)"),
    (("很好",), "'很好' is not a hash"),
    ((".",), "is not a snapshot: no manifest.json in it"),
    (("--undo",), "library 'default' has no rollback to undo"),
    (("--undo", "--library", "nobody"), "there is no library 'nobody'"),
    (
        ("ffff", "--by", "标注员丙"),
        "no user '标注员丙' (users: 标注员甲); make one with wenlei user create 标注员丙",
    ),
]


@pytest.mark.usefixtures("frozen")
def test_what_can_not_be_rolled_back_is_told_in_one_line(refusal: Refusal) -> None:
    for arguments, message in REFUSALS:
        assert message in refusal("rollback", *arguments)


def test_help_teaches_by_examples(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["library", "rollback", "--help"])
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "例 | Examples" in lines
    assert "wenlei library rollback --undo" in lines
