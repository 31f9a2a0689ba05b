"""Charts with two axes, and intervals beside each other, measured out for SVG."""

from collections.abc import Iterable, Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 12, 44  # of the axes, from the edges of the drawing
TICKS = 5
COLOURS = 8  # of series; more begin again
MARGIN = 0.06  # of a range, left free beside the outermost point
FRAME = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": WIDTH - RIGHT, "top": TOP, "bottom": HEIGHT - BOTTOM}


class Point(NamedTuple):
    """A dot with its name. right: the name stands to its right, else to its left."""

    x: float
    y: float
    name: str
    tip: str
    colour: int
    right: bool


class Line(NamedTuple):
    """points: as SVG's polyline has them."""

    points: str
    name: str
    colour: int


class Mark(NamedTuple):
    """A number on an axis, where it stands there."""

    at: float
    text: str


class Chart(NamedTuple):
    """Points or lines. diagonal: x1, y1, x2, y2 of the line on which both axes agree."""

    points: list[Point]
    lines: list[Line]
    x: str
    y: str
    x_marks: list[Mark]
    y_marks: list[Mark]
    diagonal: tuple[float, float, float, float] | None


class Span(NamedTuple):
    """An interval. low, middle, high: 0 to 100, along a scale that all intervals share."""

    name: str
    low: float
    middle: float
    high: float
    value: str


class Axis(NamedTuple):
    """From `low` to `high`, drawn from `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def place(self, value: float) -> float:
        """Where `value` stands."""
        low, high, at = (
            (log10(each) for each in (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        )
        return round(self.begin + (self.end - self.begin) * (at - low) / ((high - low) or 1), 2)

    def marks(self) -> list[Mark]:
        """Round numbers along it."""
        return [Mark(self.place(value), _short(value)) for value in (self._decades() if self.log else self._steps())]

    def _steps(self) -> list[float]:
        rough = (self.high - self.low) / TICKS
        power = 10 ** floor(log10(rough)) if rough > 0 else 1.0
        step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
        first = int(-(-self.low // step))
        return [round(number * step, 10) for number in range(first, int(self.high / step + 1e-9) + 1)]

    def _decades(self) -> list[float]:
        powers = range(floor(log10(self.low)), floor(log10(self.high)) + 1)
        return [
            factor * 10.0**power
            for power in powers
            for factor in (1, 2, 5)
            if self.low <= factor * 10.0**power <= self.high
        ]


def chart(plot: Mapping[str, Any]) -> Chart | None:
    """The chart of a plot that has `points`, each with name, x and y, or `lines`, each with name and points.

    None where it has neither.
    """
    lines = plot.get("lines", [])
    dots = plot.get("points", [])
    every = [(x, y) for line in lines for x, y in line["points"]] + [(dot["x"], dot["y"]) for dot in dots]
    if not every:
        return None
    xs, ys = zip(*every, strict=True)
    across = _axis(plot.get("x_range"), xs, LEFT, WIDTH - RIGHT, log=bool(plot.get("log_x")))
    up = _axis(plot.get("y_range"), ys, HEIGHT - BOTTOM, TOP)
    low, high = max(across.low, up.low), min(across.high, up.high)
    return Chart(
        points=[_point(dot, number, across, up) for number, dot in enumerate(dots)],
        lines=[
            Line(
                " ".join(f"{across.place(x)},{up.place(y)}" for x, y in line["points"]), line["name"], number % COLOURS
            )
            for number, line in enumerate(lines)
        ],
        x=plot.get("x", ""),
        y=plot.get("y", ""),
        x_marks=across.marks(),
        y_marks=up.marks(),
        diagonal=(across.place(low), up.place(low), across.place(high), up.place(high))
        if plot.get("diagonal")
        else None,
    )


def spans(values: Sequence[Sequence[Any]], unit: str) -> list[Span]:
    """Of name, low, middle, high each, on one scale that begins and ends a little beyond them."""
    if not values:
        return []
    axis = _axis(None, [edge for _, low, _, high in values for edge in (low, high)], 0, 100)
    return [
        Span(
            str(name),
            axis.place(low),
            axis.place(middle),
            axis.place(high),
            f"{middle:.2f}{unit} ({low:.2f}–{high:.2f})",
        )
        for name, low, middle, high in values
    ]


def _axis(
    given: Sequence[float] | None, values: Iterable[float], begin: float, end: float, *, log: bool = False
) -> Axis:
    if given:
        return Axis(given[0], given[1], begin, end, log)
    known = list(values)
    low, high = min(known), max(known)
    if log:
        return Axis(low / 1.5, high * 1.5, begin, end, log)
    free = MARGIN * (high - low) or abs(high) * MARGIN or 1.0
    return Axis(low - free, high + free, begin, end)


def _point(dot: Mapping[str, Any], number: int, across: Axis, up: Axis) -> Point:
    x, y = across.place(dot["x"]), up.place(dot["y"])
    return Point(x, y, dot["name"], dot.get("tip", dot["name"]), number % COLOURS, x < WIDTH * 0.6)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
