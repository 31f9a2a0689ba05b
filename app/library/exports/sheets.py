"""Formats that spreadsheets open, in which no cell may become a formula: CSV and Excel."""

import csv
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
from openpyxl.cell import WriteOnlyCell
from openpyxl.cell.cell import ERROR_CODES

from app.library.exports.content import Content
from app.library.formulas import guarded, is_risky
from model.errors import BadInput

EXCEL_ROWS = 1_048_576
EXCEL_CELL_CHARS = 32_767  # in UTF-16
# XML can't hold them, not even escaped.
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def write_csv(content: Content, path: Path) -> None:
    """Comma-separated, in UTF-8 with the mark by which Excel knows it; cells like formulas are guarded."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(content.columns)
        writer.writerows([guarded(cell) for cell in content.cells(sample)] for sample in content.samples())


def write_xlsx(content: Content, path: Path) -> None:
    """One sheet; every cell is of type text, those like formulas also by their format, so that they stay as they are.

    Raises:
        BadInput: there are more rows, or longer or other cells, than Excel holds.
    """
    if content.total >= EXCEL_ROWS:
        raise BadInput(
            f"an Excel sheet holds {EXCEL_ROWS - 1:,} samples and these are {content.total:,}; take csv or parquet, "
            "or --split"
        )
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("samples")
    sheet.freeze_panes = "A2"
    with closing(sheet):
        sheet.append(list(content.columns))
        for sample in content.samples():
            sheet.append([_cell(sheet, cell, sample.id) for cell in content.cells(sample)])
    book.save(path)


def _cell(sheet: Any, text: str, sample_id: str) -> Any:
    if 2 * len(text) > EXCEL_CELL_CHARS and len(text.encode("utf-16-le")) > 2 * EXCEL_CELL_CHARS:
        raise BadInput(f"sample {sample_id}: an Excel cell holds {EXCEL_CELL_CHARS:,} characters; take csv or jsonl")
    if odd := _NOT_IN_XML.search(text):
        raise BadInput(f"sample {sample_id}: Excel can't hold the character U+{ord(odd[0]):04X}; take csv or jsonl")
    if not is_risky(text) and text not in ERROR_CODES:
        return text
    cell = WriteOnlyCell(sheet, text)
    cell.data_type = "s"
    cell.number_format = "@"  # stays a text when somebody edits it
    cell.quotePrefix = True
    return cell
