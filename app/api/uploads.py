"""Bodies as large as a disk: read piece by piece into a file, never whole in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.types import Message, Receive

from app.api.middleware import drain
from app.api.responses import error_response, on_bad_request
from app.errors import BodyTooLarge, ClientGone, SlowBody
from model.errors import WenleiError

PIECE = 256 << 10  # bytes
PIECE_SECONDS = 30.0  # for each piece: who sends more slowly holds a place that others wait for


class _Received:
    """What the client sends; `ended`: there is no more of it to come."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.ended = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.ended = self.ended or not message.get("more_body", False)
        return message


class UploadRoute(APIRoute):
    """A route that reads its body itself. Before a refusal the rest is read: a client that sends does not listen."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's own handler, and what comes after its refusals."""
        handle = super().get_route_handler()

        async def listen_to_the_end(request: Request) -> Response:
            received = _Received(request.receive)
            try:
                return await handle(Request(request.scope, received))
            except (WenleiError, RequestValidationError) as error:
                waited_enough = isinstance(error, SlowBody)
                if received.ended or (not waited_enough and await drain(received)):
                    raise
                invalid = isinstance(error, RequestValidationError)
                response = await on_bad_request(request, error) if invalid else error_response(error)
                response.headers["Connection"] = "close"
                return response

        return listen_to_the_end


async def save_body(request: Request, path: Path, *, most: int) -> None:
    """Write the body to `path`; `most`: bytes.

    Raises:
        BodyTooLarge: it is larger. SlowBody: a piece of it did not arrive in time. ClientGone: it broke off.
    """
    declared = request.headers.get("content-length", "")
    size = int(declared) if declared.isdecimal() else 0
    too_large = BodyTooLarge(f"the file is larger than {most / (1 << 20):g} MiB; send it in several parts")
    if size > most:
        raise too_large
    size = 0
    with path.open("xb") as file:
        async for piece in _pieces(request.receive):
            size += len(piece)
            if size > most:
                raise too_large
            await run_in_threadpool(file.write, piece)


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    """The body in pieces of about `PIECE` bytes, the last one shorter."""
    more = True
    while more:
        piece = bytearray()
        try:
            async with asyncio.timeout(PIECE_SECONDS):
                while more and len(piece) < PIECE:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientGone("the client hung up before the end of its file; nothing was imported")
                    piece += message.get("body", b"")
                    more = message.get("more_body", False)
        except TimeoutError:
            raise SlowBody(
                f"{PIECE >> 10} KiB did not arrive within {PIECE_SECONDS:.0f} seconds, nothing was imported; check "
                "Content-Length, or send the file packed"
            ) from None
        yield bytes(piece)
