"""POST /v1/libraries/{name}/doctor: what is wrong with a library, as JSON or as the report that people read.

A training is named by its folder below the server's runs; where that is, is neither taken nor told.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import sqlalchemy as sa
from fastapi import APIRouter, Header, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field

from app.api.asked import Asked, HashStart, PathLibrary, Plain
from app.api.bodies import PROBLEMS, Body, Note
from app.api.deps import Asker, Database, ServerSettings
from app.api.work import Work
from app.library.doctor.applying import Action, Applied, apply_label_errors
from app.library.doctor.examining import MAX_LENGTH, Examination, Questions, examine
from app.library.doctor.referring import named_kinds, queue_findings
from app.library.doctor.report import render_report
from app.library.shapes.doctor import AppliedShape, ExaminationShape, applied_shape, examination_shape
from app.library.shapes.reviews import QueuedShape, queued_shape
from model.errors import BadInput, BadRun
from model.near import NearSettings
from model.reports.page import content_policy

router = APIRouter(prefix="/v1/libraries", tags=["doctor"], responses=PROBLEMS)

LONGEST = 1_000_000  # tokens


class Form(StrEnum):
    """How the answer looks."""

    JSON = "json"
    HTML = "html"


class Cleaning(Body):
    """What to do with labels in train that are probably wrong. dry_run: only tell what would be done."""

    action: Action = Field(
        strict=False, description="drop 去掉，relabel 换成建议的 | drop them, or take the proposed ones"
    )
    min_confidence: float = Field(ge=0.5, le=1, allow_inf_nan=False, description="所需把握 | how sure that has to be")
    dry_run: bool = False
    note: Note = None


class Consultation(Body):
    """How to examine the library: as the options of `wenlei library doctor`."""

    run: Plain | None = Field(default=None, description="分折训练在 runs 下的名称 | a training by folds, below runs")
    snapshot: HashStart | None = Field(default=None, description="快照哈希或其开头 | hash, or its beginning")
    near: float = Field(
        default=NearSettings().threshold, ge=0.5, le=1, description="近重复的相似度 | how similar near duplicates are"
    )
    max_length: int = Field(default=MAX_LENGTH, ge=1, le=LONGEST, description="词元上限 | tokens that a model reads")
    to_review: list[str] = Field(default_factory=list, max_length=20, description="送去复核的发现 | to be reviewed")
    apply: Cleaning | None = Field(default=None, description="清洗，须有 run | clean labels; it takes a run")


class Shown(Asked):
    """As JSON, or as HTML; without a word, as the request's Accept asks."""

    format: Form | None = Field(default=None, description="json 或 html | json or html")


class Consulted(ExaminationShape):
    """What was found, put into review, and cleaned; None where nothing was to be."""

    queued: QueuedShape | None
    applied: AppliedShape | None


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
    if wanted.apply and not wanted.run:
        raise BadInput(f"apply {wanted.apply.action}: it takes predictions; name a training by folds with run")
    run = settings.home / "runs" / wanted.run if wanted.run else None
    kinds = named_kinds(wanted.to_review, has_run=run is not None)
    questions = Questions(near=wanted.near, max_length=wanted.max_length, snapshot=wanted.snapshot, run=run)
    with work.tasks.one(asker.user), _without_folder(run):
        found = examine(engine, library=library, questions=questions)
        queued = queue_findings(engine, found, kinds, by=asker.user) if kinds else None
        applied = _clean(engine, found, wanted.apply, by=asker.user) if wanted.apply else None
    shape = examination_shape(found)
    for finding in shape["findings"]:
        finding["commands"] = [_named(command, run) for command in finding["commands"]]
    if shown.format is Form.HTML or (shown.format is None and "text/html" in accept):
        headers = {"Content-Security-Policy": content_policy(), "X-Content-Type-Options": "nosniff"}
        return HTMLResponse(render_report(shape), headers=headers)
    answer: Consulted = {
        **shape,
        "queued": queued_shape(queued) if queued else None,
        "applied": applied_shape(applied) if applied else None,
    }
    return JSONResponse(answer)


def _clean(engine: sa.Engine, found: Examination, wanted: Cleaning, *, by: str) -> Applied:
    """Clean what the examination, which had a run, has judged."""
    if found.judged is None:
        raise ValueError("nothing was judged")
    return apply_label_errors(
        engine,
        found.census,
        found.judged.run,
        found.judged.predictions,
        action=wanted.action,
        min_confidence=wanted.min_confidence,
        by=by,
        note=wanted.note,
        dry_run=wanted.dry_run,
    )


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
