"""Readers: rows with true line numbers out of lines, broken ones told apart."""

import pytest

from app.library.readers import Broken, Row, csv_rows, json_rows, sheet_rows, tab_rows


def read_csv(text: str) -> list[Row | Broken]:
    return list(csv_rows(text.splitlines(keepends=True), delimiter=","))


def test_quoted_cells_hold_commas_and_line_breaks_and_lines_are_counted_as_in_the_file() -> None:
    rows = read_csv('text,label\n"好, 很好\n真的",好评\n\n"说""不错""",好评\n')
    assert rows == [
        Row(1, ["text", "label"]),
        Row(2, ["好, 很好\n真的", "好评"]),
        Row(5, ['说"不错"', "好评"]),
    ]


@pytest.mark.parametrize("last", ["", '好"吃",好评\n'])
def test_a_quote_that_nothing_closes_costs_one_row_not_the_rest(last: str) -> None:
    lines = ["text,label\n", '"没有闭合,差评\n', *(f"第{number}条,好评\n" for number in range(50)), last]
    rows = list(csv_rows(lines, delimiter=","))
    broken = [row for row in rows if isinstance(row, Broken)]
    assert [(row.line, row.raw) for row in broken] == [(2, '"没有闭合,差评\n')]
    assert "quote" in broken[0].reason
    assert Row(52, ["第49条", "好评"]) in rows


def test_a_quote_left_open_in_the_last_line_is_told() -> None:
    assert read_csv('text,label\n好,好评\n坏,"差评\n')[2] == Broken(
        3, "a quote opens a cell and nothing closes it", '坏,"差评\n'
    )


def test_a_runaway_quote_in_a_long_file_is_given_up_early() -> None:
    lines = ["text,label\n", '"没有闭合,差评\n', *(f"{'长' * 60}{number},好评\n" for number in range(5000))]
    rows = list(csv_rows(lines, delimiter=","))
    assert sum(isinstance(row, Broken) for row in rows) == 1
    assert len(rows) == 5002


def test_a_row_of_another_width_is_broken() -> None:
    assert read_csv("a,b\n一,二,三\n四,五\n")[1:] == [
        Broken(2, "3 columns instead of 2", "一,二,三\n"),
        Row(3, ["四", "五"]),
    ]


def test_a_cell_larger_than_any_text_is_broken_and_the_next_line_is_read() -> None:
    rows = read_csv(f"text,label\n{'长' * 200_000},好评\n短,好评\n")
    assert isinstance(rows[1], Broken)
    assert rows[2] == Row(3, ["短", "好评"])


def test_tabs_part_cells_and_quotes_are_characters() -> None:
    assert list(tab_rows(['"双城记"上映\t7\r\n', "\n", '"未闭合\t7\n', "没有标签\n"])) == [
        Row(1, ['"双城记"上映', "7"]),
        Row(3, ['"未闭合', "7"]),
        Broken(4, "1 columns instead of 2", "没有标签\n"),
    ]


def test_json_lines_that_are_no_object_are_broken() -> None:
    rows = list(json_rows(['{"text": "好"}\n', "{坏\n", "[1]\n", "[" * 100_000]))
    assert rows[0] == Row(1, {"text": "好"})
    assert [row.line for row in rows[1:] if isinstance(row, Broken)] == [2, 3, 4]


def test_rows_of_a_sheet_may_lack_empty_cells_but_not_have_more_than_the_header() -> None:
    rows = list(sheet_rows([("text", "label"), ("好",), (None,), ("好", "好评", None), ("好", "好评", "多")]))
    assert rows == [
        Row(1, ["text", "label"]),
        Row(2, ["好", None]),
        Row(4, ["好", "好评"]),
        Broken(5, "3 columns instead of 2", ("好", "好评", "多")),
    ]
