"""A library is examined over a real socket, on both databases."""

from collections.abc import Callable

import httpx
import pytest

from app.store.people import Scope
from app.store.tables import review_items
from tests.app.library.workshop import Workshop

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
