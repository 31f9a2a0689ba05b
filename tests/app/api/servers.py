"""A real server in a thread: uvicorn on a free port, and ways to talk to it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import uvicorn
from fastapi import FastAPI

from app.cli.serve import listen


class EachThreadItsOwn(httpx.BaseTransport):
    """Connections for each thread: of one pool, a thread may close what another has just taken."""

    def __init__(self) -> None:
        self._of_thread = threading.local()
        self._all: list[httpx.HTTPTransport] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send it by this thread's connections."""
        if not hasattr(self._of_thread, "transport"):
            self._of_thread.transport = httpx.HTTPTransport(verify=False)
            self._all.append(self._of_thread.transport)
        answer: httpx.Response = self._of_thread.transport.handle_request(request)
        return answer

    def close(self) -> None:
        """Close those of all threads."""
        for transport in self._all:
            transport.close()


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    app: FastAPI
    port: int
    client: httpx.Client

    def raw(self, request: bytes, *, timeout: float = 10) -> bytes:
        """Send bytes, read the answer until the server closes or its body is complete."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection:
            connection.sendall(request)
            return read_answer(connection)


def ask_as_written(client: httpx.Client, method: str, path: str) -> tuple[int, bytes]:
    """Status and body of a request whose path is sent as it stands; httpx would tidy dots up."""
    key = client.headers["Authorization"]
    head = f"{method} {path} HTTP/1.1\r\nHost: wenlei\r\nAuthorization: {key}\r\nContent-Length: 0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.base_url.port or 0), 20) as connection:
        connection.sendall(head.encode())
        answer = read_answer(connection)
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]


def read_answer(connection: socket.socket) -> bytes:
    """One HTTP answer, headers and body."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        if not (part := connection.recv(65536)):
            return answer
        answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serving(app: FastAPI, *, ready: bool = True) -> Iterator[Server]:
    """Run `app` until the block ends; wait until it is `ready`."""
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, ws="none", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, transport=EachThreadItsOwn()) as client:
            deadline = time.monotonic() + 20
            while client.get("/health/ready" if ready else "/health/live").status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield Server(app, port, client)
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        listener.close()
    assert not thread.is_alive()
