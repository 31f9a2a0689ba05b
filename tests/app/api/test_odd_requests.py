"""Whatever is sent, the answer is what was asked for or an error in the one shape, and never that the server failed."""

import json
from typing import Any
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.library.review.queueing import queue_by_hand
from model.text import sample_id
from tests.app.library.workshop import Workshop

ODD = ["", "\0", "\ud800", "\u202e", " ", "%", "'", '"', "\\", "/", "../x", "1", "true", "default", "酒" * 3000]
strings = st.one_of(st.sampled_from(["好评", "中评", "差评"]), st.text(max_size=20), st.sampled_from(ODD))
numbers = st.one_of(st.sampled_from([0, -1, 1, 0.5, 2**31, 2**63, 2**70, 10**400, 1e308]), st.floats())
lists = st.lists(strings, max_size=4)
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, strings),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings, inner, max_size=3)),
    max_leaves=6,
)
details = {"code": strings, "description": strings, "aliases": lists}
note = {"note": strings}
classes = st.lists(st.fixed_dictionaries({"name": strings}, optional={"parent": strings, **details}), max_size=4)
tasks = st.sampled_from(["single", "multi", "hierarchical"])
choices = st.lists(st.sampled_from(["single", "multi"]), max_size=3)
# What each route takes, so that what is odd gets as far as it can: first what must be there, then what may.
POSTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "/v1/taxonomy/declare": ({"classes": classes}, {"task": tasks, "level_sep": strings, "choices": choices, **note}),
    "/v1/taxonomy/add": ({"label": strings}, {"before": strings, **details, **note}),
    "/v1/taxonomy/describe": ({"label": strings}, {**details, **note}),
    "/v1/taxonomy/remove": ({"label": strings}, note),
    "/v1/taxonomy/rename": ({"label": strings, "to": strings}, note),
    "/v1/taxonomy/merge": ({"labels": lists, "into": strings}, note),
    "/v1/taxonomy/split": ({"label": strings, "into": lists}, {"rest": strings, **note}),
    "/v1/taxonomy/move": ({"label": strings}, {"under": strings, **note}),
    "/v1/taxonomy/undo": ({}, {"version": numbers, **note}),
    f"/v1/samples/{sample_id('房间大')}/labels": (
        {"labels": lists},
        {"none": st.booleans(), "confidence": numbers, **note},
    ),
    "/v1/events/1/undo": ({}, note),
    "/v1/reviews": ({"samples": lists}, {"value": numbers}),
    "/v1/reviews/claim": ({}, {"item": numbers, "reason": strings, "lease": numbers}),
    "/v1/reviews/1/change": ({"labels": lists}, note),
    **{f"/v1/reviews/1/{action}": ({}, note) for action in ("accept", "none", "skip", "undo", "release")},
}
segments = strings.map(lambda text: quote(text, safe="", errors="surrogatepass"))
gets = st.one_of(
    st.sampled_from(["/v1/samples", "/v1/samples/by-text", "/v1/taxonomy", "/v1/taxonomy/versions", "/v1/libraries"]),
    st.sampled_from(["/v1/reviews", "/v1/reviews/stats"]),
    segments.map("/v1/samples/{}".format),
    st.tuples(
        st.one_of(st.just("default"), segments), st.sampled_from(["", "/conflicts", "/agreement", "/duplicates"])
    ).map("/v1/libraries/{0[0]}{0[1]}".format),
)
PARAMETERS = {
    **dict.fromkeys(["library", "q", "label", "sort", "after", "text", "reason"], strings),
    **dict.fromkeys(["page", "per_page", "limit", "offset", "threshold", "members"], numbers.map(str)),
    **dict.fromkeys(["unlabelled", "conflict", "conflicting", "dry_run"], st.sampled_from(["true", "0", "x"])),
}
odd_queries = st.lists(st.sampled_from(sorted(PARAMETERS)), min_size=1, max_size=2, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: PARAMETERS[name] for name in names})
)
queries = st.one_of(st.just({}), st.sampled_from([{"dry_run": "true"}, {"q": "凉"}, {"limit": "1"}]), odd_queries)


def posted(path: str) -> st.SearchStrategy[tuple[str, str, Any]]:
    needed, optional = POSTS[path]
    bodies = st.one_of(st.fixed_dictionaries(needed, optional=optional), values)
    return st.tuples(st.just("POST"), st.just(path), bodies)


requests = st.one_of(
    st.tuples(st.just("GET"), gets, st.none()),
    st.sampled_from(sorted(POSTS)).flatmap(posted),
)


def test_no_request_makes_the_server_fail(workshop: Workshop, admin: httpx.Client) -> None:
    workshop.load(workshop.write("a.csv", "text,label\n房间大,好评\n早餐凉,中评\n早餐凉,差评\n"))
    queue_by_hand(workshop.engine, library="default", samples=["房间大"], is_text=True, by="标注员甲")
    told = set()

    @settings(max_examples=600, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(requests, queries)
    def send(request: tuple[str, str, Any], query: dict[str, str]) -> None:
        method, path, body = request
        coded = "&".join(f"{name}={quote(value, errors='surrogatepass')}" for name, value in query.items())
        content = None if method == "GET" else json.dumps(body).encode()  # with NaN, and with halves of characters
        headers = {"Content-Type": "application/json"}
        answer = admin.request(method, f"{path}?{coded}"[:60_000], content=content, headers=headers)
        assert answer.status_code in {200, 307, 400, 404, 409, 422}, f"{answer.status_code} {answer.text}"
        if answer.status_code < 400:
            told.add("fine")
            return
        error = answer.json()["error"]
        assert set(error) == {"code", "message"}
        assert error["message"]
        told.add(error["code"])

    send()
    assert {"fine", "bad_input", "bad_taxonomy", "unknown_label", "unknown_library", "unknown_sample"} <= told
    listed = admin.get("/v1/samples").json()
    assert [sample["text"] for sample in listed["samples"]] == ["房间大", "早餐凉"]
