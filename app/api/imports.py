"""POST /v1/libraries/{name}/import: a file into a library, and the rows of it that were rejected."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import FileResponse

from app.api.asked import PathLibrary
from app.api.bodies import PROBLEMS
from app.api.deps import Asker, Database, ServerSettings
from app.api.import_query import ImportQuery
from app.api.schemas import ErrorResponse
from app.api.scratch import scratch_folder
from app.api.unpacking import check_unpacked
from app.api.uploads import UploadRoute, save_body
from app.api.work import Work
from app.errors import Forbidden
from app.library.definition import ImportOptions
from app.library.importing import import_files
from app.library.previewing import preview_files
from app.library.rejects import find_rejects
from app.library.shapes.imports import ImportedShape, ImportPreview, import_preview, imported_shape
from app.people.keyring import Identity
from app.store.database import connect, reading
from app.store.libraries import find_library, get_library
from app.store.people import Scope

UPLOAD_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        408: "文件没有及时传完 | the file did not arrive in time",
        413: "文件过大 | file too large",
        507: "磁盘已满 | the disk is full",
    }.items()
}
router = APIRouter(
    prefix="/v1/libraries", tags=["imports"], route_class=UploadRoute, responses=PROBLEMS | UPLOAD_PROBLEMS
)


@router.post(
    "/{name}/import",
    summary="导入文件 | Import a file",
    openapi_extra={"requestBody": {"required": True, "content": {"application/octet-stream": {}}}},
)
async def import_file(
    library: PathLibrary,
    query: Annotated[ImportQuery, Query()],
    request: Request,
    engine: Database,
    settings: ServerSettings,
    asker: Asker,
    work: Work,
) -> ImportedShape | ImportPreview:
    """The body is the file itself, packed or not. Nothing is written unless all of it can be; the same file twice adds
    nothing.
    """
    options = query.options(library)
    await run_in_threadpool(_check_scope, engine, options, asker)
    with work.imports.one(asker.user), scratch_folder(settings.home) as folder:
        path = folder / query.filename
        try:
            await save_body(request, path, most=settings.max_upload_bytes)
            await run_in_threadpool(check_unpacked, path, most=settings.max_upload_bytes)
            if query.dry_run:
                return await run_in_threadpool(_look, engine, path, options, query)
            return await run_in_threadpool(_import, engine, path, options, query, settings.home, asker.user)
        finally:  # a large file takes its time to go, in which others must not wait
            await run_in_threadpool(path.unlink, missing_ok=True)


@router.get(
    "/{name}/rejects/{file}",
    summary="被拒的行 | The rows that an import rejected",
    response_class=FileResponse,
    responses={200: {"content": {"application/x-ndjson": {}}}},
)
def download_rejects(
    library: PathLibrary,
    file: Annotated[str, InPath(description="导入结果给出的文件名 | the name that the import's answer gives")],
    engine: Database,
    settings: ServerSettings,
) -> FileResponse:
    """One JSON object a row, with its line and the reason."""
    with connect(engine) as connection, reading(connection):
        get_library(connection, library)
    path = find_rejects(settings.home / "rejects", library, file)
    headers = {"X-Content-Type-Options": "nosniff"}
    return FileResponse(path, media_type="application/x-ndjson", filename=path.name, headers=headers)


def _check_scope(engine: sa.Engine, options: ImportOptions, asker: Identity) -> None:
    """Whoever operates may declare the classes of a new library, and of one that is there only an admin.

    Raises:
        Forbidden: the key is too narrow.
    """
    if options.names is None or asker.scope.covers(Scope.ADMIN):
        return
    with connect(engine) as connection, reading(connection):
        there = find_library(connection, options.library) is not None
    if there:
        raise Forbidden(
            f"class: library {options.library!r} is there already, and declaring its classes needs a key of scope "
            "admin; leave class out"
        )


def _look(engine: sa.Engine, path: Path, options: ImportOptions, query: ImportQuery) -> ImportPreview:
    with connect(engine) as connection, reading(connection):
        known = find_library(connection, options.library)
    left_out: list[str] = []
    previews = preview_files(
        [path],
        options=options,
        known=known.definition if known else None,
        columns=query.columns,
        reading=query.reading,
        on_skipped=left_out.append,
    )
    return import_preview(previews, left_out=left_out)


def _import(
    engine: sa.Engine, path: Path, options: ImportOptions, query: ImportQuery, home: Path, user: str
) -> ImportedShape:
    left_out: list[str] = []
    imported = import_files(
        engine,
        [path],
        options=options,
        columns=query.columns,
        reading=query.reading,
        rejects_folder=home / "rejects",
        by=user,
        on_skipped=left_out.append,
    )
    rejects = imported.rejects_file
    address = f"/v1/libraries/{quote(options.library)}/rejects/{quote(rejects.name)}" if rejects else None
    return imported_shape(imported, rejects_file=address, left_out=left_out)
