"""The review queue over a real socket, on both databases."""

from collections.abc import Callable

import httpx
import pytest

from app.library.review.claiming import claim_item
from app.library.revisions import describe
from app.library.taxonomies import change_taxonomy
from app.store.people import Scope
from model.text import sample_id
from tests.app.library.reviewing import ROWS, labels_of, queue, said, wanted
from tests.app.library.workshop import Workshop


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    queue(workshop, wanted("早餐凉了", 0.9, "差评"), wanted("房间很大", 0.5), wanted("隔音太差", 0.1, reason="hard"))
    return workshop


def code(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_items_are_listed_claimed_and_decided_by_the_user_of_the_key(operate: httpx.Client, reviews: Workshop) -> None:
    page = operate.get("/v1/reviews", params={"limit": 2}).json()
    assert (page["total"], [each["text"] for each in page["reviews"]]) == (3, ["早餐凉了", "房间很大"])
    review = operate.post("/v1/reviews/claim").json()["review"]
    assert (review["text"], review["proposed"], review["proposed_by"]) == ("早餐凉了", ["差评"], "linear@1a2b")
    assert (review["claimed_by"], review["sample"], review["persons"]) == ("operator", sample_id("早餐凉了"), 1)
    path = f"/v1/reviews/{review['item']}"
    done = operate.post(f"{path}/accept", json={"note": "凉了"}).json()
    assert (done["decided"], done["state"], done["labels"]) == (["差评"], "done", ["差评"])
    assert said(reviews, "早餐凉了") == [("operator", ("差评",))]
    assert code(operate.post(f"{path}/accept")) == (404, "unknown_review")
    undone = operate.post(f"{path}/undo").json()
    assert (undone["state"], undone["labels"]) == ("open", ["好评"])
    assert operate.post("/v1/reviews/claim", json={"item": review["item"], "lease": 60}).json()["review"]["item"]
    changed = operate.post(f"{path}/change", json={"labels": ["好评"]}).json()
    assert (changed["action"], changed["decided"]) == ("change", ["好评"])


def test_that_no_class_fits_is_decided_by_the_user_of_the_key(operate: httpx.Client, reviews: Workshop) -> None:
    item = operate.post("/v1/reviews/claim").json()["review"]["item"]
    done = operate.post(f"/v1/reviews/{item}/none", json={"note": "广告"}).json()
    assert (done["action"], done["decided"], done["state"], done["labels"]) == ("none", [], "done", None)
    assert said(reviews, "早餐凉了") == [("operator", ())]
    assert operate.get("/v1/reviews/stats").json()["today"] == {"operator": {"none": 1}}
    assert code(operate.post(f"/v1/reviews/{item}/none")) == (404, "unknown_review")
    assert operate.post(f"/v1/reviews/{item}/undo").json()["labels"] == ["好评"]
    assert code(operate.post(f"/v1/reviews/{item}/none", json={"labels": []})) == (422, "bad_input")


def test_items_are_skipped_and_given_back_until_nothing_is_left(operate: httpx.Client, reviews: Workshop) -> None:
    first = operate.post("/v1/reviews/claim", json={"reason": "hard"}).json()["review"]
    assert first["text"] == "隔音太差"
    released = operate.post(f"/v1/reviews/{first['item']}/release").json()
    assert released == {
        "item": first["item"],
        "library": "default",
        "sample": sample_id("隔音太差"),
        "state": "open",
    }
    for _ in range(3):
        item = operate.post("/v1/reviews/claim").json()["review"]["item"]
        assert operate.post(f"/v1/reviews/{item}/skip").json()["state"] == "open"
    assert operate.post("/v1/reviews/claim").json() == {"review": None}
    stats = operate.get("/v1/reviews/stats").json()
    assert (stats["open"], stats["held"], stats["reasons"]) == (3, 0, {"label_error": 2, "hard": 1})
    assert stats["today"] == {"operator": {"skip": 3}}


def test_samples_are_added_by_hand(operate: httpx.Client, reviews: Workshop) -> None:
    body = {"samples": [sample_id("前台热情")[:12], sample_id("房间很大")], "value": 0.4}
    assert operate.post("/v1/reviews", json=body).json() == {"library": "default", "added": 1, "raised": 0, "known": 1}
    assert code(operate.post("/v1/reviews", json={"samples": ["0" * 32]})) == (404, "unknown_sample")


def test_what_another_has_is_a_conflict_that_names_no_more_than_who_and_until_when(
    operate: httpx.Client, reviews: Workshop
) -> None:
    item = operate.get("/v1/reviews").json()["reviews"][0]["item"]
    claim_item(reviews.engine, item, by="标注员乙")
    for action in ("accept", "none", "skip", "release"):
        answer = operate.post(f"/v1/reviews/{item}/{action}")
        assert code(answer) == (409, "item_taken")
        assert f"review item {item} is with 标注员乙 until" in answer.json()["error"]["message"]
    assert code(operate.post("/v1/reviews/claim", json={"item": item})) == (409, "item_taken")
    assert operate.post("/v1/reviews/claim").json()["review"]["text"] == "房间很大"


def test_where_two_have_to_agree_the_first_word_stays_unseen(operate: httpx.Client, reviews: Workshop) -> None:
    change_taxonomy(reviews.engine, "default", describe("差评", reviewers=2), by="标注员甲")
    item = operate.post("/v1/reviews/claim").json()["review"]["item"]
    done = operate.post(f"/v1/reviews/{item}/change", json={"labels": ["差评"]}).json()
    assert (done["waits"], done["event"], done["state"]) == (True, None, "open")
    assert code(operate.post("/v1/reviews/claim", json={"item": item})) == (422, "bad_input")
    assert labels_of(reviews, "早餐凉了") == ("好评",)
    shown = operate.get("/v1/reviews").json()["reviews"][0]
    assert (shown["item"], shown["labels"], shown["persons"]) == (item, ["好评"], 2)
    assert "operator" not in str(shown)


def test_odd_requests_are_refused_and_nothing_is_decided(operate: httpx.Client, reviews: Workshop) -> None:
    item = operate.post("/v1/reviews/claim").json()["review"]["item"]
    for path, body, expected in (
        (f"{item}/change", {}, (422, "bad_input")),
        (f"{item}/change", {"labels": []}, (422, "bad_input")),
        (f"{item}/change", {"labels": ["没有的"]}, (422, "unknown_label")),
        (f"{item}/accept", {"by": "别人"}, (422, "bad_input")),
        (f"{item}/accept", {"note": "长" * 5000}, (422, "bad_input")),
        ("0/accept", {}, (422, "bad_input")),
        ("99/accept", {}, (404, "unknown_review")),
        ("99/undo", {}, (404, "unknown_review")),
        ("claim", {"item": 99}, (404, "unknown_review")),
        ("claim", {"lease": 0}, (422, "bad_input")),
        ("claim", {"reason": "none"}, (422, "bad_input")),
        ("claim?library=none", {}, (404, "unknown_library")),
    ):
        assert code(operate.post(f"/v1/reviews/{path}", json=body)) == expected, (path, body)
    assert said(reviews, "早餐凉了") == []


def test_answers_are_described_without_the_names_of_our_modules(operate: httpx.Client) -> None:
    schemas = operate.get("/openapi.json").json()["components"]["schemas"]
    assert {"QueuedShape", "QueuedByHandShape"} <= set(schemas)
    assert [name for name in schemas if "__" in name] == []


def test_whoever_may_only_classify_sees_no_reviews(client_of: Callable[[Scope], httpx.Client]) -> None:
    client = client_of(Scope.CLASSIFY)
    assert code(client.get("/v1/reviews")) == (403, "forbidden")
    assert code(client.post("/v1/reviews/claim")) == (403, "forbidden")
