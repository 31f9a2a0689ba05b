"""`wenlei taxonomy …` as people and scripts call it: looked at first, put into force, listed, taken back, refused."""

import json
import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from app.cli import main

Answer = Callable[..., dict[str, Any]]
Shown = Callable[..., tuple[str, str]]
Refused = Callable[..., str]

ROWS = "text,label\n房间很干净,好评\n早餐一般,中评\n隔音太差,差评\n床垫太硬,差评\n"
BRANCHES = (
    "名称,上级,编码,说明,别名\n公司,,C,公司的事,\n裁员,公司,C1,,减员；优化\n上市,公司,C2,,\n赛事,,,,\n夺冠,赛事,,,\n"
)


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Exit code, stdout and stderr of a command that cc runs."""
    monkeypatch.setenv("LOGNAME", "cc")

    def call(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        return int(ended.value.code or 0), *capsys.readouterr()

    return call


@pytest.fixture
def answer(run: Callable[..., Any]) -> Answer:
    """The JSON object that a command answers with."""

    def call(*arguments: str) -> dict[str, Any]:
        code, out, err = run(*arguments, "--json")
        assert (code, out.count("\n")) == (0, 1), err
        answered = json.loads(out)
        assert isinstance(answered, dict)
        return answered

    return call


@pytest.fixture
def shown(run: Callable[..., Any]) -> Shown:
    """What people see on stdout and on stderr."""

    def call(*arguments: str) -> tuple[str, str]:
        code, out, err = run(*arguments)
        assert code == 0, err
        return out, err

    return call


@pytest.fixture
def refused(run: Callable[..., Any]) -> Refused:
    """The one line on stderr of a command that can't be done."""

    def call(*arguments: str) -> str:
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        return str(err)

    return call


@pytest.fixture
def reviews(answer: Answer) -> None:
    Path("reviews.csv").write_text(ROWS, encoding="utf-8")
    answer("library", "import", "reviews.csv", "--text", "text", "--label", "label")


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Gives the command a terminal, and types into it."""
    keyboard, terminal = pty.openpty()
    with os.fdopen(terminal, encoding="utf-8") as stdin, os.fdopen(keyboard, "w", encoding="utf-8") as keys_down:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield lambda keys: print(keys, end="", file=keys_down, flush=True)


def counts(answer: Answer, library: str = "default") -> dict[str, int]:
    found = answer("taxonomy", "show", "--library", library)
    return {label["label"]: label["samples"] for label in found["labels"]}


@pytest.mark.usefixtures("reviews")
def test_a_change_is_only_looked_at_without_yes(answer: Answer, shown: Shown) -> None:
    frozen = answer("library", "snapshot")["snapshot"]
    before = answer("taxonomy", "show")
    assert answer("taxonomy", "rename", "差评", "不满意") == {
        "applied": False,
        "version": 2,
        "kind": "rename",
        "asked": {"label": "差评", "to": "不满意"},
        "added": ["不满意"],
        "removed": ["差评"],
        "meanings": {"差评": ["不满意"]},
        "carrying": {"差评": 2},
        "samples": 2,
        "unlabelled": 0,
        "outcomes": [{"before": ["差评"], "after": ["不满意"], "samples": 2}],
        "snapshots": [{"hash": frozen, "samples": 2}],
    }
    out, err = shown("taxonomy", "rename", "差评", "不满意")
    assert out.splitlines() == [
        "改名 rename: 差评 → 不满意（版本 version 2）",
        "  差评 → 不满意  样本 samples 2",
        "  涉及样本 samples touched 2，其中将无标签 left without a label 0",
        f"  含旧标签的快照保持不变 | snapshots that hold the old labels stay as they are: {frozen[:12]} (2)",
    ]
    assert err == "未生效；加 --yes 使之生效 | nothing was changed; add --yes to put it into force\n"
    assert answer("taxonomy", "show") == before
    assert len(answer("taxonomy", "versions")["versions"]) == 1


@pytest.mark.usefixtures("reviews")
def test_classes_that_two_persons_review_are_described_and_shown_as_such(answer: Answer, shown: Shown) -> None:
    assert "reviewers" not in shown("taxonomy", "show")[0]
    answer("taxonomy", "describe", "差评", "--reviewers", "2", "--yes")
    answer("taxonomy", "rename", "差评", "不满意", "--yes")
    classes = {each["label"]: each.get("reviewers") for each in answer("taxonomy", "show")["labels"]}
    assert classes == {"好评": None, "中评": None, "不满意": 2}
    assert "复核人数" in shown("taxonomy", "show")[0]
    assert "reviewers 2" in shown("taxonomy", "versions")[0]


@pytest.mark.usefixtures("reviews")
def test_yes_puts_changes_into_force_and_undo_takes_them_back(answer: Answer, shown: Shown) -> None:
    answer("user", "create", "标注员甲")
    by = ("--yes", "--by", "标注员甲")
    assert answer("taxonomy", "rename", "差评", "不满意", "--yes")["applied"]
    answer("taxonomy", "merge", "好评", "中评", "--into", "不差", *by, "--note", "分不清")
    answer("taxonomy", "add", "一般", "--code", "M", "--alias", "还行", *by)
    answer("taxonomy", "describe", "M", "--description", "不好不坏", *by)
    answer("taxonomy", "split", "不满意", "--into", "卫生", "--into", "吃住", "--rest", "吃住", *by)
    answer("taxonomy", "remove", "一般", *by)
    assert counts(answer) == {"不差": 2, "卫生": 0, "吃住": 2}
    versions = answer("taxonomy", "versions")["versions"]
    assert [(version["kind"], version["by"]) for version in versions[1:]] == [
        ("rename", "cc"),
        *((kind, "标注员甲") for kind in ("merge", "add", "describe", "split", "remove")),
    ]
    assert versions[2]["note"] == "分不清"
    table = shown("taxonomy", "versions")[0]
    for told in (
        "导入 import: 3 类 classes",
        "合并 merge: 好评、中评 → 不差",
        "分不清",
        "标注员甲",
        versions[2]["at"][:16],
    ):
        assert told in table
    for _ in range(6):
        undone = answer("taxonomy", "undo", *by)
    assert undone["asked"] == {"version": 2}
    assert counts(answer) == {"中评": 1, "好评": 1, "差评": 2}
    assert counts(answer) == {"中评": 1, "好评": 1, "差评": 2}
    redone = answer("taxonomy", "undo", "13", *by)
    assert (redone["kind"], redone["meanings"]) == ("undo", {"差评": ["不满意"]})
    assert [event["actor"] for event in answer("audit", "list", "--limit", "2")["events"]] == ["标注员甲", "标注员甲"]


@pytest.mark.usefixtures("reviews")
def test_what_is_in_force_says_how_to_take_it_back(shown: Shown, answer: Answer) -> None:
    out, _ = shown("taxonomy", "split", "差评", "--into", "卫生", "--into", "噪音", "--yes")
    assert out.splitlines() == [
        "拆分 split: 差评 → 卫生、噪音（版本 version 2）",
        "  差评 → （待定 undecided）  样本 samples 2",
        "  新类别 | new classes: 卫生, 噪音",
        "  涉及样本 samples touched 2，其中将无标签 left without a label 2",
        "已生效；撤销 | in force; to take it back: wenlei taxonomy undo 2",
    ]
    answer(*out.splitlines()[-1].split(": ")[1].split()[1:], "--yes")
    assert counts(answer) == {"中评": 1, "好评": 1, "差评": 2}
    answer("taxonomy", "merge", "好评", "中评", "--into", "不差", "--yes")
    out, _ = shown("taxonomy", "undo")
    assert out.splitlines() == [
        "撤销 undo: 版本 version 4（版本 version 5）",
        "  不差 → 中评  样本 samples 1",
        "  不差 → 好评  样本 samples 1",
        "  涉及样本 samples touched 2，其中将无标签 left without a label 0",
    ]


@pytest.mark.usefixtures("reviews")
def test_on_a_terminal_it_asks(run: Callable[..., Any], answer: Answer, type_in: Callable[[str], None]) -> None:
    for keys in ("n\n", "\n", "\x04"):  # the last: end of input
        type_in(keys)
        code, out, err = run("taxonomy", "rename", "差评", "不[bold]满意")
        assert (code, out) == (1, "")
        assert "改名 rename: 差评 → 不[bold]满意" in err
        assert err.endswith("未生效 | nothing was changed\n")
    assert counts(answer) == {"中评": 1, "好评": 1, "差评": 2}
    type_in("Yes\n")
    code, out, err = run("taxonomy", "rename", "差评", "不[bold]满意")
    assert code == 0
    assert "  涉及样本 samples touched 2" in err
    assert out == "已生效；撤销 | in force; to take it back: wenlei taxonomy undo 2\n"
    assert counts(answer) == {"不[bold]满意": 2, "中评": 1, "好评": 1}


@pytest.mark.usefixtures("reviews")
def test_a_declaration_may_put_the_classes_in_another_order(shown: Shown, answer: Answer) -> None:
    Path("order.txt").write_text("好评\n中评\n差评\n", encoding="utf-8")
    out, _ = shown("taxonomy", "declare", "order.txt", "--yes")
    assert "  新的顺序 | in another order: 好评, 中评, 差评" in out.splitlines()
    assert list(counts(answer)) == ["好评", "中评", "差评"]


def write_text(path: Path) -> None:
    path.write_text("好评\n差评\n", encoding="utf-8")


def write_gbk(path: Path) -> None:
    path.write_bytes("名称,编码\n好评,P\n差评,N\n".encode("gb18030"))


def write_json(path: Path) -> None:
    path.write_text('[{"name": "好评", "code": "P"}, {"name": "差评", "code": "N"}]', encoding="utf-8")


def write_sheet(path: Path) -> None:
    book = Workbook()
    for row in (("名称", "编码", "备注"), ("好评", "P", "不读"), ("差评", "N", None)):
        book.active.append(row)
    book.save(path)


@pytest.mark.parametrize(
    ("name", "write"),
    [("a.txt", write_text), ("a.csv", write_gbk), ("a.json", write_json), ("a.xlsx", write_sheet)],
)
def test_classes_are_declared_from_a_file(
    answer: Answer, shown: Shown, name: str, write: Callable[[Path], None]
) -> None:
    write(Path(name))
    out, _ = shown("taxonomy", "declare", name, "--library", "评论")
    assert "  新建样本库 | a new library: 评论  任务 task single" in out.splitlines()
    assert "  新类别 | new classes: 好评, 差评" in out.splitlines()
    out, _ = shown("taxonomy", "declare", name, "--library", "评论", "--yes")
    assert out.endswith("已生效 | in force\n")  # nothing comes before the first version
    found = answer("taxonomy", "show", "--library", "评论")
    assert (found["declared"], found["task"], counts(answer, "评论")) == (True, "single", {"好评": 0, "差评": 0})
    assert name == "a.txt" or [label["code"] for label in found["labels"]] == ["P", "N"]
    Path("b.csv").write_text("text,label\n房间大,好评\n窗小,还行\n", encoding="utf-8")
    imported = answer("library", "import", "b.csv", "--text", "text", "--label", "label", "--library", "评论")
    assert (imported["added"], imported["rejected"]) == (1, 1)


def test_levels_are_single_or_multi_and_branches_move_with_all_below_them(
    answer: Answer, shown: Shown, refused: Refused
) -> None:
    Path("classes.csv").write_text(BRANCHES, encoding="utf-8")
    library = ("--library", "事件")
    out, _ = shown("taxonomy", "declare", "classes.csv", "--choices", "single,multi", *library, "--yes")
    assert "任务 task hierarchical（各层 levels single, multi）" in out
    Path("a.csv").write_text("text,label\n裁员后上市,减员|C2\n公司夺冠,公司/裁员|赛事/夺冠\n", encoding="utf-8")
    imported = answer("library", "import", "a.csv", "--text", "text", "--label", "label", "--label-sep", "|", *library)
    assert (imported["added"], imported["rejected"]) == (1, 1)
    rows = [line.replace("│", " ").split() for line in shown("taxonomy", "show", *library)[0].splitlines()]
    assert rows[0][:4] == ["事件", "任务", "task", "hierarchical（各层"]
    assert [row for row in rows if row and "/" in row[0]] == [
        ["公司/", "C", "公司的事"],
        ["公司/裁员", "C1", "1", "减员、优化"],
        ["公司/上市", "C2", "1"],
        ["赛事/夺冠", "0"],
    ]
    assert "'公司' and '赛事' both stand under the root" in refused(
        "taxonomy", "move", "C2", "--under", "赛事", *library
    )
    assert "would be a circle" in refused("taxonomy", "move", "公司", "--under", "C1", *library)
    moved = answer("taxonomy", "move", "公司", "--under", "赛事", *library, "--yes")
    assert moved["added"] == ["赛事/公司/裁员", "赛事/公司/上市"]
    assert counts(answer, "事件") == {"赛事/公司/裁员": 1, "赛事/公司/上市": 1, "赛事/夺冠": 0}
    assert shown("taxonomy", "versions", *library)[0].count("移动 move: 公司 → 赛事") == 1


def test_by_names_a_user_who_was_not_revoked(answer: Answer, refused: Refused) -> None:
    Path("classes.txt").write_text("好评\n差评\n", encoding="utf-8")
    declare = ("taxonomy", "declare", "classes.txt", "--yes", "--by")
    assert "no user '标注员甲' (users: none yet); make one with wenlei user create 标注员甲" in refused(
        *declare, "标注员甲"
    )
    for name in ("", "标注员 甲", "\udcff"):
        assert "names no user" in refused(*declare, name)
    answer("user", "create", "标注员甲")
    answer("user", "create", "标注员乙")
    answer("user", "revoke", "标注员乙")
    assert "user '标注员乙' was revoked" in refused(*declare, "标注员乙")
    answer(*declare, "标注员甲")
    assert [version["by"] for version in answer("taxonomy", "versions")["versions"]] == ["标注员甲"]


REFUSALS: list[tuple[tuple[str, ...], str]] = [
    (("show", "--library", "nobody"), "there is no library 'nobody'"),
    (("versions", "--library", "nobody"), "there is no library 'nobody'"),
    (("rename", "好平", "满意"), "label '好平' is not in the taxonomy (中评, 好评, 差评)"),
    (("rename", "好评", "差评"), "merge the two with wenlei taxonomy merge"),
    (("rename", "好评", " "), "the class's name is empty"),
    (("add", "好评"), "there is a class '好评' already"),
    (("add", "一般", "--alias", "好评"), "'好评' would mean both '好评' and '一般'"),
    (("describe", "好评"), "nothing to change; give --code, --description, --alias or --reviewers"),
    (("merge", "好评", "--into", "好评"), "nothing to merge into '好评'"),
    (("split", "好评", "--into", "很好"), "give two classes or more"),
    (
        ("split", "好评", "--into", "很好", "--into", "较好", "--rest", "差评"),
        "the rest goes to '差评', which is none",
    ),
    (("move", "好评", "--under", "中评"), "task single has no levels to move between"),
    (("undo",), "no change of the taxonomy to undo"),
    (("undo", "1"), "version 1 is the taxonomy's first"),
    (("undo", "7"), "there is no version 7 to undo; the newest is 1"),
    (("declare", "none.csv"), "none.csv: No such file or directory"),
    (("declare", "folder"), "folder is a folder; declare the classes in a file"),
    (("declare", "less.txt"), "less.txt lacks 差评, which library 'default' has"),
    (("declare", "circle.csv", "--library", "new"), "line 2: the classes stand in a circle: 甲 → 乙 → 甲"),
    (("declare", "less.txt", "--library", "a/b"), "library name 'a/b'"),
    (("declare", "less.txt", "--library", "new", "--choices", "single,two"), "--choices 'single,two'"),
    (("declare", "less.txt", "--task", "multi"), "holds task single, not multi"),
    (("remove", "好评", "--note", "长" * 1001, "--yes"), "--note has 1001 characters"),
]


@pytest.mark.usefixtures("reviews")
def test_what_can_not_be_done_is_told_in_one_line_and_changes_nothing(answer: Answer, refused: Refused) -> None:
    Path("folder").mkdir()
    Path("less.txt").write_text("好评\n中评\n", encoding="utf-8")
    Path("circle.csv").write_text("name,parent\n甲,乙\n乙,甲\n", encoding="utf-8")
    for arguments, message in REFUSALS:
        assert message in refused("taxonomy", *arguments)
    assert len(answer("taxonomy", "versions")["versions"]) == 1


def test_help_teaches_by_examples(run: Callable[..., Any]) -> None:
    for command in ((), ("declare",), ("split",), ("undo",)):
        code, out, _ = run("taxonomy", *command, "--help")
        lines = [line.strip() for line in out.splitlines()]
        assert (code, "例 | Examples" in lines) == (0, True)
        assert any(line.startswith(" ".join(("wenlei taxonomy", *command))) for line in lines)
