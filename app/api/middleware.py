"""What every request passes through, as plain ASGI: its id, its log line, its figures, and the limit of its body."""

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.metrics import Metrics
from app.api.responses import error_response
from app.errors import BodyTooLarge, SlowBody
from model.errors import Overloaded

if TYPE_CHECKING:  # keys bring the database along
    from app.people.keyring import Identity

log = structlog.get_logger("wenlei.access")

IDENTITY = "wenlei.identity"  # where a request's scope holds the `Identity` that asks
REQUEST_ID = b"x-request-id"
SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
UNMATCHED = "unmatched"  # one name for all, so that strangers can't make figures grow without bound
GONE = 499  # nothing was answered: the client hung up before the end of its own request
BODY_SECONDS = 30.0
# How much more than the limit is read and thrown away, so that the client hears the answer before it has to
# stop sending; whoever sends more than that is cut off.
DRAIN_BYTES = 64 << 20
# What may be as large as a disk: read by its route piece by piece, which sets its own limit.
UPLOADS = re.compile(r"/v1/libraries/[^/]+/import")
# Of all requests under way: bodies take memory before there is anything to queue.
BYTES_UNDER_WAY = 64 << 20


class Observe:
    """Gives the request an id, logs one line, counts it; what nobody caught becomes an answer here."""

    def __init__(self, app: ASGIApp, *, metrics: Metrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = header(scope, REQUEST_ID) or b""
        if not SANE_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex.encode()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID, request_id)]
            await send(message)

        try:
            await self.app(scope, receive, send_with_id)
        except Exception as error:
            log.error("request failed", id=request_id.decode(), exc_info=error)
            if not status:
                await error_response(error)(scope, receive, send_with_id)
        finally:
            seconds = time.perf_counter() - started
            status = status or GONE
            route = getattr(scope.get("route"), "path", UNMATCHED)
            self.metrics.request(route, status, seconds)
            log.info(
                "request",
                id=request_id.decode(),
                method=scope["method"],
                route=route,
                status=status,
                ms=round(seconds * 1000, 2),
                **_who(scope),
            )


class LimitBody:
    """Reads the body before anything else; for paths that match `streamed` the route does so itself.

    One that is larger than the limit, or for which there is no room beside the others, is read to its end without
    being kept, so that the client hears why it was refused.
    """

    def __init__(self, app: ASGIApp, *, max_bytes: int, streamed: re.Pattern[str]) -> None:
        self.app = app
        self.max_bytes = max_bytes
        self.streamed = streamed
        self._room = max(BYTES_UNDER_WAY, max_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope) or self.streamed.fullmatch(scope["path"]):
            await self.app(scope, receive, send)
            return
        with self._share() as take:
            try:
                async with asyncio.timeout(BODY_SECONDS):
                    body = await self._read(receive, take)
            except TimeoutError:
                error = SlowBody(f"the body did not arrive within {BODY_SECONDS:.0f} seconds; check Content-Length")
                await _refuse(error, scope, receive, send)
            except (BodyTooLarge, Overloaded) as error:
                await _refuse(error, scope, receive, send)
            else:
                if body is not None:
                    await self.app(scope, _once(body, receive), send)

    @contextmanager
    def _share(self) -> Iterator[Callable[[int], bool]]:
        """The block gets a function that takes so many bytes if there is room; its end gives them back."""
        taken = 0

        def take(size: int) -> bool:
            nonlocal taken
            if size > self._room:
                return False
            self._room -= size
            taken += size
            return True

        try:
            yield take
        finally:
            self._room += taken

    async def _read(self, receive: Receive, take: Callable[[int], bool]) -> bytes | None:
        """The body, or None when the client went away before its end."""
        chunks: list[bytes] = []
        size, more, fits = 0, True, True
        while more and size <= self.max_bytes + DRAIN_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            chunk = message.get("body", b"")
            size += len(chunk)
            more = message.get("more_body", False)
            fits = fits and size <= self.max_bytes and take(len(chunk))
            if fits:
                chunks.append(chunk)
        if size > self.max_bytes:
            limit = self.max_bytes / (1 << 20)
            raise BodyTooLarge(f"the body is larger than {limit:g} MiB; send the texts in several requests")
        if not fits:
            raise Overloaded("the bodies of other requests fill the memory set aside for them", retry_after=1.0)
        return b"".join(chunks)


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first value of the header, whose `name` is in small letters."""
    return next((value for key, value in scope["headers"] if key == name), None)


def _who(scope: Scope) -> dict[str, str]:
    """Which key asked, where keys are needed."""
    identity: Identity | None = scope.get(IDENTITY)
    return {"key": identity.key_id, "user": identity.user} if identity else {}


def _has_body(scope: Scope) -> bool:
    return any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])


async def refuse_early(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with `error`, but first read the body and throw it away: a client that still sends does not listen."""
    response = error_response(error)
    if _has_body(scope) and not await drain(receive):
        response.headers["Connection"] = "close"
    await response(scope, receive, send)


async def drain(receive: Receive) -> bool:
    """Read on and throw it away: whether the body came to its end, in good time and not too large."""
    size, more = 0, True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more and size <= DRAIN_BYTES:
                message = await receive()
                size += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return False
    return not more


async def _refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    response = error_response(error)
    response.headers["Connection"] = "close"
    await response(scope, receive, send)


def _once(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives `body` in one piece, then whatever the server says."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
