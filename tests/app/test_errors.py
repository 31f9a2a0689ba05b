import pytest

from app.errors import (
    BodyTooLarge,
    ClientGone,
    Forbidden,
    NotJson,
    NotReady,
    RateLimited,
    SlowBody,
    Unauthorized,
    failure,
)
from model import errors
from model.errors import WenleiError


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotJson("x"), 400, "not_json"),
        (Unauthorized("x"), 401, "unauthorized"),
        (Forbidden("x"), 403, "forbidden"),
        (errors.UnknownModel("x"), 404, "unknown_model"),
        (SlowBody("x"), 408, "slow_body"),
        (BodyTooLarge("x"), 413, "body_too_large"),
        (errors.BadInput("x"), 422, "bad_input"),
        (errors.BadText("x"), 422, "bad_text"),
        (errors.BadTaxonomy("x"), 422, "bad_taxonomy"),
        (errors.BadSnapshot("x"), 422, "bad_snapshot"),
        (errors.UnknownLibrary("x"), 404, "unknown_library"),
        (RateLimited("x", retry_after=1), 429, "rate_limited"),
        (ClientGone("x"), 499, "client_gone"),
        (NotReady("x"), 503, "not_ready"),
        (errors.Overloaded("x", retry_after=0.2), 503, "overloaded"),
        (errors.MissingExtra("x"), 503, "missing_extra"),
    ],
)
def test_an_error_has_its_status_its_code_and_its_own_message(error: WenleiError, status: int, code: str) -> None:
    told = failure(error)
    assert (told.status, told.code, told.message) == (status, code, "x")


@pytest.mark.parametrize(("wait", "header"), [(0.01, "1"), (1.2, "2"), (30.0, "30")])
def test_an_overloaded_server_says_when_to_come_back_in_whole_seconds(wait: float, header: str) -> None:
    assert failure(errors.Overloaded("full", retry_after=wait)).headers == {"Retry-After": header}


@pytest.mark.parametrize("error", [ValueError("a secret"), errors.BadLogits("a secret"), WenleiError("a secret")])
def test_what_is_our_own_fault_is_not_explained_to_strangers(error: Exception) -> None:
    told = failure(error)
    assert (told.status, told.code) == (500, "internal")
    assert "secret" not in told.message
