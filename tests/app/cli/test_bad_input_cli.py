"""Absurd files and full disks, from the command line: one line says what, where and what to do, and nothing is left."""

import json
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.cli import main

REVIEW = "房间很干净早餐也好"
COLUMNS = ("--text", "text", "--label", "label")
# `wenlei` that may use no more address space than its first argument says in MiB.
CONFINED = """
import resource, sys
from app.cli import main
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) << 20,) * 2)
main(sys.argv[2:])
"""
MEMORY = 1600  # MiB of address space; most of it is reserved by libraries and never used


class Confined:
    """A home on SQLite, with a command line that runs out of memory or disk."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def refusal_for_memory(self, *arguments: str) -> str:
        """What a process says that has little memory: one of its own, for that can't be given back."""
        ended = subprocess.run(
            [sys.executable, "-c", CONFINED, str(MEMORY), "library", *arguments, "--json"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        return _refusal(ended.returncode, ended.stdout, ended.stderr)

    def refusal(self, *arguments: str, disk: float | None = None) -> str:
        """What is said in refusal; `disk`: MiB that a file may have."""
        with _files_no_larger_than(disk):
            return _refusal(*self._run(*arguments))

    def answer(self, *arguments: str) -> dict[str, object]:
        code, out, err = self._run(*arguments)
        assert code == 0, err
        answer: dict[str, object] = json.loads(out)
        return answer

    def _run(self, *arguments: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["library", *arguments, "--json"])
        return ended.value.code, *self._capture.readouterr()


def _refusal(code: object, out: str, err: str) -> str:
    assert (code, out) == (2, ""), err
    assert "Traceback" not in err
    return err.strip().splitlines()[-1]


@contextmanager
def _files_no_larger_than(mib: float | None) -> Iterator[None]:
    """As on a disk that is full, a file of more can't be written in the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if mib is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(mib * (1 << 20)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def confined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Confined:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("WENLEI_DATABASE_URL", raising=False)
    return Confined(tmp_path, capsys)


def _huge(path: Path, before: str, unit: str, after: str, *, mib: int = 100) -> None:
    block = unit.encode() * ((1 << 20) // len(unit.encode()) + 1)
    with path.open("wb") as file:
        file.write(before.encode())
        for _ in range(mib):
            file.write(block)
        file.write(after.encode())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", ("text,label\n", REVIEW, ",好评\n"), "a.csv goes on for 8 MiB without a line break"),
        ("a.txt", ("", "\0", ""), "a.txt goes on for 8 MiB without a line break"),
        (
            "a.json",
            ('[{"text": "', REVIEW, '", "label": "好评"}]'),
            "a.json: after object 0 comes one with more than 4",
        ),
        ("a.json", ('{"text": "', REVIEW, '"}'), "a.json: after object 0 comes one with more than 4 MiB"),
        ("a.json", ('[{"text": "好", "k": [1', ",1", "]}]"), "a.json: after object 0 comes one with more than 4 MiB"),
        ("a.json", ('[{"text": ', "[", "]}]"), "more than 200 lists and objects inside each other"),
        ("a.json", ('{"a": ', '{"a": ', "1}"), "more than 200 lists and objects inside each other"),
    ],
)
def test_a_huge_file_without_shape_is_refused_in_flat_memory(
    confined: Confined, name: str, content: tuple[str, str, str], message: str
) -> None:
    _huge(confined.folder / name, *content)
    assert message in confined.refusal_for_memory("import", name, *COLUMNS)
    assert not (confined.folder / "home" / "rejects").exists()


def test_a_huge_file_that_is_no_text_is_refused_in_flat_memory(confined: Confined) -> None:
    with (confined.folder / "a.csv").open("wb") as file:
        block = os.urandom(1 << 20)
        for _ in range(100):
            file.write(block)
    assert "a.csv is not text in any encoding" in confined.refusal_for_memory("import", "a.csv", *COLUMNS)


@pytest.mark.parametrize(
    ("part", "content", "message"),
    [
        ("xl/sharedStrings.xml", "<si><t>a</t></si>" * (4 << 20), "unpacks to more than 50 times its size"),
        (
            "xl/worksheets/sheet1.xml",
            '<sheetData><row r="999999999"/></sheetData>',
            "row 999999999 is beyond 1,048,576",
        ),
    ],
)
def test_a_workbook_that_would_fill_the_memory_is_refused(
    confined: Confined, part: str, content: str, message: str
) -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(("text", "label"))
    book.save(confined.folder / "good.xlsx")
    names = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    root = "sst" if "shared" in part else "worksheet"
    with (
        zipfile.ZipFile(confined.folder / "good.xlsx") as parts,
        zipfile.ZipFile(confined.folder / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as bomb,
    ):
        for name in {*parts.namelist(), part}:
            bomb.writestr(name, f'<{root} xmlns="{names}">{content}</{root}>' if name == part else parts.read(name))
    assert message in confined.refusal_for_memory("import", "bomb.xlsx", *COLUMNS)


def test_a_disk_that_is_full_in_mid_import_changes_nothing(confined: Confined) -> None:
    _write_reviews(confined.folder / "a.csv")
    confined.answer("import", "a.csv", *COLUMNS, "--library", "before")
    size = (confined.folder / "home" / "wenlei.db").stat().st_size / (1 << 20)
    told = confined.refusal("import", "a.csv", *COLUMNS, "--library", "full", disk=size + 0.1)
    assert f"{confined.folder}/home/wenlei.db" in told
    assert "look at its disk, free some space and run it again, nothing was changed" in told
    assert confined.answer("verify")["clean"]
    assert "there is no library 'full'" in confined.refusal("snapshot", "--library", "full")
    assert confined.answer("import", "a.csv", *COLUMNS, "--library", "full")["added"] == 3000


def test_a_disk_that_is_full_in_mid_snapshot_leaves_nothing(confined: Confined) -> None:
    _write_reviews(confined.folder / "a.csv")
    confined.answer("import", "a.csv", *COLUMNS)
    snapshots = confined.folder / "home" / "snapshots" / "default"
    told = confined.refusal("snapshot", disk=0.1)
    assert f"{snapshots}: File too large; free some space or take another place, nothing was left here" in told
    assert list(snapshots.iterdir()) == []
    assert confined.answer("snapshots")["snapshots"] == []
    assert confined.answer("verify")["clean"]
    frozen = confined.answer("snapshot")["snapshot"]
    assert [path.name for path in snapshots.iterdir()] == [frozen]


def test_a_disk_that_is_full_in_mid_export_leaves_nothing(confined: Confined) -> None:
    _write_reviews(confined.folder / "a.csv")
    confined.answer("import", "a.csv", *COLUMNS)
    frozen = str(confined.answer("snapshot")["snapshot"])
    before = sorted(confined.folder.rglob("*"))
    for export in ("jsonl", "xlsx", "parquet", "hf"):
        command = ("export", frozen, "--format", export, "--out", f"out.{export}")
        told = confined.refusal(*command, disk=0.1)
        assert f"{confined.folder}: File too large; free some space or take another place" in told
        assert sorted(confined.folder.rglob("*")) == before
    confined.answer(*command)
    assert (confined.folder / "out.hf").is_dir()


def _write_reviews(path: Path) -> None:
    """3000 reviews that hardly shrink when packed."""
    texts = (
        f"第{row}位客人说{''.join(chr(0x4E00 + row * step * 7919 % 5000) for step in range(1, 40))}"
        for row in range(3000)
    )
    path.write_text("text,label\n" + "".join(f"{text},好评\n" for text in texts), encoding="utf-8")
