"""Users, keys and the audit log over a real socket, on both databases."""

import json
import re

import httpx
import pytest

from app.people import keyring
from app.people.accounts import create_key, create_user
from app.store.people import Scope
from tests.app.library.workshop import Workshop

KEY = re.compile(r"wl_([0-9a-f]{12})_[0-9a-f]{40}")


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_user_and_a_key_are_made_used_and_revoked(admin: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0.0)
    made = admin.post("/v1/users", json={"name": "标注员甲", "scope": "operate"})
    assert (made.status_code, made.json()) == (201, {"user": "标注员甲", "scope": "operate"})
    answer = admin.post("/v1/keys", json={"user": "标注员甲", "scope": "operate", "expires": 30, "rate": "1000/minute"})
    assert (answer.status_code, answer.headers["Cache-Control"]) == (201, "no-store")
    key = answer.json()
    found = KEY.fullmatch(key["key"])
    assert found
    assert found[1] == key["id"]

    def libraries() -> int:
        return admin.get("/v1/libraries", headers={"Authorization": f"Bearer {key['key']}"}).status_code

    assert libraries() == 200
    listed = {one["id"]: one for one in admin.get("/v1/keys").json()["keys"]}
    assert listed[key["id"]] == {name: value for name, value in key.items() if name != "key"}
    assert admin.delete(f"/v1/keys/{key['id']}").json() == {"id": key["id"], "revoked": True}
    assert libraries() == 401
    assert code(admin.delete(f"/v1/keys/{key['id']}")) == (422, "bad_input")
    assert admin.delete("/v1/users/标注员甲").json() == {"user": "标注员甲", "revoked": True}
    user = next(one for one in admin.get("/v1/users").json()["users"] if one["name"] == "标注员甲")
    assert (user["scope"], user["revoked_at"] is None) == ("operate", False)


def test_the_secret_is_told_once_and_the_audit_log_names_the_keys_user(admin: httpx.Client, workshop: Workshop) -> None:
    create_user(workshop.engine, "标注员乙", Scope.ADMIN, actor="root")
    second = create_key(workshop.engine, user="标注员乙", scope=Scope.ADMIN, actor="root").secret.text
    headers = {"Authorization": f"Bearer {second}"}
    made = admin.post("/v1/keys", json={"user": "标注员乙"}, headers=headers).json()
    told = "".join(admin.get(path).text for path in ("/v1/users", "/v1/keys", "/v1/audit"))
    assert made["key"].split("_")[2] not in told
    assert second.split("_")[2] not in told
    assert "argon2" not in told
    (newest,) = admin.get("/v1/audit", params={"limit": 1}).json()["events"]
    assert (newest["actor"], newest["action"], newest["target"]) == ("标注员乙", "key.create", made["id"])
    assert newest["details"] == {"user": "标注员乙", "scope": "classify", "expires_at": None, "rate": None}


def test_the_audit_log_is_read_page_by_page(admin: httpx.Client) -> None:
    for number in range(5):
        admin.post("/v1/users", json={"name": f"user{number}"})
    whole = admin.get("/v1/audit").json()["events"]
    pages, before = [], None
    while page := admin.get("/v1/audit", params={"limit": 2} | ({"before": before} if before else {})).json()["events"]:
        assert len(page) <= 2
        pages += page
        before = page[-1]["id"]
    assert pages == whole
    assert [event["target"] for event in whole[:5]] == [f"user{number}" for number in (4, 3, 2, 1, 0)]


def test_whoever_only_operates_makes_and_sees_nobody(admin: httpx.Client, operate: httpx.Client) -> None:
    for method, path, body in (
        ("GET", "/v1/users", None),
        ("POST", "/v1/users", {"name": "stranger", "scope": "admin"}),
        ("DELETE", "/v1/users/operator", None),
        ("GET", "/v1/keys", None),
        ("POST", "/v1/keys", {"user": "operator", "scope": "admin"}),
        ("DELETE", "/v1/keys/000000000000", None),
        ("GET", "/v1/audit", None),
    ):
        assert code(operate.request(method, path, json=body)) == (403, "forbidden"), path
    assert admin.get("/v1/users").json()["users"][0]["revoked_at"] is None


def test_a_key_reaches_no_further_than_its_user(admin: httpx.Client) -> None:
    admin.post("/v1/users", json={"name": "narrow", "scope": "classify"})
    answer = admin.post("/v1/keys", json={"user": "narrow", "scope": "admin"})
    assert code(answer) == (422, "bad_input")
    assert "reach no further than classify" in answer.json()["error"]["message"]
    assert "narrow" not in admin.get("/v1/keys").text


WRONG: list[tuple[str, object]] = [
    ("/v1/users", {"name": "two words"}),
    ("/v1/users", {"name": "../root"}),
    ("/v1/users", {"name": "a\x00b"}),
    ("/v1/users", {"name": "\ud800"}),
    ("/v1/users", {"name": "a" * 65}),
    ("/v1/users", {"name": "a\n"}),
    ("/v1/users", {"name": 7}),
    ("/v1/users", {"name": "ann", "scope": "root"}),
    ("/v1/users", {"name": "ann", "admin": True}),
    ("/v1/users", ["ann"]),
    ("/v1/users", None),
    ("/v1/keys", {"user": "nobody"}),
    ("/v1/keys", {"user": "operator\x00"}),
    ("/v1/keys", {"user": "operator", "expires": 0}),
    ("/v1/keys", {"user": "operator", "expires": 10**9}),
    ("/v1/keys", {"user": "operator", "expires": 10**30}),
    ("/v1/keys", {"user": "operator", "rate": "often"}),
    ("/v1/keys", {"user": "operator", "rate": "1000000/second"}),
    ("/v1/keys", {"user": "operator", "hash": "x"}),
]


def test_what_can_not_be_is_refused_and_nothing_is_made(admin: httpx.Client) -> None:
    before = admin.get("/v1/users").text, admin.get("/v1/keys").text
    for path, body in WRONG:
        answer = admin.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert code(answer) == (422, "bad_input"), body
    assert (admin.get("/v1/users").text, admin.get("/v1/keys").text) == before


def test_odd_addresses_get_an_error_of_the_one_shape(admin: httpx.Client) -> None:
    for method, path, status in (
        ("DELETE", "/v1/users/nobody", 422),
        ("DELETE", "/v1/users/a%00b", 422),
        ("DELETE", "/v1/users/..%2F..%2Fetc", 404),
        ("DELETE", "/v1/keys/000000000000", 422),
        ("DELETE", "/v1/keys/%00", 422),
        ("DELETE", "/v1/keys/" + "0" * 5000, 422),
        ("GET", "/v1/audit?limit=0", 422),
        ("GET", "/v1/audit?limit=1001", 422),
        ("GET", "/v1/audit?before=-1", 422),
        ("GET", "/v1/audit?before=99999999999999999999999", 422),
        ("GET", "/v1/audit?page=2", 422),
        ("PATCH", "/v1/users", 405),
    ):
        answer = admin.request(method, path)
        assert answer.status_code == status, path
        assert set(answer.json()["error"]) == {"code", "message"}
