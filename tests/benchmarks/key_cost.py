"""What keys add to a request, in microseconds.

    python tests/benchmarks/key_cost.py [--rounds 200] [--database URL]

The same request goes straight into three applications in turn, without a socket: one that is open to all, one that asks
for keys, one whose key has a rate too. Medians of rounds of 50 requests each, in processor time, for other programs
take their share of the clock.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

import structlog
from fastapi import FastAPI
from starlette.types import Message, Scope

from app.main import create_app
from app.people.accounts import create_key, create_user
from app.people.keyring import Keyring
from app.settings import Settings
from app.store.database import open_database
from app.store.people import Scope as KeyScope
from model.runtime.double import DoubleClassifier

BODY = '{"texts": ["房间很干净，服务也周到。"]}'.encode()
REQUESTS = 50


async def ask(app: FastAPI, headers: list[tuple[bytes, bytes]]) -> int:
    """The status of one classify request."""
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/v1/classify",
        "raw_path": b"/v1/classify",
        "query_string": b"",
        "headers": [(b"content-length", str(len(BODY)).encode()), *headers],
        "client": ("127.0.0.1", 1),
    }
    status = 0

    async def receive() -> Message:
        return {"type": "http.request", "body": BODY, "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)

    await app(scope, receive, send)
    return status


async def measure(settings: Settings, keyring: Keyring, keys: dict[str, str | None], rounds: int) -> dict[str, float]:
    """Microseconds of processor time of a request, by kind of application."""
    apps = {name: create_app(settings, keyring=keyring if key else None) for name, key in keys.items()}
    headers = {name: [(b"authorization", f"Bearer {key}".encode())] if key else [] for name, key in keys.items()}
    for app in apps.values():
        await app.state.registry.load(settings)  # of no bundles; what follows stands for one
        app.state.registry.serve(DoubleClassifier(), settings)
    times: dict[str, list[float]] = {name: [] for name in apps}
    for _ in range(rounds):
        for name, app in apps.items():
            started = time.process_time()
            for _ in range(REQUESTS):
                assert await ask(app, headers[name]) == 200
            times[name].append((time.process_time() - started) / REQUESTS * 1e6)
    for app in apps.values():
        await app.state.registry.close()
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--database", help="a PostgreSQL URL; by default a new SQLite file")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))  # logs cost the same for all
    with tempfile.TemporaryDirectory() as folder:
        url = given.database or f"sqlite:///{Path(folder)}/wenlei.db"
        settings = Settings(home=Path(folder), database_url=url)
        with open_database(settings) as engine:
            user = f"benchmark-{time.time_ns()}"
            create_user(engine, user, KeyScope.CLASSIFY, actor="benchmark")
            plain, limited = (
                create_key(engine, user=user, scope=KeyScope.CLASSIFY, actor="benchmark", rate=rate).secret.text
                for rate in (None, "100000/minute")
            )
            keys = {"open": None, "key": plain, "key and rate": limited}
            found = asyncio.run(measure(settings, Keyring(engine), keys, given.rounds))
    for name, microseconds in found.items():
        sys.stdout.write(f"{name:14}{microseconds:8.1f} us  {microseconds - found['open']:+6.1f}\n")


if __name__ == "__main__":
    main()
