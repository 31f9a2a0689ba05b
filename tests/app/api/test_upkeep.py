"""Verify, reindex and roll back over a real socket, on both databases."""

import shutil

import httpx
import pytest
import sqlalchemy as sa

from app.api import upkeep
from app.store.audit import latest_events
from app.store.tables import catalogue, samples
from tests.app.library.workshop import Workshop

PATH = "/v1/libraries/hotel"


@pytest.fixture
def frozen(workshop: Workshop) -> str:
    """The hash of a snapshot of the library hotel."""
    workshop.load(workshop.write("a.csv", "text,label\n房间很大,好评\n早餐凉了,差评\n"), library="hotel")
    return workshop.freeze("hotel").snapshot.hash


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_sound_library_is_clean(operate: httpx.Client, frozen: str) -> None:
    assert operate.post(f"{PATH}/verify").json() == {"clean": True, "problems": 0, "first_problems": []}


def test_problems_are_named_counted_and_do_not_tell_folders(
    operate: httpx.Client, workshop: Workshop, frozen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(workshop.home / "snapshots" / frozen)
    with workshop.engine.begin() as connection:
        connection.execute(sa.update(samples).values(text="换了"))
    answer = operate.post(f"{PATH}/verify")
    found = answer.json()
    assert (answer.status_code, found["clean"], found["problems"]) == (200, False, 3)
    assert [problem["place"].split(" ")[2] for problem in found["first_problems"]] == ["sample", "sample", "snapshot"]
    assert f"of snapshot {frozen}" in found["first_problems"][-1]["what"]
    assert str(workshop.home.resolve()) not in answer.text
    monkeypatch.setattr(upkeep, "MOST_PROBLEMS", 1)
    few = operate.post(f"{PATH}/verify").json()
    assert (few["problems"], few["first_problems"]) == (3, found["first_problems"][:1])


def test_a_catalogue_is_made_anew(admin: httpx.Client, workshop: Workshop, frozen: str) -> None:
    with workshop.engine.begin() as connection:
        connection.execute(sa.delete(catalogue))
    assert admin.post(f"{PATH}/verify").json()["problems"] == 2
    assert admin.post(f"{PATH}/reindex").json() == {"library": "hotel", "samples": 2}
    assert admin.post(f"{PATH}/verify").json()["clean"]
    with workshop.engine.connect() as connection:
        event = latest_events(connection, 1)[0]
    assert (event.actor, event.action, event.target) == ("operator", "library.reindex", "hotel")


def test_a_library_goes_back_to_a_snapshot_and_forth_again(
    admin: httpx.Client, workshop: Workshop, frozen: str
) -> None:
    workshop.load(workshop.write("b.csv", "text,label\n前台热情,服务\n"), library="hotel")
    later = workshop.freeze("hotel").snapshot.hash
    foreseen = admin.post(f"{PATH}/rollback", params={"dry_run": "true"}, json={"snapshot": frozen[:8]}).json()
    assert foreseen == {
        "applied": False,
        "undo": False,
        "snapshot": frozen,
        "events": 1,
        "samples": 1,
        "classes_gone": ["服务"],
        "classes_back": [],
    }
    assert workshop.freeze("hotel").snapshot.hash == later
    done = admin.post(f"{PATH}/rollback", json={"snapshot": frozen[:8], "note": "导错了文件"}).json()
    assert done == foreseen | {"applied": True}
    assert workshop.freeze("hotel").snapshot.hash == frozen
    undone = admin.post(f"{PATH}/rollback", json={"undo": True}).json()
    assert (undone["undo"], undone["applied"], undone["classes_back"]) == (True, True, ["服务"])
    assert workshop.freeze("hotel").snapshot.hash == later
    with workshop.engine.connect() as connection:
        newest = [(event.actor, event.action) for event in latest_events(connection, 2)]
    assert newest == [("operator", "library.rollback.undo"), ("operator", "library.rollback")]


def test_whoever_operates_verifies_but_changes_nothing(operate: httpx.Client, workshop: Workshop, frozen: str) -> None:
    workshop.load(workshop.write("b.csv", "text,label\n前台热情,服务\n"), library="hotel")
    for path, body in (("rollback", {"snapshot": frozen}), ("rollback?dry_run=true", {"undo": True}), ("reindex", {})):
        assert code(operate.post(f"{PATH}/{path}", json=body)) == (403, "forbidden"), path
    assert operate.post(f"{PATH}/verify").status_code == 200
    assert workshop.freeze("hotel").snapshot.hash != frozen


def test_what_can_not_be_is_refused_and_nothing_is_rolled_back(
    admin: httpx.Client, workshop: Workshop, frozen: str
) -> None:
    workshop.load(workshop.write("b.csv", "text,label\n前台热情,服务\n"), library="hotel")
    later = workshop.freeze("hotel").snapshot.hash
    for path, body, expected in (
        ("rollback", {}, (422, "bad_input")),
        ("rollback", {"snapshot": frozen, "undo": True}, (422, "bad_input")),
        ("rollback", {"snapshot": ""}, (422, "bad_input")),
        ("rollback", {"snapshot": "%%%%"}, (422, "bad_input")),
        ("rollback", {"snapshot": "____"}, (422, "bad_input")),
        ("rollback", {"snapshot": str(workshop.home / "snapshots" / frozen)}, (422, "bad_input")),
        ("rollback", {"snapshot": frozen, "by": "somebody"}, (422, "bad_input")),
        ("rollback", {"snapshot": frozen, "note": "长" * 5000}, (422, "bad_input")),
        ("rollback", {"snapshot": "0000"}, (422, "bad_snapshot")),
        ("rollback?dryrun=true", {"snapshot": frozen}, (422, "bad_input")),
        ("rollback", {"undo": True}, (422, "bad_input")),
    ):
        assert code(admin.post(f"{PATH}/{path}", json=body)) == expected, (path, body)
    for name, expected in (("none", (404, "unknown_library")), ("a%00", (422, "bad_input")), ("-", (422, "bad_input"))):
        for path in ("verify", "reindex", "rollback"):
            assert code(admin.post(f"/v1/libraries/{name}/{path}", json={"snapshot": frozen})) == expected, path
    assert workshop.freeze("hotel").snapshot.hash == later
