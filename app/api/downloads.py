"""Exports on their way: written to a file first, then sent in pieces to whoever keeps reading."""

import asyncio
import zipfile
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.errors import ClientGone
from app.library.exporting import ExportFormat, export_snapshot
from model.files import CHUNK
from model.snapshot import Snapshot
from model.types import Split

STALL_SECONDS = 60.0  # a client that reads nothing for so long holds a file and a place that others wait for

# The ending of a file of each format, and what it is on the web.
KINDS = {
    ExportFormat.JSONL: ("jsonl", "application/x-ndjson"),
    ExportFormat.CSV: ("csv", "text/csv; charset=utf-8"),
    ExportFormat.XLSX: ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ExportFormat.PARQUET: ("parquet", "application/vnd.apache.parquet"),
    ExportFormat.FASTTEXT: ("txt", "text/plain; charset=utf-8"),
    ExportFormat.LABEL_STUDIO: ("json", "application/json"),
    ExportFormat.DOCCANO: ("jsonl", "application/x-ndjson"),
    ExportFormat.HF: ("zip", "application/zip"),
}
MEDIA_TYPES = dict(KINDS.values())


def write_download(snapshot: Snapshot, file_format: ExportFormat, split: Split | None, folder: Path) -> Path:
    """Export the snapshot into `folder` as one file, whose name says what it is; a folder is packed.

    Raises:
        BadInput: there is nothing to write, or the format can't hold it.
    """
    name = "-".join([snapshot.hash[:12], *([split] if split else []), file_format])
    path = folder / f"{name}.{KINDS[file_format][0]}"
    if file_format is not ExportFormat.HF:
        export_snapshot(snapshot, file_format=file_format, out=path, split=split)
        return path
    export_snapshot(snapshot, file_format=file_format, out=folder / name, split=split)
    with zipfile.ZipFile(path, "w") as archive:  # what is in it is packed already
        for file in sorted((folder / name).rglob("*")):
            archive.write(file, file.relative_to(folder))
    return path


class Download(StreamingResponse):
    """Sends the file at `path`, then closes `after`, whether it came through or not."""

    def __init__(self, path: Path, *, after: ExitStack) -> None:
        headers = {
            "Content-Disposition": f'attachment; filename="{path.name}"',  # hash, split and format: ASCII
            "Content-Length": str(path.stat().st_size),
            "X-Content-Type-Options": "nosniff",
        }
        super().__init__(_pieces(path), headers=headers, media_type=MEDIA_TYPES[path.suffix[1:]])
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it.

        Raises:
            ClientGone: the client does not read on.
        """

        async def send_or_give_up(message: Message) -> None:
            try:
                async with asyncio.timeout(STALL_SECONDS):
                    await send(message)
            except TimeoutError:
                raise ClientGone(f"the client has read nothing for {STALL_SECONDS:.0f} seconds") from None

        try:
            await super().__call__(scope, receive, send_or_give_up)
        finally:
            await run_in_threadpool(self._after.close)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await run_in_threadpool(file.read, CHUNK):
            yield piece
