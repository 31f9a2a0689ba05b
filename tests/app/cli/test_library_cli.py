"""`wenlei library …` as people and scripts call it: one JSON object on stdout, one clear line on stderr, exit codes."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]


def test_titles_with_numbered_classes_become_a_snapshot(call: Call, home: Path) -> None:
    Path("class.txt").write_text("财经\n体育\n娱乐\n", encoding="utf-8")
    Path("train.txt").write_text('股市今日回暖\t0\n"铁人"夺冠\t1\n股市今日回暖\t0\n谁知道\t9\n', encoding="utf-8")
    Path("dev.txt").write_text("新片上映\t2\n", encoding="utf-8")
    columns = ("--library", "titles", "--no-header", "--text", "0", "--label", "1", "--label-names", "class.txt")
    imported = call("import", "train.txt", *columns, "--split", "train")
    rejects = Path(imported.pop("rejects_file"))
    (reason,) = imported.pop("first_rejects")
    assert reason.startswith("train.txt, line 4: label '9' is not in the taxonomy")
    counts = {"read": 4, "added": 2, "duplicates": 1, "rejected": 1}
    assert imported == counts | {"several_in_one": None, "left_out": []}
    assert rejects.parent == home / "rejects"
    assert json.loads(rejects.read_text(encoding="utf-8"))["line"] == 4
    assert call("import", "dev.txt", *columns, "--split", "valid")["rejects_file"] is None
    frozen = call("snapshot", "--library", "titles")
    assert Path(frozen["path"]) == home / "snapshots" / "titles" / frozen["snapshot"]
    counts = frozen["counts"]
    assert {name: counts[name] for name in ("total", "train", "dev", "test", "conflicts")} == {
        "total": 3,
        "train": 2,
        "dev": 1,
        "test": 0,
        "conflicts": 0,
    }
    assert call("snapshot", "--library", "titles", "--out", "elsewhere")["path"] == f"elsewhere/{frozen['snapshot']}"


def test_several_packed_files_in_several_encodings_are_one_import(call: Call) -> None:
    Path("a.csv.gz").write_bytes(gzip.compress("label;content\n组织-裁员|人生-离职;昨日裁员\n".encode("gbk")))
    with zipfile.ZipFile("b.zip", "w") as archive:
        archive.writestr("b.json", '{"content": "喜结良缘", "label": ["人生-结婚"]}\n')
    columns = ("--text", "content", "--label", "label", "--label-sep", "|")
    assert call("import", "a.csv.gz", "b.zip", *columns)["added"] == 2
    call("import", "a.csv.gz", "b.zip", *columns, "--level-sep", "-", "--library", "paths")
    flat, paths = call("snapshot")["counts"]["labels"], call("snapshot", "--library", "paths")["counts"]["labels"]
    assert [*flat["train"]] == [*paths["train"]] == ["人生-离职", "人生-结婚", "组织-裁员"]


def test_files_of_an_archive_that_are_no_data_are_named(
    call: Call, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with zipfile.ZipFile("a.zip", "w") as archive:
        archive.writestr("a.csv", "text\n這家店很好\n")
        archive.writestr("README.txt", "怎样引用")
    with pytest.raises(SystemExit):
        main(["library", "import", "a.zip", "--text", "text", "--simplify"])
    assert "a.zip/README.txt: 未导入 | left out" in capsys.readouterr().err
    assert call("import", "a.zip", "--text", "text", "--simplify")["duplicates"] == 1


def test_empty_splits_and_classes_without_training_are_warned_of(
    call: Call, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("a.csv").write_text("text,label\n很好,好评\n", encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label", "--split", "test")
    with pytest.raises(SystemExit):
        main(["library", "snapshot"])
    out, err = capsys.readouterr()
    assert "split train is empty" in err
    assert "样本 samples" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "none.csv", "--text", "text"), "none.csv does not exist"),
        (("import", ".", "--text", "text"), "is a folder"),
        (("import", "a.csv", "--text", "正文"), "no column '正文'; its columns: text, label"),
        (("import", "a.csv", "--text", "text", "--encoding", "gb2312"), "a.csv, line 2, byte"),
        (("import", "a.csv", "--text", "label", "--label", "text", "--task", "multi"), "holds task single, not multi"),
        (("import", "a.csv", "--text", "text", "--simplify"), "leave out --[no-]simplify"),
        (("import", "a.csv", "--text", "text", "--label-names", "none.txt"), "--label-names none.txt"),
        (("snapshot", "--library", "nobody"), "there is no library 'nobody' (libraries: default)"),
        (("snapshot", "--test", "0.6", "--dev", "0.5"), "--test 0.6"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(
    call: Call, refusal: Refusal, arguments: tuple[str, ...], message: str
) -> None:
    Path("a.csv").write_text("text,label\n很棒,好评\n", encoding="utf-8")
    call("import", "a.csv", "--text", "text", "--label", "label")
    assert message in refusal(*arguments)


def test_a_killed_import_leaves_nothing_half_written(tmp_path: Path) -> None:
    """The process dies while it merges: the database has none of its rows, and the next import does all."""
    rows = "".join(f"第{row}条,好评\n" for row in range(2000))
    (tmp_path / "a.csv").write_text("text,label\n" + rows, encoding="utf-8")
    dying = (
        "import os, sys; from app.store.merging import _Merge; from app.cli import main\n"
        "_Merge._add_events = lambda self: os._exit(9)\n"
        "main(sys.argv[1:])"
    )
    arguments = ["library", "import", "a.csv", "--text", "text", "--label", "label", "--json"]
    environment = {**os.environ, "WENLEI_HOME": str(tmp_path / "home")}
    environment.pop("WENLEI_DATABASE_URL", None)

    def run(*command: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, *command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True
        )

    assert run("-c", dying).returncode == 9
    finished = run("-c", "import sys; from app.cli import main; main(sys.argv[1:])")
    assert json.loads(finished.stdout) == {
        "read": 2000,
        "added": 2000,
        "duplicates": 0,
        "rejected": 0,
        "first_rejects": [],
        "rejects_file": None,
        "several_in_one": None,
        "left_out": [],
    }


def test_classes_that_look_like_several_labels_are_warned_of(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("multi.csv").write_text("text,label\n快递慢客服好,服务|物流\n送货快,物流\n", encoding="utf-8")
    columns = ["--text", "text", "--label", "label", "--task", "multi"]
    for separator, warned in ((["--label-sep", "|"], False), ([], True)):
        with pytest.raises(SystemExit):
            main(["library", "import", "multi.csv", "--library", f"l{len(separator)}", *columns, *separator])
        err = capsys.readouterr().err
        assert ("服务|物流" in err and "--label-sep" in err) == warned


def test_people_see_the_splits_and_classes_of_a_snapshot(
    call: Call, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("reviews.csv").write_text("text,label\n房间干净,好评\n太吵,差评\n太吵,好评\n", encoding="utf-8")
    call("import", "reviews.csv", "--text", "text", "--label", "label")
    with pytest.raises(SystemExit):
        main(["library", "snapshot"])
    shown = capsys.readouterr().out
    rows = [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.splitlines()]
    counts = {row[0]: [int(cell) for cell in row[1:]] for row in rows if len(row) == 5}
    shown_counts = {"样本 samples": 2, "标签出自 labels by 导入 import": 2, "好评": 2, "差评": 0}
    assert {row: sum(splits) for row, (_, *splits) in counts.items()} == shown_counts
    assert {row: total for row, (total, *_) in counts.items()} == shown_counts
    assert "conflicting labels: 1" in shown
