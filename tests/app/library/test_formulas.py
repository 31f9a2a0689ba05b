import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.library.formulas import guarded, unguarded


@pytest.mark.parametrize("cell", ["=1+1", "+86 123", "-5度", "@小明", "\t=1", "\r=1", "＝1", "'=1", "''@x"])
def test_what_a_spreadsheet_would_run_gets_an_apostrophe(cell: str) -> None:
    assert guarded(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["", "很好", "1-2", "'引号'", "''", " =1"])
def test_all_else_stays_as_it_is(cell: str) -> None:
    assert guarded(cell) == unguarded(cell) == cell


@given(st.text("'=+-@\t\r\n＝甲a", max_size=8))
def test_whatever_was_guarded_comes_back(cell: str) -> None:
    assert unguarded(guarded(cell)) == cell
    assert guarded(cell)[:1] not in tuple("=+-@\t\r\n＝")
