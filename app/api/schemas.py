"""What the classify endpoint takes and gives; the command line prints the same."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError

from app.errors import NotJson
from model.errors import BadInput
from model.text import check_text
from model.types import Prediction, Text

MAX_TOP_K = 1000
TEXT_FORMS = 'a string or {"text": …, "text_pair": …}'
SCORE_DIGITS = 6  # what float32 can hold


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class TextPair(_Body):
    """A text, or an ordered pair of texts."""

    text: str
    text_pair: str | None = None


class ClassifyRequest(_Body):
    """Texts to classify. `top_k`: labels wanted for each. `model`: a served model, if not the default one."""

    texts: Annotated[list[str | TextPair], FailFast()] = Field(min_length=1, examples=[["房间很干净，服务也周到。"]])
    top_k: int = Field(default=1, ge=1, le=MAX_TOP_K)
    model: str | None = None


class Label(_Body):
    """A label and its score, 0 to 1."""

    label: str
    score: float


class Result(_Body):
    """The answer for one text, best label first. `abstained`: not sure enough. `truncated`: the text was cut."""

    label: str
    score: float
    labels: list[Label]
    abstained: bool
    truncated: bool


class ModelName(_Body):
    """Which model answered."""

    name: str
    version: str


class ClassifyResponse(_Body):
    """One result a text, in the order of the texts."""

    model: ModelName
    results: list[Result]


class ErrorDetail(_Body):
    """What went wrong, for programs and for people."""

    code: str
    message: str


class ErrorResponse(_Body):
    """The body of every answer that is not a success."""

    error: ErrorDetail


def read_request(body: bytes, *, max_texts: int) -> tuple[list[Text], ClassifyRequest]:
    """The request in `body`, and its texts in the form in which classifiers take them.

    Raises:
        NotJson: it is not JSON or not UTF-8.
        BadInput: it is JSON, but not a request; the message names the place.
        BadText: a text is empty, too long, or not text.
    """
    try:
        request = ClassifyRequest.model_validate_json(body)
    except ValidationError as error:
        if error.errors()[0]["type"] == "json_invalid":
            request = _read_again(body)
        else:
            raise BadInput(_explain(error)) from None
    if len(request.texts) > max_texts:
        raise BadInput(
            f"texts: {len(request.texts)} texts in one request, the limit is {max_texts}; send them in parts"
        )
    return [_text(item, f"texts[{row}]") for row, item in enumerate(request.texts)], request


def results(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """`predictions` in the shape of `Result`."""
    shaped = []
    for prediction in predictions:
        labels = [{"label": label, "score": round(score, SCORE_DIGITS)} for label, score in prediction.labels]
        flags = {"abstained": prediction.abstained, "truncated": prediction.truncated}
        shaped.append({**labels[0], "labels": labels, **flags})
    return shaped


def answer(name: str, version: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The whole answer in the shape of `ClassifyResponse`."""
    return {"model": {"name": name, "version": version}, "results": results(predictions)}


def _text(item: str | TextPair, where: str) -> Text:
    if isinstance(item, str):
        return Text(check_text(item, where=where))
    pair = item.text_pair
    return Text(
        check_text(item.text, where=f"{where}.text"),
        None if pair is None else check_text(pair, where=f"{where}.text_pair"),
    )


def _read_again(body: bytes) -> ClassifyRequest:
    """Say why `body` could not be parsed; what only a stricter parser refuses (half characters) is no JSON error."""
    if not body.strip():
        raise NotJson('the body is empty; send JSON such as {"texts": ["…"]}')
    try:
        data = json.loads(body.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"the body is not UTF-8: byte {error.start} can't be read; encode it as UTF-8") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"the body is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise NotJson("the body is not JSON that can be read: nested too deep, or a number too long") from None
    try:
        return ClassifyRequest.model_validate(data)
    except ValidationError as error:
        raise BadInput(_explain(error)) from None


def _explain(error: ValidationError) -> str:
    """The first problem of `error`: its place, what is wrong, the way out. Never the text itself."""
    problem = error.errors(include_url=False)[0]
    match problem["loc"], problem["type"]:
        case (), "string_unicode":  # half a character in a name; in a text, `check_text` finds it
            return _no_such_field(problem["input"])
        case (), _:
            return 'the body is not a JSON object; send {"texts": ["…"]}'
        case ("texts",), "missing":
            return 'texts: the field is missing; send {"texts": ["…"]}'
        case ("texts",), "too_short":
            return "texts: the list is empty; send at least one text"
        case ("texts",), "list_type":
            return f"texts: expected a list, each item {TEXT_FORMS}"
        case ("texts", int(row), "str"), _ if not isinstance(problem["input"], dict):
            return f"texts[{row}]: expected {TEXT_FORMS}"
        case ("texts", int(row), "str"), _:
            return _explain_pair(error, row)
        case (*_, name), "extra_forbidden":
            return _no_such_field(str(name))
    return f"{problem['loc'][0]}: {problem['msg']}"


def _no_such_field(name: str) -> str:
    return f"{name[:100]}: no such field; the fields are texts, top_k and model"


def _explain_pair(error: ValidationError, row: int) -> str:
    """The problem with the object at `row`: the branch of the union that a string was not tried for."""
    problem = next(problem for problem in error.errors(include_url=False) if "TextPair" in problem["loc"])
    unreadable = problem["type"] == "string_unicode"
    name = str(problem["input"] if unreadable else problem["loc"][-1])[:100]
    match problem["type"]:
        case "extra_forbidden" | "string_unicode":
            return f"texts[{row}].{name}: no such field; send {TEXT_FORMS}"
        case "missing":
            return f"texts[{row}].{name}: the field is missing; send {TEXT_FORMS}"
    return f"texts[{row}].{name}: expected a string"
