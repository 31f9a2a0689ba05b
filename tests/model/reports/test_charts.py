"""Charts: where points and lines stand, and the numbers on the axes."""

import pytest

from model.reports.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, chart, spans
from model.reports.drawing import draw


def test_a_line_runs_from_corner_to_corner_of_given_ranges() -> None:
    made = chart({"lines": [{"name": "一", "points": [[0, 0], [1, 1]]}], "x_range": [0, 1], "y_range": [0, 1]})
    assert made is not None
    assert made.lines[0].points == f"{float(LEFT)},{float(HEIGHT - BOTTOM)} {float(WIDTH - RIGHT)},{float(TOP)}"
    assert [mark.text for mark in made.x_marks] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]


def test_on_a_logarithmic_axis_equal_factors_are_equal_distances() -> None:
    dots = [{"name": f"{x}", "x": x, "y": 1.0} for x in (1.0, 10.0, 100.0)]
    made = chart({"points": dots, "log_x": True})
    assert made is not None
    first, second, third = (point.x for point in made.points)
    assert second - first == pytest.approx(third - second, abs=0.02)
    assert {"1", "10", "100"} <= {mark.text for mark in made.x_marks}


def test_every_point_is_inside_of_its_axes_though_all_are_equal() -> None:
    made = chart({"points": [{"name": "一", "x": 3.0, "y": 0.0}, {"name": "二", "x": 3.0, "y": 0.0}]})
    assert made is not None
    for point in made.points:
        assert LEFT <= point.x <= WIDTH - RIGHT
        assert TOP <= point.y <= HEIGHT - BOTTOM


def test_the_diagonal_is_where_both_axes_agree() -> None:
    plot = {"lines": [{"name": "一", "points": [[0.2, 0.1]]}], "x_range": [0, 1], "y_range": [0, 0.5], "diagonal": True}
    made = chart(plot)
    assert made is not None
    assert made.diagonal == (LEFT, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2, TOP)


def test_intervals_share_a_scale() -> None:
    one, other = spans([["一", 80.0, 82.0, 84.0], ["二", 83.0, 84.0, 90.0]], "")
    assert 0 < one.low < one.middle < one.high == other.middle < other.high < 100
    assert one.value == "82.00 (80.00–84.00)"


def test_a_plot_without_anything_is_not_drawn() -> None:
    assert draw([{"title": "空", "lines": []}, {"title": "空", "spans": []}]) == []


def test_a_matrix_is_shaded_by_its_weights() -> None:
    (made,) = draw([{"matrix": {"columns": ["甲"], "rows": ["一", "二"], "values": [[9], [1]], "weights": [[0], [5]]}}])
    assert [(cell.text, cell.shade) for _, cells in made.rows for cell in cells] == [("9", 0), ("1", 6)]
