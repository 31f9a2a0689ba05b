"""`wenlei user`, `key` and `audit` as people and scripts call them, and when `wenlei serve` wants keys."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.cli import main
from tests.bundles import tiny_bundle

Call = Callable[..., dict[str, Any]]
WENLEI = [sys.executable, "-c", "from app.cli import main; main()"]
KEY = re.compile(r"wl_([0-9a-f]{12})_[0-9a-f]{40}")


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The JSON object that the command answers with, run by ann."""
    monkeypatch.setenv("LOGNAME", "ann")

    def run(*arguments: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        return json.loads(out)

    return run


def test_users_and_keys_are_made_listed_and_revoked(call: Call) -> None:
    assert call("user", "create", "标注员甲", "--scope", "operate") == {"user": "标注员甲", "scope": "operate"}
    made = call("key", "create", "--user", "标注员甲", "--scope", "classify", "--expires", "30", "--rate", "100/minute")
    key_id = KEY.fullmatch(made["key"])[1]
    (listed,) = call("key", "list")["keys"]
    assert listed == {name: value for name, value in made.items() if name != "key"}
    assert (listed["id"], listed["state"], listed["rate"]) == (key_id, "active", "100/minute")
    assert listed["expires_at"] > listed["created_at"]
    assert call("key", "revoke", key_id) == {"id": key_id, "revoked": True}
    assert call("user", "revoke", "标注员甲") == {"user": "标注员甲", "revoked": True}
    assert call("key", "list")["keys"][0]["state"] == "revoked"
    (user,) = call("user", "list")["users"]
    assert (user["name"], user["scope"], user["revoked_at"] is None) == ("标注员甲", "operate", False)
    events = call("audit", "list")["events"]
    assert [(event["actor"], event["action"]) for event in events] == [
        ("ann", "user.revoke"),
        ("ann", "key.revoke"),
        ("ann", "key.create"),
        ("ann", "user.create"),
    ]
    assert call("audit", "list", "--limit", "1")["events"] == events[:1]
    assert call("audit", "list", "--before", str(events[1]["id"]))["events"] == events[2:]
    assert made["key"].split("_")[2] not in json.dumps(events)


def test_a_new_key_is_all_that_stdout_holds_and_no_list_shows_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit):
            main(arguments)
        return capsys.readouterr()

    shown("user", "create", "li")
    out, err = shown("key", "create", "--user", "li")
    found = KEY.fullmatch(out.strip())
    assert "keep it now" in err
    lists = "".join(sum((shown(name, "list") for name in ("user", "key", "audit")), ()))
    assert found[1] in shown("key", "list")[0]  # whole, in a window of 80 columns
    assert "argon2" not in lists
    assert found[0].split("_")[2] not in re.sub(r"\s", "", lists + err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("user", "create", "li"), "user 'li' is there already"),
        (("user", "revoke", "nobody"), "there is no user 'nobody' (users: li)"),
        (("key", "create", "--user", "nobody"), "wenlei user create"),
        (("key", "create", "--user", "li", "--scope", "admin"), "reach no further than classify"),
        (("key", "create", "--user", "li", "--rate", "often"), "write 100/minute"),
        (("key", "revoke", "000000000000"), "wenlei key list"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(
    call: Call, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    call("user", "create", "li")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.fixture
def serve(tmp_path: Path) -> list[str]:
    """The arguments that serve a small bundle on a free port."""
    return ["serve", "--bundle", str(tiny_bundle(tmp_path / "tiny").path), "--port", "0", "--json"]


@pytest.mark.parametrize(
    ("host", "required", "reason"),
    [("0.0.0.0", "", "other machines can reach 0.0.0.0"), ("127.0.0.1", "true", "keys are required")],
)
def test_a_server_that_needs_keys_does_not_start_without_one(
    home: Path,
    serve: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    required: str,
    reason: str,
) -> None:
    monkeypatch.setenv("WENLEI_REQUIRE_KEYS", required)
    with pytest.raises(SystemExit) as ended:
        main([*serve, "--host", host])
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (2, "")
    assert f"{reason}, and there is no key yet" in err
    assert "wenlei user create NAME and wenlei key create --user NAME" in err


def test_a_server_that_other_machines_can_reach_asks_for_keys(call: Call, serve: list[str]) -> None:
    call("user", "create", "li")
    key = call("key", "create", "--user", "li")["key"]
    command = [*WENLEI, *serve, "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = json.loads(process.stdout.readline())["url"].replace("0.0.0.0", "127.0.0.1")
            assert httpx.get(f"{url}/health/ready").status_code == 200
            assert httpx.post(f"{url}/v1/classify", json={"texts": ["好"]}).status_code == 401
            headers = {"Authorization": f"Bearer {key}"}
            assert httpx.post(f"{url}/v1/classify", json={"texts": ["好"]}, headers=headers).status_code == 200
        finally:
            process.terminate()
            logs = process.communicate(timeout=20)[1]
    assert key.split("_")[2] not in logs


def test_on_loopback_no_database_is_opened(serve: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENLEI_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    with subprocess.Popen([*WENLEI, *serve], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            url = json.loads(process.stdout.readline())["url"]
            assert httpx.post(f"{url}/v1/classify", json={"texts": ["好"]}).status_code == 200
        finally:
            process.terminate()
            process.communicate(timeout=20)


def test_a_server_without_keys_spares_the_memory_of_what_they_need() -> None:
    code = (
        "import sys, app.cli.serve; from app.main import create_app; from app.settings import Settings\n"
        "create_app(Settings()); print({'sqlalchemy', 'argon2', 'limits'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
