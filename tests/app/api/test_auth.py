"""Keys over a real socket, on both databases: who gets in, how soon a revocation is felt, and what strangers cost."""

import json
import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
import sqlalchemy as sa
import structlog

from app.api.logging import configure_logging
from app.main import create_app
from app.people import keyring
from app.people.accounts import NewKey, create_key, create_user, retire_key, retire_user
from app.people.keyring import Keyring
from app.people.keys import Secret, new_secret
from app.settings import Settings
from app.store.database import open_database
from app.store.people import Scope
from app.store.tables import api_keys
from model.runtime.double import DoubleClassifier
from tests.app.api.servers import Server, serving

GOOD = '{"texts": ["房间很干净"]}'.encode()


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    with open_database(settings) as engine:
        create_user(engine, "li", Scope.ADMIN, actor="root")
        yield engine


@pytest.fixture
def server(engine: sa.Engine, settings: Settings) -> Iterator[Server]:
    app = create_app(settings, keyring=Keyring(engine))
    with serving(app) as running:
        app.state.registry.serve(DoubleClassifier(), settings)
        yield running


def make(engine: sa.Engine, scope: Scope = Scope.CLASSIFY, **given: object) -> NewKey:
    return create_key(engine, user="li", scope=scope, actor="root", **given)


def ask(server: Server, key: str | None, path: str = "/v1/classify", **given: object) -> tuple[int, str]:
    """Status, and code of the error."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    method = "POST" if path.startswith("/v1/classify") else "GET"
    answer = server.client.request(method, path, headers=headers, content=GOOD if method == "POST" else None, **given)
    code = answer.json()["error"]["code"] if answer.status_code >= 400 else ""
    return answer.status_code, code


def test_a_key_opens_what_its_scope_reaches(engine: sa.Engine, server: Server) -> None:
    for scope, classify, metrics, nowhere in (
        (Scope.CLASSIFY, (200, ""), (403, "forbidden"), (403, "forbidden")),
        (Scope.OPERATE, (200, ""), (200, ""), (403, "forbidden")),
        (Scope.ADMIN, (200, ""), (200, ""), (404, "unknown_route")),
    ):
        key = make(engine, scope).secret.text
        assert [ask(server, key, path) for path in ("/v1/classify", "/metrics", "/nowhere")] == [
            classify,
            metrics,
            nowhere,
        ]


@pytest.mark.parametrize("path", ["/v1/classify", "/metrics", "/nowhere", "/v1/classify/", "//v1/classify", "/redoc"])
def test_without_a_key_nothing_is_shown(server: Server, path: str) -> None:
    assert ask(server, None, path) == (401, "unauthorized")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/docs", "/openapi.json"])
def test_health_and_the_description_of_the_interface_are_open(server: Server, path: str) -> None:
    assert server.client.get(path).status_code == 200


def test_the_description_says_that_classifying_takes_a_key(server: Server) -> None:
    described = server.client.get("/openapi.json").json()
    assert described["paths"]["/v1/classify"]["post"]["security"] == [{"HTTPBearer": []}]
    assert described["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"


def test_a_refusal_says_how_a_key_is_sent(server: Server) -> None:
    answer = server.client.post("/v1/classify", content=GOOD)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "Authorization: Bearer wl_" in answer.json()["error"]["message"]
    assert answer.headers["X-Request-ID"]


def test_only_the_header_takes_a_key(engine: sa.Engine, server: Server) -> None:
    key = make(engine).secret.text
    assert ask(server, None, f"/v1/classify?key={key}&access_token={key}&authorization=Bearer+{key}")[0] == 401
    for value in (key, f"Basic {key}", f"Bearer{key}", "Bearer", f"Bearer {key} {key}", "Bearer \xff"):
        answer = server.client.post("/v1/classify", content=GOOD, headers=[(b"Authorization", value.encode("latin-1"))])
        assert answer.status_code == 401, value
    assert server.client.post("/v1/classify", content=GOOD, headers={"Authorization": f"bearer {key}"}).is_success


def test_unknown_wrong_and_expired_keys_are_refused_alike(engine: sa.Engine, server: Server) -> None:
    good = make(engine).secret
    expired = make(engine, lifetime=timedelta(seconds=-1)).secret
    wrong = Secret(good.id, new_secret().secret)
    answers = [
        server.client.post("/v1/classify", content=GOOD, headers={"Authorization": f"Bearer {secret.text}"}).json()
        for secret in (new_secret(), wrong, expired)
    ]
    assert answers == [answers[0]] * 3
    assert answers[0]["error"]["code"] == "unauthorized"
    assert ask(server, good.text) == (200, "")
    assert ask(server, wrong.text) == (401, "unauthorized")  # after the right one was verified, too


@pytest.mark.parametrize("whole_user", [False, True])
def test_a_revocation_is_felt_within_seconds(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch, whole_user: bool
) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.2)
    made = make(engine)
    assert ask(server, made.secret.text) == (200, "")
    if whole_user:
        retire_user(engine, "li", actor="root")
    else:
        retire_key(engine, made.key.id, actor="root")
    time.sleep(0.25)
    assert ask(server, made.secret.text) == (401, "unauthorized")


def test_a_key_that_expires_while_it_is_used_is_refused(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    made = make(engine, lifetime=timedelta(days=1))
    assert ask(server, made.secret.text) == (200, "")
    with engine.begin() as connection:
        connection.execute(sa.update(api_keys).values(expires_at="2026-01-01T00:00:00+00:00"))
    assert ask(server, made.secret.text) == (401, "unauthorized")


def test_at_most_five_seconds_pass_before_a_revocation_is_felt() -> None:
    assert keyring.RECHECK_SECONDS <= 5


def test_many_requests_with_a_key_cost_one_hash_and_one_query(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed, statements = [], []
    matches = Secret.matches
    monkeypatch.setattr(Secret, "matches", lambda self, kept: hashed.append(self.id) or matches(self, kept))
    sa.event.listen(engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    key = make(engine).secret
    statements.clear()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: ask(server, key.text), range(40))) == {(200, "")}
    assert hashed == [key.id]
    assert len([statement for statement in statements if "api_keys" in statement]) == 1


def test_a_key_may_ask_as_often_as_its_rate_says(engine: sa.Engine, server: Server) -> None:
    slow, free = make(engine, rate="3/minute").secret.text, make(engine).secret.text
    assert [ask(server, slow)[0] for _ in range(4)] == [200, 200, 200, 429]
    answer = server.client.post("/v1/classify", content=GOOD, headers={"Authorization": f"Bearer {slow}"})
    assert answer.json()["error"]["code"] == "rate_limited"
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert {ask(server, free)[0] for _ in range(10)} == {200}


def test_the_window_of_a_rate_moves_on(engine: sa.Engine, server: Server) -> None:
    key = make(engine, rate="2/second").secret.text
    assert [ask(server, key)[0] for _ in range(3)] == [200, 200, 429]
    time.sleep(1.05)
    assert ask(server, key)[0] == 200


def test_strangers_can_not_make_the_server_hash_without_end(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed = []
    monkeypatch.setattr(Secret, "matches", lambda self, kept: bool(hashed.append(self.id)))
    good = make(engine).secret
    with ThreadPoolExecutor(8) as pool:
        unknown = list(pool.map(lambda _: ask(server, new_secret().text), range(5)))
    assert (set(unknown), hashed) == ({(401, "unauthorized")}, [])
    with ThreadPoolExecutor(8) as pool:
        wrong = list(pool.map(lambda _: ask(server, Secret(good.id, new_secret().secret).text), range(40)))
    assert wrong.count((401, "unauthorized")) == len(hashed) == 15
    assert wrong.count((429, "rate_limited")) == 25


def test_who_was_let_in_before_stays_in_beside_strangers_from_the_same_address(
    engine: sa.Engine, server: Server
) -> None:
    key = make(engine).secret.text
    assert ask(server, key)[0] == 200
    assert [ask(server, new_secret().text)[0] for _ in range(21)] == [401] * 20 + [429]
    assert ask(server, key)[0] == 200


def test_a_large_body_without_a_key_hears_why_it_was_refused(server: Server) -> None:
    answer = server.client.post("/v1/classify", content=b"x" * 10_000_000)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")


def test_a_database_that_is_gone_is_told_without_its_address(
    engine: sa.Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    known, new = make(engine).secret.text, make(engine).secret.text
    assert ask(server, known) == (200, "")
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE api_keys RENAME TO elsewhere")
    for key in (known, new):
        answer = server.client.post("/v1/classify", content=GOOD, headers={"Authorization": f"Bearer {key}"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_ready")
        assert not [word for word in ("database", "api_keys", "sqlite", "postgres", "WENLEI") if word in answer.text]
        assert answer.headers["Retry-After"] == "1"
    with engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE elsewhere RENAME TO api_keys")
    assert [ask(server, key) for key in (known, new)] == [(200, "")] * 2


def test_logs_say_whose_key_asked_and_hold_no_secret(
    engine: sa.Engine, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    made, wrong = make(engine), new_secret()
    before = logging.getLogger().handlers[:], logging.getLogger().level
    configure_logging("debug")
    try:
        app = create_app(settings, keyring=Keyring(engine))
        with serving(app) as server:
            app.state.registry.serve(DoubleClassifier(), settings)
            ask(server, made.secret.text)
            ask(server, wrong.text)
            server.raw(
                f"GET /v1/classify?key={made.secret.text} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            )  # httpx logs URLs
            app.state.registry.get().scheduler.classifier._on_batch = lambda _: 1 / 0
            assert ask(server, made.secret.text)[0] == 500
    finally:
        logging.basicConfig(handlers=before[0], level=before[1], force=True)
        structlog.reset_defaults()
    logs = capfd.readouterr().err
    lines = [json.loads(line) for line in logs.splitlines()]
    asked = [line for line in lines if line["event"] == "request" and line["route"] != "/health/ready"]
    assert [(line["status"], line.get("key"), line.get("user")) for line in asked] == [
        (200, made.key.id, "li"),
        (401, None, None),
        (401, None, None),
        (500, made.key.id, "li"),
    ]
    assert made.secret.secret not in logs
    assert wrong.secret not in logs
    assert "argon2" not in logs


def test_without_a_keyring_no_database_is_opened(settings: Settings) -> None:
    app = create_app(settings)
    with serving(app) as server:
        app.state.registry.serve(DoubleClassifier(), settings)
        assert ask(server, None) == (200, "")
        assert ask(server, None, "/metrics") == (200, "")
    assert not settings.home.exists()
