"""Put the server together: settings in, application out. Wiring only."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import TYPE_CHECKING

from fastapi import FastAPI, Security
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from app.api import classify, health, locked
from app.api.metrics import Metrics
from app.api.middleware import UPLOADS, LimitBody, Observe
from app.api.responses import on_bad_request, on_http_error, on_wenlei_error
from app.serving.registry import Registry
from app.settings import Settings
from model.errors import WenleiError

if TYPE_CHECKING:
    from app.people.keyring import Keyring


def create_app(
    settings: Settings, *, keyring: "Keyring | None" = None, on_loaded: Callable[[], None] | None = None
) -> FastAPI:
    """The application. It answers /health/live at once and loads its models meanwhile.

    `keyring`: whose keys open it; without one it is open to all who reach it.
    `on_loaded` is called when they are there, or can't be loaded: then `app.state.registry.error` says why.
    """
    figures = Metrics()
    registry = Registry(on_batch=figures.batch)

    async def load() -> None:
        try:
            await registry.load(settings)
        except Exception as error:
            registry.error = error
        if on_loaded:
            on_loaded()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(load())
        yield
        await loading
        await registry.close()

    app = FastAPI(title="wenlei 文类", version=metadata.version("wenlei"), lifespan=lifespan)
    app.state.settings, app.state.registry, app.state.metrics = settings, registry, figures
    # Shown on /docs, where people can enter a key; `Authenticate` is what asks for it.
    shown = [Security(HTTPBearer(auto_error=False, description="wl_<id>_<secret>"))] if keyring else []
    app.include_router(classify.router, dependencies=shown)
    app.include_router(health.router)
    if keyring:
        # these bring the libraries' tools along, which others spare
        from app.api import (
            doctor,
            events,
            gate,
            imports,
            libraries,
            people,
            reviews,
            samples,
            snapshots,
            suggestions,
            sweeps,
            taxonomy,
            upkeep,
        )
        from app.api.work import LongWork

        app.state.engine, app.state.long_work = keyring.engine, LongWork()
        nouns = (
            libraries,
            samples,
            reviews,
            events,
            taxonomy,
            imports,
            snapshots,
            doctor,
            suggestions,
            gate,
            sweeps,
            upkeep,
            people,
        )
        for noun in nouns:
            app.include_router(noun.router, dependencies=shown)
    else:
        app.include_router(locked.router)
    app.add_exception_handler(WenleiError, on_wenlei_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(RequestValidationError, on_bad_request)
    app.add_middleware(LimitBody, max_bytes=settings.max_body_bytes, streamed=UPLOADS)
    if keyring:
        from app.api.auth import Authenticate  # brings the database along: 50 MiB that a server without keys spares

        app.add_middleware(Authenticate, keyring=keyring)
    app.add_middleware(Observe, metrics=figures)  # added last, so it stands outermost
    return app
