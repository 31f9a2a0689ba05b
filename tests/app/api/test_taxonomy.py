"""/v1/taxonomy over a real socket, on both databases."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.library.snapshots import Conflicts
from app.store.people import Scope
from tests.app.library.workshop import Workshop

ROWS = "text,label\n房间大,好评\n早餐凉,中评\n隔音差,差评\n服务慢,差评\n"
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def reviews(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("a.csv", ROWS))
    return workshop


@pytest.fixture
def ask(reviews: Workshop, admin: httpx.Client) -> Ask:
    """The JSON of an answer that is a success: to a GET, or with a body to a POST."""

    def send(path: str = "", body: Any = None, **query: Any) -> dict[str, Any]:
        answer = admin.request("GET" if body is None else "POST", f"/v1/taxonomy{path}", json=body, params=query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return send


def labels(taxonomy: dict[str, Any]) -> dict[str, int]:
    """Label → samples that carry it."""
    return {each["label"]: each["samples"] for each in taxonomy["labels"]}


def test_a_change_is_foreseen_then_made_and_undone(reviews: Workshop, ask: Ask) -> None:
    frozen = reviews.freeze(conflicts=Conflicts.KEEP).snapshot
    before = ask()
    assert (before["version"], labels(before)) == (1, {"中评": 1, "好评": 1, "差评": 2})
    body = {"label": "差评", "to": "不满意", "note": "换个说法"}
    foreseen = ask("/rename", body, dry_run=True)
    assert ask() == before
    made = ask("/rename", body)
    assert {**foreseen, "applied": True} == made
    assert (made["version"], made["samples"], made["meanings"]) == (2, 2, {"差评": ["不满意"]})
    assert made["snapshots"] == [{"hash": frozen.hash, "samples": 2}]
    after = ask()
    assert labels(after) == {"不满意": 2, "中评": 1, "好评": 1}
    assert after["labels"][0] == {"label": "不满意", "samples": 2, "aliases": ["差评"]}
    assert ask("/undo", {})["version"] == 3
    assert labels(ask()) == labels(before)
    told = ask("/versions")
    assert told["total"] == 3
    assert [(each["kind"], each["by"], each["note"], each["undoes"]) for each in told["versions"]] == [
        ("import", "wenlei library import", None, None),
        ("rename", "operator", "换个说法", None),
        ("undo", "operator", None, 2),
    ]
    assert ask("/versions", limit=1, offset=1)["versions"] == told["versions"][1:2]


def test_every_change_is_made_over_http(ask: Ask) -> None:
    ask("/add", {"label": "疑问", "code": "Q", "description": "只提问", "aliases": ["提问"]})
    assert ask()["labels"][-1] == {
        "label": "疑问",
        "samples": 0,
        "code": "Q",
        "description": "只提问",
        "aliases": ["提问"],
    }
    ask("/describe", {"label": "Q", "reviewers": 2})
    assert ask()["labels"][-1]["reviewers"] == 2
    ask("/undo", {})
    assert "reviewers" not in ask()["labels"][-1]
    ask("/describe", {"label": "Q", "code": "", "aliases": []})
    assert ask()["labels"][-1] == {"label": "疑问", "samples": 0, "description": "只提问"}
    ask("/merge", {"labels": ["中评", "差评"], "into": "不满意"})
    assert labels(ask()) == {"不满意": 3, "好评": 1, "疑问": 0}
    split = ask("/split", {"label": "不满意", "into": ["设施差", "服务差"], "rest": "服务差"})
    assert (split["added"], split["removed"], split["unlabelled"]) == (["服务差", "设施差"], ["不满意"], 0)
    gone = ask("/remove", {"label": "服务差"})
    assert (gone["samples"], gone["unlabelled"]) == (3, 3)
    assert labels(ask()) == {"好评": 1, "疑问": 0, "设施差": 0}
    assert ask("/undo", {"version": gone["version"]})["kind"] == "undo"
    assert labels(ask())["服务差"] == 3


def test_classes_are_declared_and_moved_in_a_new_library(ask: Ask) -> None:
    classes = [
        {"name": "酒店", "code": "H"},
        {"name": "房间", "parent": "H", "description": "大小、隔音"},
        {"name": "早餐", "parent": "酒店", "aliases": ["早点"]},
        {"name": "交通"},
    ]
    body = {"classes": classes, "choices": ["single", "multi"]}
    foreseen = ask("/declare", body, library="hotel", dry_run="true")
    made = ask("/declare", body, library="hotel")
    assert {**foreseen, "applied": True} == made
    told = ask(library="hotel")
    assert (told["task"], told["level_sep"], told["declared"], told["multiple"]) == ("hierarchical", "/", True, True)
    assert (told["choices"], told["branches"]) == (["single", "multi"], {"酒店": {"code": "H"}})
    assert list(labels(told)) == ["酒店/房间", "酒店/早餐", "交通"]
    ask("/move", {"label": "酒店/早餐", "under": None}, library="hotel")
    assert list(labels(ask(library="hotel"))) == ["酒店/房间", "早餐", "交通"]


def test_who_operates_sees_the_taxonomy_and_does_not_change_it(
    reviews: Workshop, client_of: Callable[[Scope], httpx.Client]
) -> None:
    operate = client_of(Scope.OPERATE)
    before = operate.get("/v1/taxonomy").json()
    for path in ("declare", "add", "describe", "remove", "rename", "merge", "split", "move", "undo"):
        answer = operate.post(f"/v1/taxonomy/{path}?dry_run=true", json={"label": "差评"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert operate.get("/v1/taxonomy").json() == before


LONG = "长" * 201
REFUSED: tuple[tuple[str, Any, int, str, str], ...] = (
    ("/rename?library=nowhere", {"label": "差评", "to": "好"}, 404, "unknown_library", "libraries: default"),
    ("/rename?dry-run=true", {"label": "差评", "to": "好"}, 422, "bad_input", "dry-run: no such field"),
    ("/rename?dry_run=perhaps", {"label": "差评", "to": "好"}, 422, "bad_input", "dry_run: "),
    ("/rename", {"label": "差评"}, 422, "bad_input", "to: "),
    ("/rename", {"label": "差评", "to": LONG}, 422, "bad_input", "to: "),
    ("/rename", {"label": "差评", "to": "\0"}, 422, "bad_taxonomy", "the class's name is empty"),
    ("/rename", {"label": "差评", "to": "好评"}, 422, "bad_taxonomy", "there is a class '好评' already"),
    ("/rename", {"label": "差平", "to": "好"}, 422, "unknown_label", "'差平' is not in the taxonomy"),
    ("/rename", {"label": "差评", "to": "坏", "by": "标注员甲"}, 422, "bad_input", "by: no such field"),
    ("/rename", {"label": "差评", "to": "坏", "note": "长" * 1001}, 422, "bad_input", "note: "),
    ("/add", {"label": "疑问", "code": 7}, 422, "bad_input", "code: "),
    ("/add", {"label": "疑问", "aliases": "提问"}, 422, "bad_input", "aliases: "),
    ("/add", {"label": "疑问", "aliases": ["提问"] * 101}, 422, "bad_input", "aliases: "),
    ("/add", {"label": "疑问", "description": "长" * 2001}, 422, "bad_input", "description: "),
    ("/add", {"label": "疑问", "aliases": ["好评"]}, 422, "bad_taxonomy", "'好评' would mean both"),
    ("/describe", {"label": "差评"}, 422, "bad_input", "nothing to change"),
    ("/remove", {}, 422, "bad_input", "label: "),
    ("/merge", {"labels": [], "into": "坏"}, 422, "bad_input", "labels: "),
    ("/merge", {"labels": ["差评"] * 10_001, "into": "坏"}, 422, "bad_input", "labels: "),
    ("/split", {"label": "差评", "into": ["坏"]}, 422, "bad_taxonomy", "give two classes or more"),
    ("/move", {"label": "差评"}, 422, "bad_taxonomy", "has no levels"),
    ("/undo", {"version": 2**70}, 422, "bad_input", "version: "),
    ("/undo", {"version": True}, 422, "bad_input", "version: "),
    ("/undo", {"version": 1}, 422, "bad_taxonomy", "version 1"),
    ("/declare", {"classes": []}, 422, "bad_input", "classes: "),
    ("/declare", {"classes": [{"name": "好"}] * 20_001}, 422, "bad_input", "classes: "),
    ("/declare", {"classes": [{"name": "\0"}]}, 422, "bad_input", "classes, line 1: the class has no name"),
    ("/declare", {"classes": [{"name": "好评"}]}, 422, "bad_taxonomy", "classes lacks 中评, 差评"),
    ("/declare", {"classes": [{"name": "好", "colour": 1}]}, 422, "bad_input", "classes.0.colour: no such field"),
    ("/declare?library=new", {"classes": [{"name": "好"}, {"name": "好"}]}, 422, "bad_taxonomy", "line 2"),
    ("/declare?library=new", {"classes": [{"name": "好", "parent": "好"}]}, 422, "bad_taxonomy", "circle"),
    ("/declare?library=new", {"classes": [{"name": "好", "parent": "评"}]}, 422, "bad_taxonomy", "not declared"),
    ("/declare?library=new", {"classes": [{"name": "好"}], "task": "guess"}, 422, "bad_input", "task: "),
    ("/declare?library=new", {"classes": [{"name": "好"}], "level_sep": ""}, 422, "bad_input", "level_sep: "),
    ("/declare?library=new", {"classes": [{"name": "好"}], "choices": ["both"]}, 422, "bad_input", "choices.0: "),
    ("/declare?library=../x", {"classes": [{"name": "好"}]}, 422, "bad_input", "library: "),
    (
        "/declare?library=new",
        {"classes": [{"name": str(n), **({"parent": str(n - 1)} if n else {})} for n in range(2000)]},
        422,
        "bad_taxonomy",
        "levels",
    ),
)


def test_what_can_not_be_done_is_told_and_changes_nothing(ask: Ask, admin: httpx.Client) -> None:
    before = ask("/versions")
    for path, body, status, code, part in REFUSED:
        answer = admin.post(f"/v1/taxonomy{path}", json=body)
        asked = f"{path} {str(body)[:100]} → {answer.text}"
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), asked
        assert part in answer.json()["error"]["message"], asked
    assert ask("/versions") == before
    assert len(admin.get("/v1/libraries").json()["libraries"]) == 1
