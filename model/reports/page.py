"""Pages: HTML files that need nothing else, and in which texts and labels are escaped."""

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from model.files import staging_folder
from model.reports.charts import FRAME as CHART_FRAME
from model.reports.drawing import FRAME

_TEMPLATES = Path(__file__).with_name("templates")


@cache
def environment(templates: Path) -> Environment:
    """Of the page templates in the folder `templates`, which can draw plots by `plots.html.j2`."""
    made = Environment(
        loader=FileSystemLoader([templates, _TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(style=_style(), policy=content_policy(), frame=FRAME, chart_frame=CHART_FRAME)
    return made


def content_policy() -> str:
    """What a browser may load for a page: its one style, by its hash."""
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def write_page(html: str, path: Path) -> Path:
    """Write a page to `path`, all at once; one that is there already is replaced."""
    with staging_folder(path) as staging:
        written = staging / path.name
        written.write_text(html, encoding="utf-8")
        written.replace(path)
    return path


@cache
def _style() -> str:
    return (_TEMPLATES / "style.css").read_text(encoding="utf-8")
