"""What surrounds the routes: limits, load, hang-ups, ids, logs, figures, readiness."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
import structlog
from fastapi import FastAPI

from app.api import middleware
from app.api.logging import configure_logging
from app.main import create_app
from app.settings import Settings
from model.runtime.double import DoubleClassifier
from tests.app.api.servers import Server, read_answer, serving

GOOD = '{"texts": ["房间很干净"]}'.encode()
LIMIT = 64 * 1024


@contextmanager
def serving_double(gate: threading.Event | None = None, **given: object) -> Iterator[Server]:
    """A server of a double, with real settings, middleware and sockets; batches wait for `gate` once it is warm."""
    settings = Settings(max_body_bytes=LIMIT, **given)
    app = create_app(settings)
    safety = threading.Timer(1.0, gate.set if gate else lambda: None)  # a test that fails must not leave it shut
    with serving(app) as server:
        double = DoubleClassifier()
        app.state.registry.serve(double, settings)
        double._gate = gate
        try:
            yield server
        finally:
            safety.start()
    safety.cancel()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving_double() as running:
        yield running


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def depth(server: Server) -> int:
    return server.app.state.registry.get().scheduler.depth


def post(length: str, body: bytes) -> bytes:
    return f"POST /v1/classify HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n".encode() + body


def chunked(body: bytes, size: int = 50_000) -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


def test_a_body_of_ten_megabytes_is_refused_so_that_the_client_reads_it(server: Server) -> None:
    answer = httpx.post(f"http://127.0.0.1:{server.port}/v1/classify", content=b"x" * 10_000_000)
    assert answer.status_code == 413
    assert answer.json()["error"] == {
        "code": "body_too_large",
        "message": "the body is larger than 0.0625 MiB; send the texts in several requests",
    }


def test_a_chunked_body_that_is_too_large_is_refused_as_well(server: Server) -> None:
    answer = server.raw(post("Transfer-Encoding: chunked", chunked(b"x" * 10_000_000)))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in answer


def test_a_chunked_body_of_good_size_is_read(server: Server) -> None:
    assert server.raw(post("Transfer-Encoding: chunked", chunked(GOOD, size=3))).startswith(b"HTTP/1.1 200")


def test_a_content_length_that_is_too_short_gets_an_error_and_harms_nobody(server: Server) -> None:
    assert server.raw(post("Content-Length: 5", GOOD)).startswith(b"HTTP/1.1 400")
    assert server.client.post("/v1/classify", content=GOOD).status_code == 200


def test_a_content_length_that_is_too_long_does_not_hold_the_server(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.2)
    answer = server.raw(post(f"Content-Length: {len(GOOD) + 10}", GOOD))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"slow_body" in answer


def test_a_body_that_is_broken_off_is_no_error_of_ours(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(post("Content-Length: 1000", GOOD))
    until(lambda: 'route="unmatched",status="499"' in server.client.get("/metrics").text)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    "request_line", ["GET /nowhere", "POST /v1/nowhere", "GET /v1/classify", "DELETE /health/live"]
)
def test_what_does_not_exist_has_the_same_shape_of_error(server: Server, request_line: str) -> None:
    method, path = request_line.split()
    answer = server.client.request(method, path)
    expected = (404, "unknown_route") if "nowhere" in path else (405, "wrong_method")
    assert (answer.status_code, answer.json()["error"]["code"]) == expected
    assert ("allow" in answer.headers) == (answer.status_code == 405)


def test_a_full_queue_answers_503_at_once_and_recovers() -> None:
    gate = threading.Event()
    with (
        serving_double(gate, queue_size=2, max_texts=2) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        held = [pool.submit(server.client.post, "/v1/classify", content=GOOD) for _ in range(2)]
        until(lambda: depth(server) == 2)
        started = time.perf_counter()
        refused = server.client.post("/v1/classify", content=GOOD)
        assert time.perf_counter() - started < 0.5
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
        assert int(refused.headers["Retry-After"]) >= 1
        assert server.client.get("/health/live").status_code == 200
        gate.set()
        assert [future.result().status_code for future in held] == [200, 200]
        assert server.client.post("/v1/classify", content=GOOD).status_code == 200


def test_a_body_without_room_beside_the_others_is_refused_until_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BYTES_UNDER_WAY", LIMIT)
    large, small = (json.dumps({"texts": ["好" * size]}, ensure_ascii=False).encode() for size in (20_000, 3000))
    gate = threading.Event()
    with serving_double(gate) as server, ThreadPoolExecutor(1) as pool:
        held = pool.submit(server.client.post, "/v1/classify", content=large)
        until(lambda: depth(server) == 1)
        refused = server.raw(post("Transfer-Encoding: chunked", chunked(small, size=100)))
        assert refused.startswith(b"HTTP/1.1 503")
        assert b"overloaded" in refused
        assert b"retry-after: 1" in refused
        gate.set()
        assert held.result().status_code == 200
        assert server.client.post("/v1/classify", content=small).status_code == 200
        assert server.client.post("/v1/classify", content=large).status_code == 200


def test_a_client_that_hangs_up_gives_its_places_back() -> None:
    gate = threading.Event()
    with serving_double(gate, workers=1) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as first:
            first.sendall(post(f"Content-Length: {len(GOOD)}", GOOD))
            until(lambda: depth(server) == 1)
            with socket.create_connection(("127.0.0.1", server.port)) as second:
                body = json.dumps({"texts": ["好"] * 50}).encode()
                second.sendall(post(f"Content-Length: {len(body)}", body))
                until(lambda: depth(server) == 51)
            until(lambda: depth(server) == 1)
            gate.set()
            assert read_answer(first).startswith(b"HTTP/1.1 200")
        assert 'status="499"' in server.client.get("/metrics").text


def test_answers_under_way_are_finished_when_the_server_stops() -> None:
    gate = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with serving_double(gate) as server:
            answer = pool.submit(httpx.post, f"http://127.0.0.1:{server.port}/v1/classify", content=GOOD)
            until(lambda: depth(server) == 1)
            threading.Timer(0.3, gate.set).start()
        assert answer.result().status_code == 200


def test_an_engine_that_breaks_is_our_own_fault_and_tells_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("/secret/path is broken")

    with serving_double() as server:
        scheduler = server.app.state.registry.get().scheduler
        scheduler.classifier._on_batch = fail
        answer = server.client.post("/v1/classify", content=GOOD)
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
        assert "secret" not in answer.text
        assert answer.headers["X-Request-ID"]
        scheduler.classifier._on_batch = None
        assert server.client.post("/v1/classify", content=GOOD).status_code == 200
    assert "the engine failed" in caplog.text


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-123_X.y", True), ("a" * 64, True), ("a" * 65, False), ("two words", False), ("", False), ("x;y", False)],
)
def test_a_sane_request_id_is_echoed_and_another_is_replaced(server: Server, given: str, kept: bool) -> None:
    answer = server.client.get("/health/live", headers={"X-Request-ID": given})
    assert (answer.headers["X-Request-ID"] == given) is kept
    assert middleware.SANE_ID.fullmatch(answer.headers["X-Request-ID"].encode())


def test_health_says_whether_models_are_loaded() -> None:
    app: FastAPI = create_app(Settings())
    with serving(app) as server:
        app.state.registry.loaded = False  # as it is until the last bundle is warm
        assert server.client.get("/health/live").json() == {"status": "live"}
        for answer in (server.client.get("/health/ready"), server.client.post("/v1/classify", content=GOOD)):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
            assert answer.headers["Retry-After"] == "1"
        app.state.registry.loaded = True
        assert server.client.post("/v1/classify", content=GOOD).json()["error"]["code"] == "unknown_model"
        app.state.registry.serve(DoubleClassifier(), Settings())
        assert server.client.get("/health/ready").json() == {
            "status": "ready",
            "models": [{"name": "double", "version": "0"}],
        }


def test_figures_count_requests_texts_and_batches_and_never_a_strangers_words() -> None:
    with serving_double() as server:
        server.client.post("/v1/classify", json={"texts": ["好", "坏", "快"]})
        server.client.post("/v1/classify", content=b"x")
        for number in range(20):
            server.client.get(f"/nowhere/{number}")
        figures = server.client.get("/metrics").text
        for line in (
            'wenlei_requests_total{route="/v1/classify",status="200"} 1.0',
            'wenlei_requests_total{route="/v1/classify",status="400"} 1.0',
            'wenlei_requests_total{route="unmatched",status="404"} 20.0',
            'wenlei_texts_total{model="double"} 3.0',
            'wenlei_queue_texts{model="double"} 0.0',
        ):
            assert line in figures
        assert 'wenlei_batch_texts_sum{model="double"} 3.0' in figures
        assert 'wenlei_request_seconds_count{route="/v1/classify"} 2.0' in figures
        assert "nowhere" not in figures


@contextmanager
def real_logs() -> Iterator[None]:
    """Logs go to stderr, as those of `wenlei serve` do."""
    before = logging.getLogger().handlers[:], logging.getLogger().level
    configure_logging("info")
    try:
        yield
    finally:
        logging.basicConfig(handlers=before[0], level=before[1], force=True)
        structlog.reset_defaults()


def test_logs_are_json_lines_with_ids_and_hold_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    with real_logs(), serving_double() as server:
        server.client.post("/v1/classify?key=秘密", content=GOOD, headers={"X-Request-ID": "mine"})
        server.client.post("/v1/classify", content='{"texts": ["秘密", ""]}'.encode())
        server.client.post("/v1/classify", content='{"秘密": 1}'.encode())
    logs = capfd.readouterr().err
    lines = [json.loads(line) for line in logs.splitlines()]
    requests = [line for line in lines if line["event"] == "request" and line["route"] == "/v1/classify"]
    assert [line["status"] for line in requests] == [200, 422, 422]
    assert requests[0]["id"] == "mine"
    assert {"timestamp", "level", "method", "ms"} <= requests[0].keys()
    assert "秘密" not in logs
    assert "房间" not in logs


def test_lines_of_threads_that_log_at_once_stay_whole(capfd: pytest.CaptureFixture[str]) -> None:
    def ours(number: int) -> None:
        structlog.get_logger().info("ours", number=number)

    def a_librarys(number: int) -> None:
        logging.getLogger("library").info("its %d", number)

    with real_logs(), ThreadPoolExecutor(8) as threads:
        for number in range(2000):
            threads.submit(ours, number)
            threads.submit(a_librarys, number)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert sum(line["event"] == "ours" for line in lines) == 2000
    assert sum(line["event"].startswith("its ") for line in lines) == 2000


def test_the_log_of_a_broken_engine_says_where_it_broke_and_holds_no_text(capfd: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("out of memory")

    with real_logs(), serving_double() as server:
        server.app.state.registry.get().scheduler.classifier._on_batch = fail
        server.client.post("/v1/classify", content=GOOD)
    logs = capfd.readouterr().err
    errors = [line for line in map(json.loads, logs.splitlines()) if line["level"] == "error"]
    assert [line["event"] for line in errors] == ["the engine failed", "request failed"]
    for line in errors:
        assert line["exception"][0]["exc_value"] == "out of memory"
        assert line["exception"][0]["frames"]
    assert "房间" not in logs
