"""What a report can draw: plots as plain data, which its JSON keeps and `drawing` measures out."""

from collections.abc import Iterable
from typing import Any

import numpy as np

BINS = 24
TAIL = 99.0  # percentile: what is beyond the axis stands in the last bar


def bars(title: str, title_en: str, values: Iterable[tuple[str, float]], *, unit: str = "") -> dict[str, Any]:
    """A bar for each name."""
    return {"title": title, "title_en": title_en, "bars": [[name, value] for name, value in values], "unit": unit}


def histogram(
    title: str,
    title_en: str,
    values: Any,
    *,
    x: str,
    mark: float | None = None,
    mark_name: str = "",
    whole: bool = True,
) -> dict[str, Any]:
    """How often values (n,) occur. The axis ends at the percentile `TAIL`, or beyond the mark; whole: at numbers."""
    if not len(values):
        return {**bars(title, title_en, []), "x": x}
    lowest = 0.0 if whole else float(np.floor(np.min(values)))
    top = max(float(np.percentile(values, TAIL)) * 1.1, 1.1 * (mark or 0.0), lowest + 1)
    step = max((min(top, float(np.max(values))) - lowest) / BINS, 1.1 * ((mark or 0.0) - lowest) / BINS, 1e-3)
    step = max(1.0, float(np.ceil(step))) if whole else step
    edges = lowest + step * np.arange(BINS + 1)
    counts, _ = np.histogram(np.minimum(values, edges[-1]), bins=edges)
    return {
        "title": title,
        "title_en": title_en,
        "histogram": {"edges": [round(float(edge), 3) for edge in edges], "counts": counts.tolist()},
        "x": f"{x}（末柱含更大者 the last bar holds all beyond）" if np.max(values) > edges[-1] else x,
        "mark": mark,
        "mark_name": mark_name,
    }
