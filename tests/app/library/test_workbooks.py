"""Workbooks as people make them: several sheets, merged cells, formulas."""

import io
import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from workshop import Workshop

from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.tables import Reading
from app.store.tables import sources
from model.errors import BadInput


def save(book: Any, path: Path) -> Path:
    book.save(path)
    return path


@pytest.fixture
def branches(workshop: Workshop) -> Path:
    """A workbook with a sheet for each branch, one of notes, and an empty one."""
    book = openpyxl.Workbook()
    book.active.title = "北京店"
    for title, rows in {
        "北京店": [("text", "label"), ("房间很干净", "好评"), ("早餐太少", "差评")],
        "说明": [("作者", "日期"), ("王", "今天")],
        "上海店": [("门店", "label", "text"), ("徐汇", "好评", "前台热情")],
    }.items():
        sheet = book[title] if title in book.sheetnames else book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.create_sheet("空")
    return save(book, workshop.home / "门店.xlsx")


def test_all_sheets_that_have_the_columns_are_imported(workshop: Workshop, branches: Path) -> None:
    read, skipped = [], []
    imported = import_files(
        workshop.engine,
        [branches],
        options=ImportOptions(library="default"),
        columns=Columns(text="text", label="label"),
        reading=Reading(),
        rejects_folder=workshop.home / "rejects",
        on_table=lambda table: read.append(table.name),
        on_skipped=skipped.append,
    )
    assert (imported.read, imported.added) == (3, 3)
    assert (read, skipped) == (["门店.xlsx/北京店", "门店.xlsx/上海店"], ["门店.xlsx/说明"])
    assert workshop.count(sources) == 2


def test_one_sheet_can_be_asked_for(workshop: Workshop, branches: Path) -> None:
    assert workshop.load(branches, sheet="上海店").added == 1
    with pytest.raises(BadInput, match="no sheet '广州店'; its sheets: 北京店, 说明, 上海店, 空"):
        workshop.load(branches, sheet="广州店")
    with pytest.raises(BadInput, match=r"门店\.xlsx has no column 'text'; its columns: 作者, 日期"):
        workshop.load(branches, sheet="说明")
    with pytest.raises(BadInput, match=r"a\.csv is no workbook.*leave out --sheet"):
        workshop.load(workshop.write("a.csv", "text,label\n好,x\n"), sheet="上海店")
    with pytest.raises(BadInput, match="no column '正文'"):
        workshop.load(branches, text="正文")


def test_cells_merged_downwards_hold_for_each_of_their_rows(workshop: Workshop) -> None:
    book = openpyxl.Workbook()
    for row in (("label", "text"), ("好评", "干净"), (None, "安静"), (None, "方便"), ("差评", "太吵"), ("小结", None)):
        book.active.append(row)
    book.active.merge_cells("A2:A4")
    book.active.merge_cells("A6:B6")
    imported = workshop.load(save(book, workshop.home / "a.xlsx"))
    assert (imported.added, imported.rejected) == (4, 1)  # a caption merged across is no text
    assert {text: sample.labels for text, sample in workshop.samples().items()} == {
        "干净": ("好评",),
        "安静": ("好评",),
        "方便": ("好评",),
        "太吵": ("差评",),
    }


def test_a_formula_without_a_value_is_rejected_with_its_cell(workshop: Workshop) -> None:
    book = openpyxl.Workbook()
    for row in (("text", "label", "长度"), ("很好", "好评", "=LEN(A2)"), ("=A2", "好评", 2), ("很坏", "差评", "=1+1")):
        book.active.append(row)
    imported = workshop.load(save(book, workshop.home / "a.xlsx"))
    assert (imported.added, imported.rejected) == (2, 1)  # what is not asked for may be anything
    assert imported.rejects_file is not None
    reason = imported.rejects_file.read_text(encoding="utf-8")
    assert "cell A3 holds a formula without a computed value; open the workbook" in reason


def test_a_computed_formula_counts_as_its_value(workshop: Workshop) -> None:
    book = openpyxl.Workbook()
    for row in (("text", "label"), ("=A9", "好评")):
        book.active.append(row)
    stream = io.BytesIO()
    book.save(stream)
    path = workshop.home / "a.xlsx"
    with zipfile.ZipFile(stream) as parts, zipfile.ZipFile(path, "w") as computed:
        for name in parts.namelist():
            content = parts.read(name).replace(
                b'<c r="A2"><f>A9</f><v/></c>', b'<c r="A2" t="str"><f>A9</f><v>ok</v></c>'
            )
            content = content.replace(b'<c r="A2"><f>A9</f><v /></c>', b'<c r="A2" t="str"><f>A9</f><v>ok</v></c>')
            computed.writestr(name, content)
    workshop.load(path)
    assert [*workshop.samples()] == ["ok"]
