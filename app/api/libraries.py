"""/v1/libraries: the standard-sample libraries, and what is to be looked at in each."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from app.api.asked import PathLibrary
from app.api.bodies import MAX_PAGE_SIZE, PAGE_SIZE, PROBLEMS, Stretch
from app.api.deps import Asker, Database
from app.api.work import Work
from app.library.agreement import measure_agreement
from app.library.disputes import list_disputes
from app.library.duplicates import find_duplicates
from app.library.shapes.duplicates import DuplicatesShape, duplicates_shape
from app.library.shapes.labels import AgreementShape, DisputesShape, agreement_shape, disputes_shape
from app.library.shapes.libraries import LibraryDetails, LibraryList, library_details, library_list
from app.library.summary import summarise
from app.store.database import connect, reading
from app.store.overview import library_overviews
from model.near import NearSettings

router = APIRouter(prefix="/v1/libraries", tags=["libraries"], responses=PROBLEMS)


class Alike(Stretch):
    """What counts as near, and which groups are listed."""

    threshold: float = Field(default=0.8, ge=0.5, le=1, description="相似度 | similarity of the character bigrams")
    conflicting: bool = Field(default=False, description="只看标签不一致的组 | only groups whose labels differ")
    members: int = Field(default=PAGE_SIZE, ge=2, le=MAX_PAGE_SIZE, description="每组最多几条 | members of a group")


@router.get("", summary="样本库列表 | All libraries")
def list_libraries(engine: Database) -> LibraryList:
    """Every library at a glance."""
    with connect(engine) as connection, reading(connection):
        return library_list(library_overviews(connection))


@router.get("/{name}", summary="一个样本库 | One library")
def show_library(engine: Database, name: PathLibrary) -> LibraryDetails:
    """What a library is, and how far its samples are labelled."""
    return library_details(summarise(engine, name))


@router.get("/{name}/conflicts", summary="标签有分歧的样本 | Samples in conflict")
def list_conflicts(engine: Database, name: PathLibrary, page: Annotated[Stretch, Query()]) -> DisputesShape:
    """Samples on which persons or imports disagree, with what each says, in the order of the samples' ids."""
    return disputes_shape(list_disputes(engine, library=name, limit=page.limit, offset=page.offset))


@router.get("/{name}/agreement", summary="标注人之间的一致性 | Agreement between persons")
def show_agreement(engine: Database, name: PathLibrary) -> AgreementShape:
    """Cohen's kappa pair by pair, and Krippendorff's alpha, on samples that two persons or more have labelled."""
    return agreement_shape(measure_agreement(engine, library=name))


@router.get("/{name}/duplicates", summary="近似重复的样本 | Near duplicates")
def list_duplicates(
    engine: Database, asker: Asker, work: Work, name: PathLibrary, asked: Annotated[Alike, Query()]
) -> DuplicatesShape:
    """Groups of samples that are almost the same, the largest first. All are compared anew: take large pages."""
    settings = NearSettings(threshold=asked.threshold)
    with work.tasks.one(asker.user):
        found = find_duplicates(
            engine,
            library=name,
            settings=settings,
            only_conflicting=asked.conflicting,
            limit=asked.limit,
            offset=asked.offset,
            members=asked.members,
        )
    return duplicates_shape(found, settings)
