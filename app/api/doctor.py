"""POST /v1/libraries/{name}/doctor: what is wrong with a library, as JSON or as the report that people read.

A training is named by its folder below the server's runs; where that is, is neither taken nor told.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field

from app.api.asked import Asked, HashStart, PathLibrary, Plain
from app.api.bodies import PROBLEMS, Body
from app.api.deps import Asker, Database, ServerSettings
from app.api.work import Work
from app.library.doctor.examining import MAX_LENGTH, Questions, examine
from app.library.doctor.referring import named_kinds, queue_findings
from app.library.doctor.report import content_policy, render_report
from app.library.shapes.doctor import ExaminationShape, examination_shape
from app.library.shapes.suggestions import QueuedShape
from model.errors import BadRun
from model.near import NearSettings

router = APIRouter(prefix="/v1/libraries", tags=["doctor"], responses=PROBLEMS)

LONGEST = 1_000_000  # tokens


class Form(StrEnum):
    """How the answer looks."""

    JSON = "json"
    HTML = "html"


class Consultation(Body):
    """How to examine the library: as the options of `wenlei library doctor`."""

    run: Plain | None = Field(default=None, description="分折训练在 runs 下的名称 | a training by folds, below runs")
    snapshot: HashStart | None = Field(default=None, description="快照哈希或其开头 | hash, or its beginning")
    near: float = Field(
        default=NearSettings().threshold, ge=0.5, le=1, description="近重复的相似度 | how similar near duplicates are"
    )
    max_length: int = Field(default=MAX_LENGTH, ge=1, le=LONGEST, description="词元上限 | tokens that a model reads")
    to_review: list[str] = Field(default_factory=list, max_length=20, description="送去复核的发现 | to be reviewed")


class Shown(Asked):
    """As JSON, or as HTML; without a word, as the request's Accept asks."""

    format: Form | None = Field(default=None, description="json 或 html | json or html")


class Consulted(ExaminationShape):
    """What was found, and what was put into review; None where nothing was to be."""

    queued: QueuedShape | None


@router.post(
    "/{name}/doctor",
    summary="样本库体检 | Examine a library",
    response_model=Consulted,
    responses={200: {"content": {"text/html": {}}, "description": "JSON，或 HTML 报告 | JSON, or the report in HTML"}},
)
def consult(
    library: PathLibrary,
    wanted: Consultation,
    shown: Annotated[Shown, Query()],
    engine: Database,
    settings: ServerSettings,
    asker: Asker,
    work: Work,
    accept: Annotated[str, Header()] = "",
) -> Response:
    """Everything that needs no training; with a run, what its predictions tell of the labels too."""
    run = settings.home / "runs" / wanted.run if wanted.run else None
    kinds = named_kinds(wanted.to_review, has_run=run is not None)
    questions = Questions(near=wanted.near, max_length=wanted.max_length, snapshot=wanted.snapshot, run=run)
    with work.tasks.one(asker.user), _without_folder(run):
        found = examine(engine, library=library, questions=questions)
        queued = queue_findings(engine, found, kinds, by=asker.user) if kinds else None
    shape = examination_shape(found)
    for finding in shape["findings"]:
        finding["commands"] = [_named(command, run) for command in finding["commands"]]
    if shown.format is Form.HTML or (shown.format is None and "text/html" in accept):
        headers = {"Content-Security-Policy": content_policy(), "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(render_report(shape), headers=headers)
    answer: Consulted = {
        **shape,
        "queued": {"added": queued.added, "raised": queued.raised, "known": queued.known} if queued else None,
    }
    return JSONResponse(answer)


@contextmanager
def _without_folder(run: Path | None) -> Iterator[None]:
    """What is wrong with the run is told without the folder that it is in.

    Raises:
        BadRun: the block did.
    """
    try:
        yield
    except BadRun as error:
        raise BadRun(_named(str(error), run)) from None


def _named(text: str, run: Path | None) -> str:
    return text if run is None else text.replace(str(run), run.name)
