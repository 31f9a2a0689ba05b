"""`wenlei serve`: bundles over HTTP, from one process."""

import errno
import ipaddress
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import uvicorn

from app.api.logging import configure_logging
from app.main import create_app
from app.settings import Settings, load_settings
from model.console import JsonFlag, emit, say
from model.errors import BadInput

if TYPE_CHECKING:
    from app.people.keyring import Keyring

BACKLOG = 2048  # connections that the kernel keeps while we are busy
DRAIN_SECONDS = 30  # for answers under way when the server is told to stop


def serve(
    bundle: Annotated[
        list[Path] | None,
        typer.Option(help="模型包目录，可多次给出，首个为默认 | folder of a bundle, the first is the default"),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MODEL[@ALIAS]",
            help="已晋升的模型，默认其 champion，可多次给出 | a model that was promoted, by default its champion",
        ),
    ] = None,
    host: Annotated[str | None, typer.Option(help="监听地址，默认 127.0.0.1 | address to listen on")] = None,
    port: Annotated[int | None, typer.Option(help="端口，默认 8000 | port, by default 8000")] = None,
    workers: Annotated[int | None, typer.Option(help="推理线程数 | batches that run at a time")] = None,
    precision: Annotated[
        str | None, typer.Option(help="精度（fp32、int8） | precision, by default the smallest")
    ] = None,
    device: Annotated[str | None, typer.Option(help="设备（cpu、cuda） | device, by default cpu")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Take the port first, so that a wrong one is known before models are loaded; then serve until told to stop.

    The address is shown once the models are there.
    """
    settings = load_settings(
        bundles=(*(bundle or ()), *_live(model or ())) or None,
        host=host,
        port=port,
        workers=workers,
        precision=precision,
        device=device,
    )
    with listen(settings.host, settings.port) as listener, _keys(settings, listener) as keyring:
        if not settings.bundles and keyring is None:
            raise BadInput(
                "no model given; name the folder of a bundle with --bundle, or serve libraries alone with "
                "WENLEI_REQUIRE_KEYS=true"
            )
        _run(settings, listener, keyring, as_json=as_json)


def _live(models: Sequence[str]) -> list[Path]:
    """The folders of the bundles that are live under these names now.

    Raises:
        UnknownModel, BadBundle: one of them is not.
    """
    if not models:
        return []
    from app.promotion.promoting import find_live  # these bring the database along, 50 MiB that others spare
    from app.store.database import open_database

    with open_database(load_settings()) as engine:
        return [find_live(engine, name).path for name in models]


def _run(settings: Settings, listener: socket.socket, keyring: "Keyring | None", *, as_json: bool) -> None:
    configure_logging(settings.log_level)
    server: uvicorn.Server

    def greet_or_stop() -> None:
        if app.state.registry.error:
            server.should_exit = True
            return
        ready = {"url": _url(listener), "models": app.state.registry.names()}
        emit(
            ready,
            as_json=as_json,
            render=lambda _: _greet(listener, keys=keyring is not None, models=bool(settings.bundles)),
        )

    app = create_app(settings, keyring=keyring, on_loaded=greet_or_stop)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            ws="none",
            lifespan="on",
            backlog=BACKLOG,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
    )
    server.run(sockets=[listener])
    if app.state.registry.error:
        raise app.state.registry.error


@contextmanager
def _keys(settings: Settings, listener: socket.socket) -> Iterator["Keyring | None"]:
    """The keys that open the server, or None where nobody but this machine can reach it.

    Raises:
        BadInput: keys are needed, and there is none.
    """
    if _is_loopback(listener) and not settings.require_keys:
        yield None
        return
    from app.people.accounts import any_active_key  # these bring the database along, 50 MiB that others spare
    from app.people.keyring import Keyring
    from app.store.database import open_database

    with open_database(settings) as engine:
        if not any_active_key(engine):
            reason = "keys are required" if settings.require_keys else f"other machines can reach {settings.host}"
            raise BadInput(
                f"{reason}, and there is no key yet; make one with wenlei user create NAME and "
                "wenlei key create --user NAME, or listen on 127.0.0.1 without WENLEI_REQUIRE_KEYS"
            )
        yield Keyring(engine)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        BadInput: the port is taken or may not be used, or the address is none of this machine's.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError:
        raise BadInput(f"--host {host}: there is no such address; use 127.0.0.1, or 0.0.0.0 for all") from None
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(BACKLOG)
    except PermissionError:
        listener.close()
        raise BadInput(f"port {port} needs privileges; choose another with --port") from None
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise BadInput(f"port {port} is in use; choose another with --port") from None
        raise BadInput(f"can't listen on {host}: {error.strerror}; give an address of this machine as --host") from None
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _is_loopback(listener: socket.socket) -> bool:
    return ipaddress.ip_address(listener.getsockname()[0]).is_loopback


def _greet(listener: socket.socket, *, keys: bool, models: bool) -> None:
    url = _url(listener)
    key = "-H 'Authorization: Bearer wl_…' " if keys else ""
    say(f"{url}  （Ctrl+C 停止 | stops it）  /docs  /metrics")
    if models:
        say(
            f"curl {url}/v1/classify {key}-H 'Content-Type: application/json' "
            """-d '{"texts": ["房间很干净，服务也周到。"]}'"""
        )
    else:
        say(f"curl {url}/v1/libraries {key}")
    if not _is_loopback(listener):
        say(
            "注意：其他机器也能访问；需要密钥，但传输未加密，请在前面放 TLS 代理 | "
            "careful: other machines can reach it; keys are asked for, but travel in the clear: put TLS in front"
        )
