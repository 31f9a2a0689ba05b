"""/v1/samples: list and search the samples of a library, look at one, and label it."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import FailFast, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.api.bodies import MAX_PAGE_SIZE, MAX_POSITION, PAGE_SIZE, PROBLEMS, Body, LabelName, Note, OfLibrary, Words
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.browsing import MAX_QUERY_CHARS, SORTS, browse
from app.library.cells import MAX_LABEL_CHARS
from app.library.history import history
from app.library.labelling import label_sample
from app.library.shapes.labels import HistoryShape, SpokenShape, history_shape, spoken_shape
from app.library.shapes.samples import SamplesShape, samples_shape

router = APIRouter(prefix="/v1/samples", tags=["samples"], responses=PROBLEMS)

MAX_LABELS_AT_ONCE = 1000
# Servers read request lines of up to 64 KiB, and a character may take 12 bytes of it.
MAX_TEXT_CHARS = 5000
SampleId = Annotated[str, Path(alias="id", max_length=32, description="样本编号或其开头 | id, or its beginning")]


class Browsing(OfLibrary):
    """Which samples are listed, and in which order."""

    q: Words = Field(default="", max_length=MAX_QUERY_CHARS, description="搜索文本 | a piece of the text")
    label: Words | None = Field(
        default=None, max_length=MAX_LABEL_CHARS, description="带此标签（或分支） | that carry this class, or branch"
    )
    unlabelled: bool = Field(default=False, description="只看无标签的 | only those without labels")
    conflict: bool = Field(default=False, description="只看有分歧的 | only those in conflict")
    sort: Words = Field(default="arrival", max_length=20, description=f"排序 | {', '.join(SORTS)}")
    page: int = Field(default=1, ge=1, le=MAX_POSITION, description="第几页 | which page")
    per_page: int = Field(default=PAGE_SIZE, ge=1, le=MAX_PAGE_SIZE, description="每页几条 | samples on a page")
    after: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{32}$",
        description="接着此编号往下列，代替页码 | list on from this id, not a page",
    )


class OfText(OfLibrary):
    """A sample by its text."""

    text: Words = Field(min_length=1, max_length=MAX_TEXT_CHARS, description="样本的全文 | the whole text of it")


class Word(Body):
    """What the key's user says about a sample. `labels`: by name, code or alias; or `none`: it belongs to no class.

    `confidence`: how sure, 0 to 1.
    """

    none: bool = Field(default=False, description="不属于任何类别，代替标签 | it belongs to none of the classes")
    labels: Annotated[list[LabelName], Field(max_length=MAX_LABELS_AT_ONCE), FailFast()] = Field(
        default_factory=list, validate_default=True, examples=[["好评"]]
    )
    confidence: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    note: Note = None

    @field_validator("labels")
    @classmethod
    def _labels_or_none(cls, labels: list[str], others: ValidationInfo) -> list[str]:
        """Only who says so means none: a list may be empty by mistake."""
        none = others.data.get("none")
        if none is False and not labels:
            raise PydanticCustomError("no_labels", 'give at least one, or "none": true where no class fits')
        if none and labels:
            raise PydanticCustomError("labels_and_none", 'give either labels or "none": true')
        return labels


@router.get("", summary="列出、搜索样本 | List and search samples")
def list_samples(engine: Database, asked: Annotated[Browsing, Query()]) -> SamplesShape:
    """A page of the samples that have all that is asked for. Programs that walk through all give `next` as `after`."""
    found = browse(
        engine,
        library=asked.library,
        query=asked.q,
        label=asked.label,
        unlabelled=asked.unlabelled,
        conflict=asked.conflict,
        sort=asked.sort,
        page=asked.page,
        per_page=asked.per_page,
        after=asked.after,
    )
    return samples_shape(found)


@router.get("/by-text", summary="按全文找样本 | Find a sample by its text")
def find_by_text(engine: Database, asked: Annotated[OfText, Query()]) -> HistoryShape:
    """The sample whose text, normalised as the library does, is just this; with its history. Pairs go by their id."""
    return history_shape(history(engine, library=asked.library, sample=asked.text, is_text=True))


@router.get("/{id}", summary="一个样本及其标签历史 | A sample and the history of its labels")
def show_sample(engine: Database, sample: SampleId, of: Annotated[OfLibrary, Query()]) -> HistoryShape:
    """The sample, its labels now, and every event; `current` marks the one that the labels come from."""
    return history_shape(history(engine, library=of.library, sample=sample))


@router.post("/{id}/labels", summary="标注一个样本 | Label a sample")
def label(
    engine: Database, asker: Asker, work: Work, sample: SampleId, of: Annotated[OfLibrary, Query()], body: Word
) -> SpokenShape:
    """Record what the key's user says of a sample; a person's word counts more than what was imported."""
    with work.words.one():
        spoken = label_sample(
            engine,
            library=of.library,
            sample=sample,
            labels=body.labels,
            none=body.none,
            by=asker.user,
            confidence=body.confidence,
            note=body.note,
        )
    return spoken_shape(spoken)
