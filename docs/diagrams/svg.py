"""Boxes, arrows and labels as SVG: just what draw.py needs, and a check that no label leaves its place.

Lengths are pixels, y grows downwards. The background is part of a drawing, so that it reads on light and dark pages.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal
from xml.sax.saxutils import escape

FONTS = "'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"
PAPER, INK, FAINT = "#fdfcf8", "#26241f", "#6b675c"
# What a box stands for → its fill and its edge
COLOURS = {
    "text": ("#f0eee6", "#8a8676"),
    "table": ("#dff0dc", "#4a8a43"),
    "layer": ("#dbe8f7", "#3b6ea5"),
    "lstm": ("#e9e0f5", "#7a55a8"),
    "answer": ("#fde6cf", "#b86a1e"),
    "mark": ("#f8d6d3", "#b04040"),
}
RED = COLOURS["mark"][1]
Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Label:
    """Where a line of text lies."""

    text: str
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "Label") -> bool:
        """Whether both cover one place."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 1 and down > 1


@dataclass(slots=True)
class Drawing:
    """A picture of `width` x `height` with a title."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.text(24, 32, self.title, anchor="start", size=17, bold=True)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        anchor: Anchor = "middle",
        size: float = 13,
        bold: bool = False,
        colour: str = INK,
    ) -> None:
        """One line, its baseline at y."""
        width = width_of(text, size)
        left = x - {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self.labels.append(Label(text, left, y - 0.8 * size, left + width, y + 0.2 * size))
        weight = ' font-weight="bold"' if bold else ""
        shade = "" if colour == INK else f' fill="{colour}"'
        place = "" if anchor == "middle" else f' text-anchor="{anchor}"'
        self.parts.append(f'<text x="{x:g}" y="{y:g}" font-size="{size:g}"{place}{weight}{shade}>{escape(text)}</text>')

    def note(self, x: float, y: float, *lines: str, anchor: Anchor = "start", size: float = 12) -> None:
        """Lines of explanation, the first one's baseline at y."""
        for number, line in enumerate(lines):
            self.text(x, y + number * 1.5 * size, line, anchor=anchor, size=size, colour=FAINT)

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, kind: str = "text", size: float = 13
    ) -> None:
        """A box with its lines in the middle; x, y: its upper left corner.

        Raises:
            ValueError: a line is too long for it.
        """
        fill, edge = COLOURS[kind]
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" fill="{fill}" stroke="{edge}"/>'
        )
        step = 1.35 * size
        if len(lines) * step > height + 4:
            raise ValueError(f"{self.title}: {len(lines)} lines don't fit into {height:g} pixels: {lines}")
        for number, line in enumerate(lines):
            if width_of(line, size) > width - 2:
                raise ValueError(f"{self.title}: {line!r} takes {width_of(line, size):.0f} of {width:g} pixels")
            self.text(
                x + width / 2, y + height / 2 + 0.36 * size + (number - (len(lines) - 1) / 2) * step, line, size=size
            )

    def row(
        self,
        x: float,
        y: float,
        labels: Sequence[str],
        *,
        width: float,
        height: float = 30,
        gap: float = 6,
        kinds: str | Sequence[str] = "text",
        size: float = 13,
    ) -> list[float]:
        """Boxes side by side; gives the middle of each."""
        each = [kinds] * len(labels) if isinstance(kinds, str) else kinds
        lefts = [x + number * (width + gap) for number in range(len(labels))]
        for left, label, kind in zip(lefts, labels, each, strict=True):
            self.box(left, y, width, height, label, kind=kind, size=size)
        return [left + width / 2 for left in lefts]

    def arrow(self, *points: Point, dashed: bool = False, colour: str = INK, head: bool = True) -> None:
        """A line through the points, with a head at the last one."""
        places = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        end = f' marker-end="url(#{"head" if colour == INK else "red"})"' if head else ""
        self.parts.append(
            f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}{end}/>'
        )

    def frame(self, x: float, y: float, width: float, height: float, *, kind: str = "text") -> None:
        """A dashed edge around what belongs together."""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" fill="none" '
            f'stroke="{COLOURS[kind][1]}" stroke-dasharray="6 4"/>'
        )

    def grid(self, x: float, y: float, cell: float, rows: Sequence[Sequence[str | None]]) -> None:
        """Squares filled with a colour each, or empty."""
        paths: dict[str, str] = {}  # one a colour: a square each would make large files
        for down, row in enumerate(rows):
            for across, fill in enumerate(row):
                square = f"M{x + across * cell:g} {y + down * cell:g}h{cell:g}v{cell:g}h-{cell:g}z"
                paths[fill or "#ffffff"] = paths.get(fill or "#ffffff", "") + square
        self.parts += [f'<path d="{path}" fill="{fill}" stroke="#c9c5b8"/>' for fill, path in paths.items()]

    def svg(self) -> str:
        """The file.

        Raises:
            ValueError: a label leaves the picture, or lies on another.
        """
        for problem in self.problems():
            raise ValueError(f"{self.title}: {problem}")
        heads = "".join(
            f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
            for name, colour in (("head", INK), ("red", RED))
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="{FONTS}" text-anchor="middle" '
                f'fill="{INK}" role="img">',
                f"<title>{escape(self.title)}</title>",
                f"<defs>{heads}</defs>",
                f'<rect x="1" y="1" width="{self.width - 2}" height="{self.height - 2}" rx="10" fill="{PAPER}" '
                'stroke="#d5d1c4"/>',
                *self.parts,
                "</svg>\n",
            ]
        )

    def problems(self) -> Iterator[str]:
        """What can't be read."""
        for label in self.labels:
            if label.left < 4 or label.top < 4 or label.right > self.width - 4 or label.bottom > self.height - 4:
                yield f"{label.text!r} leaves the picture: {label.left:.0f} to {label.right:.0f}, y {label.bottom:.0f}"
        for one, other in combinations(self.labels, 2):
            if one.meets(other):
                yield f"{one.text!r} lies on {other.text!r}"


def width_of(text: str, size: float) -> float:
    """About how wide a line is: a Chinese character is a square, others are narrower."""
    return size * sum(1.0 if ord(character) >= 0x2E80 else 0.56 for character in text)
