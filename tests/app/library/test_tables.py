"""Workbooks: broken or hostile ones are refused in one line, whatever part of them it is."""

import zipfile
from pathlib import Path

import openpyxl
import pytest

from app.library import workbooks
from app.library.sources import Source
from app.library.tables import Reading, open_tables
from model.errors import BadInput


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    book = openpyxl.Workbook()
    for row in (("text", "label"), ("很好", "好评"), ("很坏", "差评")):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    return tmp_path / "a.xlsx"


GOOD_ROWS = "<row><c><v>1</v></c></row>" * 5000  # more than is read to open the workbook


def change(path: Path, part: str, content: bytes) -> None:
    """Give a part of the workbook other content."""
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, old in parts.items():
            book.writestr(name, content if name == part else old)


def read(path: Path) -> int:
    with open_tables(Source(path), Reading()) as tables:
        return sum(len(list(table.rows)) for table in tables)


@pytest.mark.parametrize("content", [b"", b"<broken", b"<a>"])
@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/styles.xml", "[Content_Types].xml"])
def test_a_workbook_with_a_broken_part_is_refused(workbook: Path, part: str, content: bytes) -> None:
    assert read(workbook) == 2
    change(workbook, part, content)
    with pytest.raises(BadInput, match=r"a\.xlsx.*save it again as \.xlsx"):
        read(workbook)


@pytest.mark.parametrize("cells", ['<c r="A1" t="s"><v>99</v></c>', '<c r="A1"><v>eins</v></c>', "<c>"])
def test_a_sheet_that_breaks_inside_is_refused(workbook: Path, cells: str) -> None:
    namespace = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rows = f"<sheetData>{GOOD_ROWS}<row>{cells}</row></sheetData>"
    sheet = f'<worksheet xmlns="{namespace}"><dimension ref="A1"/>{rows}</worksheet>'
    change(workbook, "xl/worksheets/sheet1.xml", sheet.encode())
    with pytest.raises(BadInput, match=r"a\.xlsx: sheet 'Sheet' is broken.*save it again as \.xlsx"):
        read(workbook)


def test_a_workbook_that_unpacks_to_an_absurd_size_is_refused(workbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbooks, "HARMLESS_BYTES", 1 << 20)
    change(workbook, "xl/styles.xml", b" " * (8 << 20))
    with pytest.raises(BadInput, match="times its size"):
        read(workbook)
