"""A library is examined over a real socket, on both databases."""

from collections.abc import Callable

import httpx
import pytest

from app.store.people import Scope
from app.store.tables import review_items
from tests.app.library.workshop import Workshop
from tests.judged import sure_run

PATH = "/v1/libraries/hotel/doctor"
ROWS = "房间打扫得很干净床也很舒服,好评\n房间打扫得很干净床也很舒服呢,差评\n早餐的品种实在是太少了一点,差评\n"


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", "text,label\n" + ROWS), library="hotel")
    return workshop


def problem(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_library_is_examined_with_these_settings(operate: httpx.Client, hotel: Workshop) -> None:
    answer = operate.post(PATH, json={"near": 0.9, "max_length": 12})
    found = answer.json()
    assert answer.status_code == 200
    assert (found["library"], found["samples"], found["near"], found["max_length"]) == ("hotel", 3, 0.9, 12)
    assert found["queued"] is None
    by_kind = {finding["kind"]: finding for finding in found["findings"]}
    assert by_kind["duplicates"]["count"] == 1
    assert by_kind["lengths"]["count"] == 3
    assert by_kind["conflicts"]["examples"][0]["text"].startswith("房间打扫得很干净")


@pytest.mark.parametrize(("query", "accept"), [("?format=html", "*/*"), ("", "text/html,application/xml")])
def test_people_get_the_report(operate: httpx.Client, hotel: Workshop, query: str, accept: str) -> None:
    answer = operate.post(PATH + query, json={}, headers={"Accept": accept})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'sha256-")
    assert "样本库体检 · hotel" in answer.text


def test_findings_are_put_into_review_by_whoever_asks(operate: httpx.Client, hotel: Workshop) -> None:
    found = operate.post(PATH, json={"to_review": ["conflicts"]}).json()
    assert found["queued"] == {"added": 2, "raised": 0, "known": 0}
    with hotel.engine.connect() as connection:
        assert set(connection.scalars(review_items.select().with_only_columns(review_items.c.created_by))) == {
            "operator"
        }


def test_what_cannot_be_examined_is_refused_without_telling_folders(operate: httpx.Client, hotel: Workshop) -> None:
    assert problem(operate.post("/v1/libraries/none/doctor", json={})) == (404, "unknown_library")
    assert problem(operate.post(PATH, json={"to_review": ["nonsense"]})) == (422, "bad_input")
    assert problem(operate.post(PATH, json={"run": "../secrets"})) == (422, "bad_input")
    assert problem(operate.post(PATH, json={"near": 0.1})) == (422, "bad_input")
    assert problem(operate.post(PATH, json={"apply": "drop"})) == (422, "bad_input")
    assert problem(operate.post(PATH, json={"snapshot": "abcd"})) == (422, "bad_snapshot")
    answer = operate.post(PATH, json={"run": "folds"})
    assert problem(answer) == (422, "bad_run")
    assert answer.json()["error"]["message"].startswith("folds is not a run")
    assert str(hotel.home) not in answer.text


def test_it_takes_a_key_that_operates(client_of: Callable[[Scope], httpx.Client], hotel: Workshop) -> None:
    assert problem(client_of(Scope.CLASSIFY).post(PATH, json={})) == (403, "forbidden")


@pytest.fixture
def judged(workshop: Workshop) -> str:
    """The name of a training by folds that is sure of every label but one, which it would change."""
    lines = [
        f"第{number}间客房的感受{'不错' * (number % 5 + 1)},{('好评', '差评')[number % 2]}" for number in range(60)
    ]
    workshop.load(workshop.write("b.csv", "text,label\n" + "\n".join(lines)), library="hotel")
    frozen = workshop.freeze("hotel", test=0, dev=0, near=1.0).snapshot
    sure_run(workshop.home / "runs" / "folds", frozen)
    return "folds"


def test_labels_that_are_probably_wrong_are_cleaned_once_they_were_looked_at(
    operate: httpx.Client, judged: str
) -> None:
    asked = {"run": judged, "near": 1.0, "apply": {"action": "relabel", "min_confidence": 0.5, "dry_run": True}}
    foreseen = operate.post(PATH, json=asked).json()["applied"]
    assert (foreseen["found"], foreseen["changed"], foreseen["held_out"], foreseen["sweep"]) == (1, 1, 0, None)
    asked["apply"] = {"action": "relabel", "min_confidence": 0.5, "note": "第一轮"}
    done = operate.post(PATH, json=asked).json()["applied"]
    (sweep,) = operate.get("/v1/libraries/hotel/sweeps").json()["sweeps"]
    assert (done["changed"], done["sweep"]) == (1, sweep["sweep"])
    assert (sweep["kind"], sweep["actor"], sweep["by"], sweep["note"]) == ("relabel", "folds", "operator", "第一轮")


def test_cleaning_takes_a_run_and_a_confidence(operate: httpx.Client, judged: str) -> None:
    cleaning = {"action": "drop", "min_confidence": 0.9}
    missing = operate.post(PATH, json={"apply": cleaning})
    assert problem(missing) == (422, "bad_input")
    assert "name a training by folds with run" in missing.json()["error"]["message"]
    for wrong in ({"action": "drop"}, cleaning | {"min_confidence": 0.4}, cleaning | {"action": "burn"}):
        assert problem(operate.post(PATH, json={"run": judged, "apply": wrong})) == (422, "bad_input")
