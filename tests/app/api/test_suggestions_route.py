"""POST /v1/libraries/{name}/suggest over a real socket, on both databases, with a model that is served."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.settings import Settings
from model.types import Task, Taxonomy
from tests.app.api.operating import operating
from tests.app.library.workshop import Workshop
from tests.bundles import tiny_bundle

PATH = "/v1/libraries/hotel/suggest"
POOL = ("早餐很好吃房间也干净", "房间吵闹服务员态度差", "前台办理入住太慢了吧", "窗外能看到江景很喜欢")


@pytest.fixture
def operator(workshop: Workshop, settings: Settings, tmp_path: Path) -> Iterator[httpx.Client]:
    """A client that operates a server with two models, of which one fits the library."""
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n"), library="hotel")
    workshop.load(workshop.write("pool.csv", "text\n" + "\n".join(POOL) + "\n"), library="hotel", label=None)
    foreign = Taxonomy(Task.SINGLE, ("好评", "中评"))
    bundles = (tiny_bundle(tmp_path / "tiny"), tiny_bundle(tmp_path / "foreign", name="foreign", taxonomy=foreign))
    with operating(workshop, settings, bundles) as client:
        yield client


def test_a_served_model_suggests_and_what_it_suggests_goes_into_review(operator: httpx.Client) -> None:
    asked = {"count": 2, "model": "tiny", "strategy": "entropy", "seed": 9}
    looked = operator.post(PATH, json=asked).json()
    assert (looked["pool"], looked["strategy"], looked["seed"], looked["queued"]) == (4, "entropy", 9, None)
    assert {each["text"] for each in looked["suggestions"]} < set(POOL)
    assert looked["suggestions"][0]["uncertainty"] >= looked["suggestions"][1]["uncertainty"]
    sent = operator.post(PATH, json=asked | {"to_review": True}).json()
    assert sent["suggestions"] == looked["suggestions"]
    assert sent["queued"] == {"added": 2, "raised": 0, "known": 0}
    rest = operator.post(PATH, json={"count": 5}).json()
    assert (rest["model"], rest["strategy"], rest["waiting"], len(rest["suggestions"])) == (None, "diversity", 2, 2)
    assert operator.post(PATH, json={"count": 1, "among": 1}).json()["pool"] == 1


REFUSED: list[tuple[dict[str, object], int, str, str]] = [
    ({"count": 0}, 422, "bad_input", "count"),
    ({"count": 1001}, 422, "bad_input", "count"),
    ({"count": 1, "among": 20001}, 422, "bad_input", "among"),
    ({"count": 1, "strategy": "best"}, 422, "bad_input", "strategy"),
    ({"count": 1, "to_revue": True}, 422, "bad_input", "to_revue"),
    ({"count": 1, "strategy": "margin"}, 422, "bad_input", "strategy margin asks a model"),
    ({"count": 1, "model": "other"}, 404, "unknown_model", "only tiny, foreign"),
    ({"count": 1, "seed": 10**4000}, 422, "bad_input", "seed"),
    ({"count": 1, "model": "foreign"}, 422, "bad_taxonomy", "another taxonomy than library 'hotel'"),
]


def test_what_can_not_be_asked_for_is_refused(operator: httpx.Client) -> None:
    for body, status, code, message in REFUSED:
        answer = operator.post(PATH, json=body)
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (status, code), error
        assert message in error["message"]
    assert operator.post(PATH, json={"count": 1}).json()["waiting"] == 0


def test_an_unknown_library_and_a_pool_that_is_used_up(operator: httpx.Client) -> None:
    missing = operator.post("/v1/libraries/other/suggest", json={"count": 1})
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "unknown_library")
    operator.post(PATH, json={"count": 4, "to_review": True})
    empty = operator.post(PATH, json={"count": 4})
    assert (empty.status_code, empty.json()["error"]["code"]) == (422, "bad_input")
    assert "were suggested already and wait in review" in empty.json()["error"]["message"]
