import json
import math
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from app.api.schemas import ClassifyResponse, ErrorResponse
from app.main import create_app
from app.settings import Settings
from model.bundle import Bundle
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.types import Task, Taxonomy, Text
from tests.app.api.servers import Server, serving
from tests.bundles import tiny_bundle

TAGS = Taxonomy(Task.MULTI, ("便宜", "干净", "安静"), multiple=True)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("bundles") / "tiny")


@pytest.fixture(scope="module")
def server(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    tags = tiny_bundle(
        tmp_path_factory.mktemp("bundles") / "tags", name="tags", taxonomy=TAGS, thresholds={"干净": 0.1}
    )
    with serving(create_app(Settings(bundles=(bundle.path, tags.path), max_texts=100))) as running:
        yield running


def post(server: Server, body: object) -> tuple[int, dict]:
    answer = server.client.post("/v1/classify", json=body)
    return answer.status_code, answer.json()


def test_texts_are_answered_in_order_by_the_model_of_the_bundle(server: Server, bundle: Bundle) -> None:
    texts = ["房间很干净", "太吵闹了，不好！", "好", "早餐很好，价格便宜。" * 20]
    status, body = post(server, {"texts": texts, "top_k": 2})
    assert status == 200
    answer = ClassifyResponse.model_validate(body)
    assert (answer.model.name, answer.model.version) == ("tiny", bundle.version)
    expected = classify(OnnxClassifier.load(bundle), [Text(text) for text in texts], top_k=2)
    for result, prediction in zip(answer.results, expected, strict=True):
        assert [label.label for label in result.labels] == [label for label, _ in prediction.labels]
        assert [label.score for label in result.labels] == pytest.approx(
            [score for _, score in prediction.labels], abs=2e-6
        )
        assert (result.label, result.score) == (result.labels[0].label, result.labels[0].score)
        assert (result.abstained, result.truncated) == (prediction.abstained, prediction.truncated)
    assert [result.truncated for result in answer.results] == [False, False, False, True]


def test_one_label_is_given_unless_more_are_asked_for(server: Server) -> None:
    _, body = post(server, {"texts": ["好"]})
    assert len(body["results"][0]["labels"]) == 1
    _, body = post(server, {"texts": ["好"], "top_k": 5})
    assert len(body["results"][0]["labels"]) == 2


def test_a_pair_is_not_two_texts(server: Server) -> None:
    _, body = post(
        server, {"texts": [{"text": "好", "text_pair": "坏"}, {"text": "好"}, "好", {"text": "好", "text_pair": None}]}
    )
    pair, *alone = body["results"]
    assert alone[0] == alone[1] == alone[2] != pair


def test_another_model_is_asked_by_its_name(server: Server) -> None:
    status, body = post(server, {"texts": ["好"], "model": "tags", "top_k": 3})
    assert (status, body["model"]["name"]) == (200, "tags")
    assert {label["label"] for label in body["results"][0]["labels"]} == set(TAGS.labels)


def test_two_hundred_callers_at_once_each_get_their_own_answers(server: Server, bundle: Bundle) -> None:
    requests = [
        ["好坏快慢贵"[(number + row) % 5] * (number % 40 + row + 1) for row in range(number % 7 + 1)]
        for number in range(200)
    ]
    classifier = OnnxClassifier.load(bundle)

    def ask(texts: list[str]) -> list[dict]:
        answer = server.client.post("/v1/classify", json={"texts": texts})
        assert answer.status_code == 200, answer.text
        return answer.json()["results"]

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(ask, requests))
    for texts, results in zip(requests, answers, strict=True):
        expected = classify(classifier, [Text(text) for text in texts])
        assert [result["label"] for result in results] == [prediction.label for prediction in expected]
        assert [result["score"] for result in results] == pytest.approx(
            [prediction.score for prediction in expected], abs=1e-5
        )


BAD_JSON = {
    "": "the body is empty",
    "   ": "the body is empty",
    "{": "line 1, column 2",
    '{"texts": ["好"]} x': "line 1, column 18",
    "texts=好": "line 1, column 1",
    "[" * 100_000: "nested too deep",
    "9" * 10_000: "a number too long",
    "\ufeff{}": "BOM",
}
BAD_REQUESTS = {
    "[]": "the body is not a JSON object",
    "null": "the body is not a JSON object",
    '"好"': "the body is not a JSON object",
    "{}": "texts: the field is missing",
    '{"texts": null}': "texts: expected a list",
    '{"texts": "好"}': "texts: expected a list",
    '{"texts": {"text": "好"}}': "texts: expected a list",
    '{"texts": []}': "texts: the list is empty",
    '{"texts": [["好", "坏"]]}': "texts[0]: expected a string or",
    '{"texts": ["好", null]}': "texts[1]: expected a string or",
    '{"texts": ["好", 7]}': "texts[1]: expected a string or",
    '{"texts": [NaN]}': "texts[0]: expected a string or",
    '{"texts": ["好", {}]}': "texts[1].text: the field is missing",
    '{"texts": ["好", {"text": 1}]}': "texts[1].text: expected a string",
    '{"texts": [{"text": "好", "text_pair": ["坏"]}]}': "texts[0].text_pair: expected a string",
    '{"texts": [{"text": "好", "pair": "坏"}]}': "texts[0].pair: no such field",
    '{"texts": ["好"], "top_k": 0}': "top_k: ",
    '{"texts": ["好"], "top_k": -1}': "top_k: ",
    '{"texts": ["好"], "top_k": 1001}': "top_k: ",
    '{"texts": ["好"], "top_k": 1e400}': "top_k: ",
    '{"texts": ["好"], "top_k": NaN}': "top_k: ",
    '{"texts": ["好"], "top_k": "1"}': "top_k: ",
    '{"texts": ["好"], "top_k": true}': "top_k: ",
    '{"texts": ["好"], "top_k": null}': "top_k: ",
    '{"texts": ["好"], "model": 1}': "model: ",
    '{"texts": ["好"], "\\ud800": 1}': r"\ud800: no such field; the fields are texts, top_k and model",
    '{"texts": [{"text": "好", "\\ud800": 1}]}': r"texts[0].\ud800: no such field",
    '{"\\ud800": "好"}': r"\ud800: no such field",
    '{"texts": ["好"], "topk": 1}': "topk: no such field; the fields are texts, top_k and model",
    json.dumps({"texts": ["好"] * 101}): "texts: 101 texts in one request, the limit is 100",
}
BAD_TEXTS = {
    '{"texts": ["好", ""]}': "texts[1]: the text is empty; leave it out",
    '{"texts": ["好", " \\n"]}': "texts[1]: the text is empty; leave it out",
    '{"texts": ["好", "\\u200b"]}': "texts[1]: the text is empty; leave it out",
    '{"texts": ["\\ud800"]}': "texts[0]: character 1 is half of a surrogate pair",
    '{"texts": [{"text": "好", "text_pair": "坏\\udc00"}]}': "texts[0].text_pair: character 2 is half of",
    '{"texts": [{"text": "好", "text_pair": ""}]}': "texts[0].text_pair: the text is empty",
    json.dumps({"texts": ["好", "长" * 100_000]}): "texts[1]: the text has 100,000 characters, more than 20,000",
}


def told(server: Server, body: bytes) -> tuple[int, str, str]:
    answer = server.client.post("/v1/classify", content=body)
    error = ErrorResponse.model_validate_json(answer.content).error
    return answer.status_code, error.code, error.message


@pytest.mark.parametrize(
    ("body", "status", "code", "message"),
    [
        *[(body, 400, "not_json", message) for body, message in BAD_JSON.items()],
        *[(body, 422, "bad_input", message) for body, message in BAD_REQUESTS.items()],
        *[(body, 422, "bad_text", message) for body, message in BAD_TEXTS.items()],
        (
            '{"texts": ["好"], "model": "不存在"}',
            404,
            "unknown_model",
            'model: "不存在" is not served here, only tiny, tags',
        ),
        ('{"texts": ["好"], "model": "\\ud800"}', 404, "unknown_model", r'model: "\ud800" is not served here'),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_request_is_told_what_is_wrong_and_where(
    server: Server, body: str, status: int, code: str, message: str
) -> None:
    assert told(server, body.encode())[:2] == (status, code)
    assert message in told(server, body.encode())[2]


def test_a_body_that_is_not_utf_8_is_told_so(server: Server) -> None:
    gbk = '{"texts": ["这家店"]}'.encode("gb18030")
    assert told(server, gbk) == (400, "not_json", "the body is not UTF-8: byte 12 can't be read; encode it as UTF-8")


def test_json_is_read_whatever_its_content_type(server: Server) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8"):
        answer = server.client.post(
            "/v1/classify", content='{"texts": ["好"]}'.encode(), headers={"Content-Type": content_type}
        )
        assert answer.status_code == 200


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
item = anything | st.text(max_size=200) | st.fixed_dictionaries({"text": anything}, optional={"text_pair": anything})
almost = st.fixed_dictionaries(
    {"texts": st.lists(item, max_size=8) | anything}, optional={"top_k": anything, "model": anything, "x": anything}
)


@hypothesis_settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=almost.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=200))
def test_no_body_whatever_makes_the_server_fail(server: Server, body: bytes) -> None:
    answer = server.client.post("/v1/classify", content=body)
    assert answer.status_code in {200, 400, 404, 422}
    if answer.status_code == 200:
        results = ClassifyResponse.model_validate_json(answer.content).results
        assert all(math.isfinite(result.score) for result in results)
    else:
        assert ErrorResponse.model_validate_json(answer.content).error.message


def test_the_documentation_shows_the_schemas_of_the_request_and_its_answers(server: Server) -> None:
    document = server.client.get("/openapi.json").json()
    operation = document["paths"]["/v1/classify"]["post"]
    request = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(request["properties"]) == {"texts", "top_k", "model"}
    assert set(operation["responses"]) == {"200", "400", "401", "403", "404", "413", "422", "429", "503"}
    assert server.client.get("/docs").status_code == 200
    for reference in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(document))):
        assert reduce(dict.__getitem__, reference.split("/"), document)


def test_two_bundles_of_one_name_are_refused(bundle: Bundle, tmp_path: Path) -> None:
    twin = tiny_bundle(tmp_path / "twin")
    app = create_app(Settings(bundles=(bundle.path, twin.path)))
    with serving(app, ready=False) as running:
        while not app.state.registry.error:
            running.client.get("/health/live")
        assert 'two bundles are named "tiny"' in str(app.state.registry.error)
        assert running.client.get("/health/ready").status_code == 503
