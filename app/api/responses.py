"""Answers that are JSON already, and the one shape that every error has."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.errors import Failure, NotJson, failure
from model.errors import BadInput

# Starlette's own errors: nothing matches the path, or the path does not know the method.
CODES = {404: "unknown_route", 405: "wrong_method"}


def json_response(data: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """`data` as a JSON answer."""
    return Response(to_json(data), status, headers, media_type="application/json")


def error_response(error: Exception) -> Response:
    """What the client is told of `error`."""
    return _response(failure(error))


async def on_wenlei_error(request: Request, error: Exception) -> Response:
    """Handler for every error that is raised on purpose; where the server keeps its files is not told."""
    told = failure(error)
    return _response(replace(told, message=_without_home(told.message, request.app.state.settings.home)))


async def on_http_error(request: Request, error: Exception) -> Response:
    """Handler for what the router raises."""
    if not isinstance(error, HTTPException):
        return error_response(error)
    if error.status_code == 400:  # the body broke the parser itself
        return error_response(NotJson("the body is not JSON that can be read: not UTF-8, or nested too deep"))
    messages = {
        404: "there is no such address here; /docs lists them all",
        405: f"this address does not take {request.method}; /docs lists what it takes",
    }
    message = messages.get(error.status_code, error.detail)
    code = CODES.get(error.status_code, "http_error")
    return _response(Failure(error.status_code, code, message, dict(error.headers or {})))


async def on_bad_request(_: Request, error: Exception) -> Response:
    """Handler for a path, a query or a body that does not fit its schema: the first problem and its place."""
    if not isinstance(error, RequestValidationError):
        return error_response(error)
    problem = error.errors()[0]
    kind, *place = problem["loc"]
    if problem["type"] == "json_invalid":
        return error_response(NotJson(f"the body is not JSON: {problem['ctx']['error']}"))
    where = ".".join(map(str, place)) or kind
    if problem["type"] == "model_attributes_type":
        return error_response(BadInput(f"{where[:100]}: send a JSON object, with Content-Type: application/json"))
    if problem["type"] == "extra_forbidden":
        return error_response(BadInput(f"{where[:100]}: no such field; /docs lists those there are"))
    return error_response(BadInput(f"{where[:100]}: {problem['msg'][:300]}; /docs shows what it takes"))


def _without_home(message: str, home: Path) -> str:
    for place in (home.absolute(), home.resolve()):
        message = message.replace(f"{place}/", "")
    return message


def _response(told: Failure) -> Response:
    message = told.message.encode(errors="backslashreplace").decode()  # it may quote half a character
    return json_response({"error": {"code": told.code, "message": message}}, told.status, told.headers)
