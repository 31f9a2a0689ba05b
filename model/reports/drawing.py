"""Plots, as `model.reports.plots` has them, measured out for SVG and tables."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from model.reports.charts import Chart, Span, chart, spans

WIDTH, HEIGHT = 640, 170  # of a histogram, in units of the drawing
AXIS = 22  # below the columns
HEADROOM = 16  # above them, for the mark's name
SHADES = 6  # of a matrix, 0 for nothing
TICKS = 6
SMALL = 25.0  # per cent: bars that are all shorter are drawn against the longest of them
FRAME = {"width": WIDTH, "height": HEIGHT, "base": HEIGHT - AXIS}


class Bar(NamedTuple):
    """length: 0 to 100."""

    name: str
    length: float
    value: str


class Column(NamedTuple):
    """A column of a histogram. tip: what it stands for."""

    x: float
    y: float
    width: float
    height: float
    tip: str


class Tick(NamedTuple):
    """A number on the axis."""

    x: float
    text: str


class Cell(NamedTuple):
    """Of a matrix. shade: 0 to `SHADES`."""

    text: str
    shade: int


class Drawing(NamedTuple):
    """One plot. What it is not has no parts."""

    title: str
    title_en: str
    bars: list[Bar]
    columns: list[Column]
    ticks: list[Tick]
    x: str
    mark: Tick | None
    header: list[str]
    rows: list[tuple[str, list[Cell]]]
    chart: Chart | None
    spans: list[Span]


def draw(plots: Iterable[Mapping[str, Any]]) -> list[Drawing]:
    """The plots that have something to show."""
    drawings = [_draw(plot) for plot in plots]
    return [
        drawing
        for drawing in drawings
        if any((drawing.bars, drawing.columns, drawing.rows, drawing.chart, drawing.spans))
    ]


def number(value: float) -> str:
    """As people read it."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _draw(plot: Mapping[str, Any]) -> Drawing:
    histogram, matrix = plot.get("histogram", {}), plot.get("matrix", {})
    edges = histogram.get("edges", [])
    mark = plot.get("mark")
    return Drawing(
        title=plot.get("title", ""),
        title_en=plot.get("title_en", ""),
        bars=_bars(plot.get("bars", []), plot.get("unit", "")),
        columns=_columns(edges, histogram.get("counts", [])),
        ticks=_ticks(edges),
        x=plot.get("x", ""),
        mark=None
        if mark is None or not edges or not edges[0] <= mark <= edges[-1]
        else Tick(_place(mark, edges), plot.get("mark_name") or number(mark)),
        header=list(matrix.get("columns", [])),
        rows=_rows(matrix),
        chart=chart(plot),
        spans=spans(plot.get("spans", []), plot.get("unit", "")),
    )


def _bars(values: Iterable[tuple[str, float]], unit: str) -> list[Bar]:
    listed = [(str(name), float(value)) for name, value in values]
    longest = max((value for _, value in listed), default=0.0)
    if unit == "%" and longest >= SMALL:
        longest = 100.0
    return [
        Bar(name, round(100 * value / longest, 2) if longest else 0.0, f"{number(value)}{unit}")
        for name, value in listed
    ]


def _columns(edges: list[float], counts: list[int]) -> list[Column]:
    highest = max(counts, default=0)
    if not highest:
        return []
    found = []
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        left, right = _place(low, edges), _place(high, edges)
        # what is there at all has to be seen
        height = max(1.5, (HEIGHT - AXIS - HEADROOM) * count / highest) if count else 0.0
        tip = f"{number(low)} – {number(high)}: {number(count)}"
        found.append(
            Column(left, round(HEIGHT - AXIS - height, 2), round(max(right - left - 1, 1), 2), round(height, 2), tip)
        )
    return found


def _ticks(edges: list[float]) -> list[Tick]:
    if not edges:
        return []
    step = max(1, (len(edges) - 1) // TICKS)
    return [Tick(_place(edge, edges), number(edge)) for edge in edges[::step]]


def _place(value: float, edges: list[float]) -> float:
    return round(WIDTH * (value - edges[0]) / ((edges[-1] - edges[0]) or 1), 2)


def _rows(matrix: Mapping[str, Any]) -> list[tuple[str, list[Cell]]]:
    """Cells are shaded by their values, or by `weights` where the matrix has them."""
    values = matrix.get("values", [])
    weights = matrix.get("weights", values)
    highest = max((weight for row in weights for weight in row if weight is not None), default=0) or 1
    return [
        (name, [_cell(value, weight, highest) for value, weight in zip(row, its, strict=True)])
        for name, row, its in zip(matrix.get("rows", []), values, weights, strict=False)
    ]


def _cell(value: float | None, weight: float | None, highest: float) -> Cell:
    shade = 0 if weight is None else max(0, min(SHADES, round(SHADES * weight / highest)))
    return Cell("", 0) if value is None else Cell(number(value), shade)
