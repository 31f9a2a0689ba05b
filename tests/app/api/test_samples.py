"""/v1/samples and /v1/events over a real socket, on both databases."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from typing import Any

import httpx
import pytest

from app.api.work import WORDS
from app.library.history import history
from app.library.labelling import undo_event
from app.people.accounts import create_key, create_user
from app.store.database import connect, writing
from app.store.libraries import lock_library
from app.store.people import Scope
from model.text import sample_id
from tests.app.api.servers import EachThreadItsOwn
from tests.app.library.workshop import Workshop

ROWS = "text,label\n房间大,好评\n早餐凉,中评\n早餐凉,差评\n隔音差,差评\n离地铁近,好评\n"
COLD, BIG = sample_id("早餐凉"), sample_id("房间大")
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    """Samples of one kind each: labelled, in conflict, and, the last one, without a label."""
    workshop.load(workshop.write("a.csv", ROWS))
    said = history(workshop.engine, library="default", sample="离地铁近", is_text=True).blame()
    undo_event(workshop.engine, said.event.id, by="标注员甲")
    return workshop


@pytest.fixture
def ask(reviews: Workshop, operate: httpx.Client) -> Ask:
    """The JSON of an answer that is a success."""

    def send(method: str, path: str, body: Any = None, **query: Any) -> dict[str, Any]:
        answer = operate.request(method, path, json=body, params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return send


@pytest.fixture
def someone(reviews: Workshop, operate: httpx.Client) -> Callable[[str], httpx.Client]:
    """Makes a client of a user of that name."""

    def make(name: str) -> httpx.Client:
        create_user(reviews.engine, name, Scope.OPERATE, actor="root")
        key = create_key(reviews.engine, user=name, scope=Scope.OPERATE, actor="root")
        return httpx.Client(
            base_url=operate.base_url,
            headers={"Authorization": f"Bearer {key.secret.text}"},
            transport=EachThreadItsOwn(),
        )

    return make


def texts(page: dict[str, Any]) -> list[str]:
    return [sample["text"] for sample in page["samples"]]


def test_samples_are_listed_in_pages_in_the_order_of_arrival(ask: Ask) -> None:
    page = ask("GET", "/v1/samples", per_page=3)
    assert (page["total"], page["total_is_exact"]) == (4, True)
    assert texts(page) == ["房间大", "早餐凉", "隔音差"]
    first = page["samples"][0]
    assert (first["id"], first["labels"], first["conflict"], first["line"]) == (BIG, ["好评"], False, 2)
    assert first["source"] == "a.csv"
    assert texts(ask("GET", "/v1/samples", per_page=3, page=2)) == ["离地铁近"]
    walked = ask("GET", "/v1/samples", per_page=3, after=page["next"])
    assert (texts(walked), walked["total"], walked["next"]) == (["离地铁近"], None, None)


SEARCHES: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"q": "凉"}, ["早餐凉"]),
    ({"q": "隔音"}, ["隔音差"]),
    ({"q": "%"}, []),
    ({"label": "差评"}, ["隔音差"]),
    ({"unlabelled": True}, ["离地铁近"]),
    ({"conflict": True}, ["早餐凉"]),
    ({"sort": "-arrival"}, ["离地铁近", "隔音差", "早餐凉", "房间大"]),
    ({"q": "差", "label": "好评"}, []),
)


def test_samples_are_searched_filtered_and_sorted(ask: Ask) -> None:
    for query, found in SEARCHES:
        assert texts(ask("GET", "/v1/samples", **query)) == found, query


def test_a_label_bears_the_name_of_the_keys_user(ask: Ask) -> None:
    said = {"labels": ["差评"], "confidence": 0.9, "note": "看过原文"}
    spoken = ask("POST", f"/v1/samples/{COLD[:10]}/labels", said)
    assert (spoken["sample"], spoken["labels"], spoken["conflict"]) == (COLD, ["差评"], False)
    told = ask("GET", f"/v1/samples/{COLD[:10]}")
    assert (told["sample"], told["text"], told["labels"]) == (COLD, "早餐凉", ["差评"])
    assert [(event["kind"], event["current"]) for event in told["events"]] == [
        ("import", False),
        ("import", False),
        ("person", True),
    ]
    last = told["events"][-1]
    assert (last["event"], last["who"], last["confidence"], last["note"]) == (
        spoken["event"],
        "operator",
        0.9,
        "看过原文",
    )
    assert ask("GET", "/v1/samples/by-text", text=" 早餐凉 ") == told


def test_a_text_may_belong_to_no_class(ask: Ask) -> None:
    spoken = ask("POST", f"/v1/samples/{BIG}/labels", {"none": True, "note": "广告"})
    assert (spoken["labels"], spoken["conflict"]) == (None, False)
    told = ask("GET", f"/v1/samples/{BIG}")
    assert (told["labels"], told["events"][-1]["who"], told["events"][-1]["labels"]) == (None, "operator", [])
    assert ask("POST", f"/v1/samples/{COLD}/labels", {"labels": [], "none": True})["labels"] is None
    assert ask("POST", f"/v1/samples/{COLD}/labels", {"labels": ["差评"], "none": False})["labels"] == ["差评"]
    assert ask("POST", f"/v1/events/{spoken['event']}/undo")["labels"] == ["好评"]


def test_an_event_is_undone_and_the_undo_too(ask: Ask) -> None:
    spoken = ask("POST", f"/v1/samples/{BIG}/labels", {"labels": ["中评"]})
    undone = ask("POST", f"/v1/events/{spoken['event']}/undo", {"note": "看错了"})
    assert (undone["undoes"], undone["labels"]) == (spoken["event"], ["好评"])
    assert ask("POST", f"/v1/events/{undone['event']}/undo")["labels"] == ["中评"]
    events = ask("GET", f"/v1/samples/{BIG}")["events"]
    assert [(event["who"], event["note"]) for event in events[-2:]] == [("operator", "看错了"), ("operator", None)]


def test_two_people_who_label_one_sample_at_once_are_both_kept(
    reviews: Workshop, operate: httpx.Client, someone: Callable[[str], httpx.Client]
) -> None:
    given = {"标注员甲": "好评", "标注员乙": "差评"}
    with someone("标注员甲") as one, someone("标注员乙") as other, ThreadPoolExecutor(20) as pool:
        answers = [
            pool.submit(client.post, f"/v1/samples/{COLD}/labels", json={"labels": [said]})
            for _ in range(10)
            for client, said in ((one, "好评"), (other, "差评"))
        ]
        spoken = [answer.result() for answer in answers]
    assert {answer.status_code for answer in spoken} == {200}
    told = operate.get(f"/v1/samples/{COLD}").json()
    persons = [event for event in told["events"] if event["kind"] == "person"]
    assert {event["event"] for event in persons} == {answer.json()["event"] for answer in spoken}
    assert len(persons) == 20
    assert all(event["labels"] == [given[event["who"]]] for event in persons)
    assert told["labels"] == persons[-1]["labels"]
    assert told["conflict"]


def test_who_labels_while_the_library_is_locked_waits_or_is_told_to_and_others_go_on(
    reviews: Workshop, operate: httpx.Client
) -> None:
    def say() -> httpx.Response:
        return operate.post(f"/v1/samples/{BIG}/labels", json={"labels": ["差评"]})

    operate.get("/v1/libraries")  # from here on the server knows the key
    with ThreadPoolExecutor(20) as pool:
        with connect(reviews.engine) as connection, writing(connection):
            lock_library(connection, "default")  # as a long import does
            saying = [pool.submit(say) for _ in range(20)]
            refused = [answer.result() for answer in islice(as_completed(saying), 20 - WORDS)]
            assert len(operate.get("/v1/samples").json()["samples"]) == 4
            assert operate.get(f"/v1/samples/{BIG}").json()["labels"] == ["好评"]
        spoken = [answer.result() for answer in saying if answer.result() not in refused]
    assert {answer.status_code for answer in refused} == {503}
    assert {answer.json()["error"]["code"] for answer in refused} == {"overloaded"}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert [answer.status_code for answer in spoken] == [200] * WORDS
    events = operate.get(f"/v1/samples/{BIG}").json()["events"]
    assert {event["event"] for event in events[1:]} == {answer.json()["event"] for answer in spoken}


def test_a_key_that_only_classifies_opens_no_samples(
    reviews: Workshop, client_of: Callable[[Scope], httpx.Client]
) -> None:
    narrow = client_of(Scope.CLASSIFY)
    for answer in (
        narrow.get("/v1/samples"),
        narrow.get(f"/v1/samples/{BIG}"),
        narrow.post(f"/v1/samples/{BIG}/labels", json={"labels": ["差评"]}),
        narrow.post("/v1/events/1/undo"),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert len(client_of(Scope.OPERATE).get(f"/v1/samples/{BIG}").json()["events"]) == 1


LABELS = f"/v1/samples/{BIG}/labels"


Refused = tuple[str, str, str | bytes | None, int, str, str]
REFUSED: tuple[Refused, ...] = (
    ("GET", "/v1/samples?library=nowhere", None, 404, "unknown_library", "libraries: default"),
    ("GET", "/v1/samples?library=a%00b", None, 422, "bad_input", "library: "),
    ("GET", "/v1/samples?libary=default", None, 422, "bad_input", "libary: no such field"),
    ("GET", "/v1/samples?page=0", None, 422, "bad_input", "page: "),
    ("GET", f"/v1/samples?page={2**70}", None, 422, "bad_input", "page: "),
    ("GET", "/v1/samples?per_page=501", None, 422, "bad_input", "per_page: "),
    ("GET", "/v1/samples?per_page=many", None, 422, "bad_input", "per_page: "),
    ("GET", "/v1/samples?conflict=maybe", None, 422, "bad_input", "conflict: "),
    ("GET", "/v1/samples?sort=colour", None, 422, "bad_input", "give one of arrival"),
    ("GET", "/v1/samples?sort=%00", None, 422, "bad_input", "sort: a NUL character"),
    ("GET", "/v1/samples?q=%00", None, 422, "bad_input", "q: a NUL character"),
    ("GET", f"/v1/samples?q={'a' * 1001}", None, 422, "bad_input", "q: "),
    ("GET", "/v1/samples?label=%E5%A5%BD%E8%AF%84x", None, 422, "unknown_label", "好评x"),
    ("GET", "/v1/samples?label=a&unlabelled=1", None, 422, "bad_input", "exclude each other"),
    ("GET", "/v1/samples?after=%00", None, 422, "bad_input", "after: "),
    ("GET", f"/v1/samples?after={'0' * 32}", None, 404, "unknown_sample", "take next of a page"),
    ("GET", "/v1/samples/zz", None, 404, "unknown_sample", "'zz'"),
    ("GET", "/v1/samples/ffffffff", None, 404, "unknown_sample", "'ffffffff'"),
    ("GET", "/v1/samples/%00", None, 404, "unknown_sample", "whose id begins with"),
    ("GET", f"/v1/samples/{'0' * 33}", None, 422, "bad_input", "id: "),
    ("GET", "/v1/samples/by-text", None, 422, "bad_input", "text: "),
    ("GET", "/v1/samples/by-text?text=%20", None, 422, "bad_text", "the text is empty"),
    ("GET", "/v1/samples/by-text?text=%00", None, 422, "bad_input", "text: "),
    ("GET", f"/v1/samples/by-text?text={'a' * 5001}", None, 422, "bad_input", "text: "),
    ("GET", "/v1/samples/by-text?text=%ED%A0%80", None, 404, "unknown_sample", "no sample with the text"),
    ("POST", LABELS, b"", 422, "bad_input", "body: "),
    ("POST", LABELS, b"{", 400, "not_json", "the body is not JSON"),
    ("POST", LABELS, b"\xff\xfe", 400, "not_json", "the body is not JSON"),
    ("POST", LABELS, b"[" * 100_000, 400, "not_json", "the body is not JSON"),
    ("POST", LABELS, b'{"labels": ["a"], "confidence": ' + b"9" * 5000 + b"}", 400, "not_json", "not JSON"),
    ("POST", LABELS, b"[]", 422, "bad_input", "body: "),
    ("POST", LABELS, b"{}", 422, "bad_input", "labels: "),
    ("POST", LABELS, '{"labels": "好评"}', 422, "bad_input", "labels: "),
    ("POST", LABELS, '{"labels": []}', 422, "bad_input", "labels: "),
    ("POST", LABELS, '{"none": false}', 422, "bad_input", 'give at least one, or "none": true where no class fits'),
    ("POST", LABELS, '{"labels": ["好评"], "none": true}', 422, "bad_input", 'give either labels or "none": true'),
    ("POST", LABELS, '{"labels": ["好评"], "none": 1}', 422, "bad_input", "none: "),
    ("POST", LABELS, '{"labels": [""]}', 422, "bad_input", "labels.0: "),
    ("POST", LABELS, '{"labels": [1]}', 422, "bad_input", "labels.0: "),
    ("POST", LABELS, '{"labels": [null]}', 422, "bad_input", "labels.0: "),
    ("POST", LABELS, '{"labels": ["\\ud800"]}', 422, "bad_input", "labels.0: "),
    ("POST", LABELS, '{"labels": ["\\u0000"]}', 422, "bad_input", "the label is empty"),
    ("POST", LABELS, '{"labels": ["好评", "差评"]}', 422, "bad_input", ""),
    ("POST", LABELS, '{"labels": ["好平"]}', 422, "unknown_label", "'好平' is not in the taxonomy"),
    ("POST", LABELS, b'{"labels": ["' + b"a" * 201 + b'"]}', 422, "bad_input", "labels.0: "),
    ("POST", LABELS, '{"labels": ["好评"], "confidence": 1.5}', 422, "bad_input", "confidence: "),
    ("POST", LABELS, '{"labels": ["好评"], "confidence": NaN}', 422, "bad_input", "confidence: "),
    ("POST", LABELS, '{"labels": ["好评"], "confidence": 1e999}', 422, "bad_input", "confidence: "),
    ("POST", LABELS, '{"labels": ["好评"], "confidence": "0.5"}', 422, "bad_input", "confidence: "),
    ("POST", LABELS, b'{"labels": ["a"], "note": "' + b"a" * 1001 + b'"}', 422, "bad_input", "note: "),
    ("POST", LABELS, '{"labels": ["好评"], "by": "标注员乙"}', 422, "bad_input", "by: no such field"),
    ("POST", LABELS, '{"labels": ["好评"], "\\ud800": 1}', 422, "bad_input", "body: "),
    ("POST", LABELS + "?dry_run=true", '{"labels": ["差评"]}', 422, "bad_input", "dry_run: no such field"),
    ("POST", "/v1/events/0/undo", None, 422, "bad_input", "number: "),
    ("POST", f"/v1/events/{2**70}/undo", None, 422, "bad_input", "number: "),
    ("POST", "/v1/events/" + "9" * 5000 + "/undo", None, 422, "bad_input", "number: "),
    ("POST", "/v1/events/one/undo", None, 422, "bad_input", "number: "),
    ("POST", f"/v1/events/{2**63 - 1}/undo", None, 404, "unknown_event", "there is no event"),
    ("POST", "/v1/events/1/undo", '{"why": ""}', 422, "bad_input", "why: no such field"),
    ("DELETE", "/v1/events/1", None, 403, "forbidden", "needs admin"),
)


def test_what_can_not_be_done_is_told_and_changes_nothing(ask: Ask, operate: httpx.Client) -> None:
    before = ask("GET", f"/v1/samples/{BIG}")
    for method, path, body, status, code, part in REFUSED:
        answer = operate.request(method, path, content=body, headers={"Content-Type": "application/json"})
        asked = f"{method} {path[:100]} {str(body)[:100]} → {answer.text}"
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), asked
        assert part in answer.json()["error"]["message"], asked
    assert ask("GET", f"/v1/samples/{BIG}") == before


def test_a_body_of_another_type_is_told_what_to_send(reviews: Workshop, operate: httpx.Client) -> None:
    answer = operate.post(LABELS, content='{"labels": ["差评"]}', headers={"Content-Type": "text/plain"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_input")
    assert "Content-Type: application/json" in answer.json()["error"]["message"]
