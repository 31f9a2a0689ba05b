"""/v1/libraries: the standard-sample libraries."""

from fastapi import APIRouter

from app.api.deps import Database
from app.library.shapes.libraries import LibraryList, library_list
from app.store.database import connect, reading
from app.store.overview import library_overviews

router = APIRouter(prefix="/v1/libraries", tags=["libraries"])


@router.get("", summary="样本库列表 | All libraries")
def list_libraries(engine: Database) -> LibraryList:
    """Every library at a glance."""
    with connect(engine) as connection, reading(connection):
        return library_list(library_overviews(connection))
