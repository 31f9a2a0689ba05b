"""`wenlei library import` on what people have: looked at first, changed while read, killed in the middle."""

import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from app.cli import main
from app.library import importing
from app.library.readers import Row

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]
REVIEWS = "内容,类别\n房间很干净,好评\n早餐太少了,差评\n房间很干净,好评\n,差评\n"


def test_a_dry_run_tells_what_it_sees_and_writes_nothing(call: Call, home: Path) -> None:
    Path("a.csv").write_bytes(REVIEWS.encode("gb18030"))
    answer = call("import", "a.csv", "--dry-run")
    (table,) = answer["tables"]
    assert answer["dry_run"]
    assert {
        name: table[name] for name in ("name", "format", "encoding", "delimiter", "read", "duplicates", "rejected")
    } == {
        "name": "a.csv",
        "format": "csv",
        "encoding": "gb18030",
        "delimiter": ",",
        "read": 4,
        "duplicates": 1,
        "rejected": 1,
    }
    assert [(column["name"], column["role"]) for column in table["columns"]] == [("内容", "text"), ("类别", "label")]
    assert table["labels"] == {"好评": 2, "差评": 1}
    assert table["rows"][0] == {"line": 2, "text": "房间很干净", "pair": None, "labels": ["好评"], "actor": None}
    assert not home.exists()


def test_a_dry_run_knows_the_library(call: Call) -> None:
    Path("names.txt").write_text("好评\n差评\n", encoding="utf-8")
    Path("a.csv").write_text(REVIEWS, encoding="utf-8")
    Path("b.csv").write_text("内容,类别\n一般,中评\n", encoding="utf-8")
    call("import", "a.csv", "--text", "内容", "--label", "类别", "--label-names", "names.txt")
    (table,) = call("import", "b.csv", "--dry-run")["tables"]
    assert "'中评' is not in the taxonomy" in table["rejects"][0]


def test_a_dry_run_is_readable_without_json(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("a.csv").write_text(REVIEWS, encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["library", "import", "a.csv", "--dry-run", "--label", "门店"])
    assert "no column '门店'" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["library", "import", "a.csv", "--dry-run"])
    out = capsys.readouterr().out
    for part in ("a.csv: csv, utf-8", "房间很干净", "好评 2, 差评 1", "a.csv, line 5", "nothing was written"):
        assert part in out.replace("\n", " ")


def test_sheets_that_are_read_and_left_out_are_told(call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    book = openpyxl.Workbook()
    book.active.title = "评论"
    for row in (("text", "label"), ("很好", "好评")):
        book.active.append(row)
    book.create_sheet("说明").append(("作者",))
    book.save("a.xlsx")
    with pytest.raises(SystemExit):
        main(["library", "import", "a.xlsx", "--text", "text", "--label", "label"])
    err = capsys.readouterr().err
    assert "a.xlsx/评论: 导入此工作表 | this sheet is imported" in err
    assert "a.xlsx/说明: 未导入 | left out" in err
    assert call("import", "a.xlsx", "--sheet", "评论", "--text", "text", "--label", "label")["duplicates"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.csv",), "--text is missing: a.csv has the columns 内容, 类别"),
        (("a.csv", "--no-header", "--format", "csv"), "has the columns 0, 1"),
        (("a.csv", "--text", "内容", "--sheet", "评论"), "a.csv is no workbook"),
        (("a.csv", "--text", "内容", "--format", "folder"), "a.csv is no folder; leave out --format"),
        (("texts", "--format", "csv"), "texts is a folder, not csv"),
        (("team/reviews", "--format", "hf", "--text", "text"), "pip install datasets"),
    ],
)
def test_what_can_not_be_imported_is_said_in_one_line(
    refusal: Refusal, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)  # as where it is not installed
    Path("a.csv").write_text(REVIEWS, encoding="utf-8")
    Path("texts/好评").mkdir(parents=True)
    Path("texts/好评/1.txt").write_text("很好", encoding="utf-8")
    assert message in refusal("import", *arguments)


@pytest.mark.parametrize("name", ["a.csv", "texts"])
@pytest.mark.parametrize("change", ["append", "replace", "remove"])
def test_a_file_that_changes_while_it_is_read_is_refused(
    call: Call, refusal: Refusal, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    Path("a.csv").write_text("text,label\n很好,好评\n", encoding="utf-8")
    Path("texts/好评").mkdir(parents=True)
    Path("texts/好评/1.txt").write_text("很好", encoding="utf-8")
    written = Path("texts/好评/1.txt") if name == "texts" else Path(name)
    normal = Row.__new__

    def changing(*arguments: Any, **named: Any) -> Row:
        monkeypatch.setattr(Row, "__new__", normal)
        match change:
            case "append":
                with written.open("a", encoding="utf-8") as file:
                    file.write("很坏,差评\n")
            case "replace":
                other = written.with_suffix(".new")
                other.write_bytes(written.read_bytes())
                other.replace(written)
            case "remove":
                written.unlink()
        return normal(*arguments, **named)

    monkeypatch.setattr(Row, "__new__", changing)
    columns = ("--text", "text", "--label", "label")
    assert f"{name} changed while it was being read, nothing was written" in refusal("import", name, *columns)
    if change != "remove":
        assert call("import", name, *columns)["added"] >= 1


ROWS_AT_ONCE = 1000  # so that a short import has several batches to be killed in
TELLS_WHEN_IT_READS = f"""
import sys
from app.cli import main
from app.library import importing
from app.store.staging import Staging

importing.ROWS_AT_ONCE = {ROWS_AT_ONCE}

begin = Staging.__init__
def begin_and_tell(self, connection):
    begin(self, connection)
    print("reading", flush=True)

Staging.__init__ = begin_and_tell
main(sys.argv[1:])
"""


def test_an_import_killed_at_any_moment_ends_as_an_undisturbed_one(
    call: Call, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kill -9 at random moments between the first row and the end; then the same command again."""
    monkeypatch.setattr(importing, "ROWS_AT_ONCE", ROWS_AT_ONCE)
    n_rows = 4 * ROWS_AT_ONCE
    rows = "".join(f"第{row}位客人说{'好' * (row % 40)},{'好评' if row % 3 else '差评'}\n" for row in range(n_rows))
    Path("a.csv").write_text("text,label\n" + rows, encoding="utf-8")
    arguments = ("import", "a.csv", "--text", "text", "--label", "label")
    started = time.monotonic()
    call(*arguments, "--library", "undisturbed")
    seconds = time.monotonic() - started
    undisturbed = call("snapshot", "--library", "undisturbed")["snapshot"]
    command = [sys.executable, "-c", TELLS_WHEN_IT_READS, "library", *arguments, "--library", "killed"]
    killed = 0
    for quarter in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"reading\n"
            time.sleep((quarter + random.random()) / 4 * seconds)
            process.kill()
        killed += process.returncode == -signal.SIGKILL
    assert killed
    again = call(*arguments, "--library", "killed")
    assert again["read"] == again["added"] + again["duplicates"] == n_rows
    assert call("snapshot", "--library", "killed")["snapshot"] == undisturbed
    assert call(*arguments, "--library", "killed")["added"] == 0
    assert call("verify")["clean"]
