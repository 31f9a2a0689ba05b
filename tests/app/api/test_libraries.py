"""/v1/libraries over a real socket, on both databases."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from app.library.agreement import measure_agreement
from app.library.browsing import browse
from app.library.disputes import list_disputes
from app.library.duplicates import find_duplicates
from app.library.history import history
from app.library.labelling import label_sample
from app.library.revisions import describe
from app.library.shapes.duplicates import duplicates_shape
from app.library.shapes.labels import agreement_shape, disputes_shape, history_shape
from app.library.shapes.samples import samples_shape
from app.library.shapes.taxonomy import taxonomy_shape, versions_shape
from app.library.taxonomies import change_taxonomy, list_versions, show_taxonomy
from app.main import create_app
from app.people.accounts import create_key, create_user
from app.people.keyring import Keyring
from app.settings import Settings
from app.store.people import Scope
from model.near import NearSettings
from tests.app.api.servers import serving
from tests.app.library.workshop import Workshop

ROWS = "text,label\n房间很大很干净早餐也好,好评\n房间很大很干净早餐也好啊,差评\n早餐凉,中评\n早餐凉,差评\n隔音差,差评\n"


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS), library="hotel")
    return workshop


def test_libraries_are_listed_with_what_they_hold(workshop: Workshop, operate: httpx.Client) -> None:
    assert operate.get("/v1/libraries").json() == {"libraries": []}
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,差评\n"), library="hotel")
    workshop.freeze("hotel")
    (listed,) = operate.get("/v1/libraries").json()["libraries"]
    assert (listed["library"], listed["samples"], listed["snapshots"]) == ("hotel", 2, 1)
    details = operate.get("/v1/libraries/hotel").json()
    assert {name: details[name] for name in listed} == listed


def test_one_library_is_told_in_figures(hotel: Workshop, operate: httpx.Client) -> None:
    told = operate.get("/v1/libraries/hotel").json()
    assert told.pop("created_at")
    assert told == {
        "library": "hotel",
        "samples": 4,
        "snapshots": 0,
        "task": "single",
        "multiple": False,
        "level_sep": None,
        "label_sep": None,
        "labels": 3,
        "declared": False,
        "taxonomy_version": 1,
        "normaliser": {"width": "letters", "simplify": False, "markup": True},
        "labelled": 4,
        "unlabelled": 0,
        "conflicts": 1,
    }


def test_conflicts_are_listed_in_pages_with_what_each_side_says(hotel: Workshop, operate: httpx.Client) -> None:
    told = operate.get("/v1/libraries/hotel/conflicts").json()
    (dispute,) = told["conflicts"]
    assert (told["total"], dispute["text"]) == (1, "早餐凉")
    assert [event["labels"] for event in dispute["candidates"]] == [["中评"], ["差评"]]
    assert operate.get("/v1/libraries/hotel/conflicts?offset=1").json() == {"total": 1, "conflicts": []}


def test_agreement_is_measured(hotel: Workshop, operate: httpx.Client) -> None:
    for text, one, other in (("早餐凉", "差评", "差评"), ("隔音差", "差评", "中评")):
        for person, label in (("标注员甲", one), ("标注员乙", other)):
            label_sample(hotel.engine, library="hotel", sample=text, is_text=True, labels=[label], by=person)
    told = operate.get("/v1/libraries/hotel/agreement").json()
    assert (told["samples"], told["persons"], told["observed"]) == (2, {"标注员乙": 2, "标注员甲": 2}, 0.5)
    assert told["alpha"] == pytest.approx(0.0)
    (pair,) = told["pairs"]
    assert (pair["persons"], pair["samples"], pair["observed"]) == (["标注员乙", "标注员甲"], 2, 0.5)


def test_near_duplicates_are_listed_with_their_labels(hotel: Workshop, operate: httpx.Client) -> None:
    told = operate.get("/v1/libraries/hotel/duplicates").json()
    assert (told["samples"], told["groups"], told["grouped"], told["conflicting"]) == (4, 1, 2, 1)
    (group,) = told["page"]
    assert {member["text"]: member["labels"] for member in group["members"]} == {
        "房间很大很干净早餐也好": ["好评"],
        "房间很大很干净早餐也好啊": ["差评"],
    }
    (pair,) = group["pairs"]
    assert pair["conflict"]
    assert 0.8 <= pair["similarity"] < 1
    assert operate.get("/v1/libraries/hotel/duplicates?threshold=1&conflicting=true").json()["page"] == []


def test_http_answers_what_commands_print(hotel: Workshop, operate: httpx.Client) -> None:
    for person, label in (("标注员甲", "差评"), ("标注员乙", "中评")):
        label_sample(
            hotel.engine, library="hotel", sample="早餐凉", is_text=True, labels=[label], by=person, confidence=0.5
        )
    engine, near = hotel.engine, NearSettings()
    change = describe("差评", code="N", description="说的不好", aliases=["不满"])
    change_taxonomy(engine, "hotel", change, by="标注员甲", note="写明")
    told = history(engine, library="hotel", sample="早餐凉", is_text=True)
    printed: dict[str, Mapping[str, Any]] = {
        "/v1/libraries/hotel/conflicts": disputes_shape(list_disputes(engine, library="hotel", limit=20)),
        "/v1/libraries/hotel/agreement": agreement_shape(measure_agreement(engine, library="hotel")),
        "/v1/libraries/hotel/duplicates": duplicates_shape(
            find_duplicates(engine, library="hotel", settings=near, limit=20, members=20), near
        ),
        "/v1/samples?library=hotel": samples_shape(browse(engine, library="hotel")),
        f"/v1/samples/{told.sample.id}?library=hotel": history_shape(told),
        "/v1/taxonomy?library=hotel": taxonomy_shape(*show_taxonomy(engine, "hotel")),
        "/v1/taxonomy/versions?library=hotel": versions_shape("hotel", list_versions(engine, "hotel")),
    }
    for path, shape in printed.items():
        assert operate.get(path).json() == json.loads(json.dumps(shape)), path


def test_who_looks_for_duplicates_too_often_at_once_is_told_to_wait(hotel: Workshop, settings: Settings) -> None:
    create_user(hotel.engine, "operator", Scope.OPERATE, actor="root")
    key = create_key(hotel.engine, user="operator", scope=Scope.OPERATE, actor="root")
    with serving(create_app(settings, keyring=Keyring(hotel.engine))) as server:
        tasks = server.app.state.long_work.tasks
        path, headers = "/v1/libraries/hotel/duplicates", {"Authorization": f"Bearer {key.secret.text}"}
        with tasks.one("operator"), tasks.one("operator"):
            answer = server.client.get(path, headers=headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) > 0
        assert server.client.get(path, headers=headers).status_code == 200


REFUSED = (
    ("/nowhere", 404, "unknown_library", "libraries: hotel"),
    ("/nowhere/conflicts", 404, "unknown_library", "libraries: hotel"),
    ("/nowhere/agreement", 404, "unknown_library", "libraries: hotel"),
    ("/nowhere/duplicates", 404, "unknown_library", "libraries: hotel"),
    ("/a%00b", 422, "bad_input", "name: "),
    ("/%ED%A0%80", 422, "bad_input", "name: "),
    ("/" + "a" * 65, 422, "bad_input", "name: "),
    ("/..%2f..%2fetc", 404, "unknown_route", ""),
    ("/hotel/conflicts?limit=0", 422, "bad_input", "limit: "),
    ("/hotel/conflicts?limit=501", 422, "bad_input", "limit: "),
    (f"/hotel/conflicts?offset={2**70}", 422, "bad_input", "offset: "),
    ("/hotel/conflicts?offset=-1", 422, "bad_input", "offset: "),
    ("/hotel/conflicts?page=2", 422, "bad_input", "page: no such field"),
    ("/hotel/agreement", 422, "bad_input", "no sample that two persons labelled"),
    ("/hotel/duplicates?threshold=0.4", 422, "bad_input", "threshold: "),
    ("/hotel/duplicates?threshold=nan", 422, "bad_input", "threshold: "),
    ("/hotel/duplicates?members=1", 422, "bad_input", "members: "),
    ("/hotel/duplicates?conflicting=2", 422, "bad_input", "conflicting: "),
)


def test_what_can_not_be_had_is_told(hotel: Workshop, operate: httpx.Client) -> None:
    for path, status, code, part in REFUSED:
        answer = operate.get(f"/v1/libraries{path}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), f"{path} → {answer.text}"
        assert part in answer.json()["error"]["message"], f"{path} → {answer.text}"
