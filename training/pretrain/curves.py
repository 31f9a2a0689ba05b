"""The curves of a pretraining: a line of JSON for every point, and a picture of them, drawn without a plot library.

`curves.jsonl` has two kinds of lines: of steps (loss, its parts, learning rate, tokens a second) and of evaluations
(`held_out`). A run that goes on from a checkpoint cuts the file at that step and writes on.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from model.files import write_text

WIDTH, HEIGHT = 720, 300  # of one panel, pixels
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 40, 50  # margins for labels
COLOURS = ("#1f6fb2", "#c2571a", "#3a8f3a", "#8a4fa8")


@dataclass(slots=True)
class CurveFile:
    """`curves.jsonl`, written a line at a time."""

    path: Path
    points: list[dict[str, Any]] = field(default_factory=list)

    def cut_after(self, step: int | None) -> None:
        """Keep what was written up to `step`; nothing if it is None."""
        self.points = []
        if step is not None and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines()
            self.points = [point for line in lines if (point := _parse(line)) and point["step"] <= step]
        write_text(self.path, "".join(map(_line, self.points)))

    def add(self, point: dict[str, Any]) -> None:
        """Write one point."""
        self.points.append(point)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(point))


def _line(point: dict[str, Any]) -> str:
    return json.dumps(point, ensure_ascii=False) + "\n"


def _parse(line: str) -> dict[str, Any] | None:
    """The point, or None of a line that a killed process wrote half of."""
    try:
        point: dict[str, Any] = json.loads(line)
    except ValueError:
        return None
    return point


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a panel: its name, and points (step, value)."""

    name: str
    points: list[tuple[float, float]]


def draw(points: Sequence[dict[str, Any]], *, title: str, figure: str) -> str:
    """The SVG of a run's curves: its losses, and its held-out `figure`, against steps and minutes."""
    steps = [point for point in points if "loss" in point]
    held_out = [point for point in points if "held_out" in point]
    names = ["loss", *(steps[-1]["parts"] if steps else ())]
    if len(names) == 2:  # a single part is the loss itself
        names = names[:1]
    losses = [
        Series(name, [(p["step"], p["loss"] if name == "loss" else p["parts"][name]) for p in steps]) for name in names
    ]
    judged = [Series(figure, [(p["step"], p["held_out"][figure]) for p in held_out if figure in p["held_out"]])]
    clock = [(point["step"], point["seconds"] / 60) for point in points if "seconds" in point]
    panels = [
        _panel(losses, label="训练损失（奈特） training loss (nats)", clock=clock, top=30),
        _panel(judged, label=f"留出文本 held-out {figure.replace('_', ' ')}", clock=clock, top=30 + HEIGHT),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {2 * HEIGHT + 30}" '
        f'width="{WIDTH}" height="{2 * HEIGHT + 30}" font-family="sans-serif" font-size="12">\n'
        f'<rect width="100%" height="100%" fill="white"/>\n'
        f'<text x="{WIDTH / 2}" y="22" text-anchor="middle" font-size="15">{escape(title)}</text>\n'
        + "\n".join(panels)
        + "\n</svg>\n"
    )


def _panel(series: Sequence[Series], *, label: str, clock: Sequence[tuple[float, float]], top: int) -> str:
    values = [value for line in series for _, value in line.points if math.isfinite(value)]
    last = max((step for line in series for step, _ in line.points), default=1) or 1
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    ticks = _ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(step: float) -> float:
        return LEFT + across * step / last

    def y(value: float) -> float:
        return top + TOP + down * (high - value) / ((high - low) or 1)

    parts = [f'<text x="{LEFT}" y="{top + TOP - 14}" font-weight="bold">{escape(label)}</text>']
    for tick in ticks:
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in _ticks(0, last):
        if tick > last:
            continue
        minutes = max((minute for step, minute in clock if step <= tick), default=0.0)
        parts.append(f'<text x="{x(tick):.1f}" y="{top + HEIGHT - BOTTOM + 16}" text-anchor="middle">{tick:g}</text>')
        parts.append(
            f'<text x="{x(tick):.1f}" y="{top + HEIGHT - BOTTOM + 31}" text-anchor="middle" fill="#777">'
            f"{minutes:.1f}</text>"
        )
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="{top + HEIGHT - 6}" text-anchor="end" fill="#777">'
        "步数 steps · 分钟 minutes</text>"
    )
    for number, line in enumerate(series):
        colour = COLOURS[number % len(COLOURS)]
        places = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in line.points if math.isfinite(value))
        parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        parts.append(
            f'<text x="{WIDTH - RIGHT}" y="{top + TOP - 14 + 14 * number}" text-anchor="end" fill="{colour}">'
            f"{escape(line.name)}</text>"
        )
    return "\n".join(parts)


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers that span `low` to `high`."""
    width = (high - low) or abs(high) or 1.0
    power = 10 ** math.floor(math.log10(width / about))
    step = next(power * factor for factor in (1, 2, 5, 10) if width / (power * factor) <= about)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [round(number * step, 10) for number in range(first, last + 1)]
