"""The only table from errors to HTTP answers, and the errors that only HTTP knows."""

import math
from dataclasses import dataclass, field

from model.errors import (
    BadBundle,
    BadInput,
    BadRun,
    BadSnapshot,
    BadTaxonomy,
    BadText,
    DatabaseUnavailable,
    ItemTaken,
    MissingExtra,
    Overloaded,
    RuntimeUnavailable,
    UnknownEvent,
    UnknownLabel,
    UnknownLibrary,
    UnknownModel,
    UnknownReview,
    UnknownSample,
    UnknownSweep,
    WenleiError,
)


class NotJson(BadInput):
    """A body is not JSON, or not UTF-8."""


class BodyTooLarge(BadInput):
    """A body is larger than the server reads."""


class SlowBody(BadInput):
    """A body did not arrive in time."""


class NoRoom(WenleiError):
    """The server's disk is full."""


class NotReady(WenleiError):
    """The server is up, its models are not."""


class ClientGone(WenleiError):
    """The client hung up before its answer was there."""


class Unauthorized(WenleiError):
    """A request comes without a key, or with one that opens nothing."""


class Forbidden(WenleiError):
    """A key opens less than what the request asks for."""


class RateLimited(WenleiError):
    """Somebody asks too often; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


# The first row whose class the error is an instance of. What is not in the table is our own fault.
STATUSES: tuple[tuple[type[WenleiError], int, str], ...] = (
    (NotJson, 400, "not_json"),
    (Unauthorized, 401, "unauthorized"),
    (Forbidden, 403, "forbidden"),
    (SlowBody, 408, "slow_body"),
    (BodyTooLarge, 413, "body_too_large"),
    (BadText, 422, "bad_text"),
    (UnknownLabel, 422, "unknown_label"),
    (BadTaxonomy, 422, "bad_taxonomy"),
    (UnknownLibrary, 404, "unknown_library"),
    (UnknownSample, 404, "unknown_sample"),
    (UnknownEvent, 404, "unknown_event"),
    (UnknownSweep, 404, "unknown_sweep"),
    (UnknownReview, 404, "unknown_review"),
    (ItemTaken, 409, "item_taken"),
    (BadInput, 422, "bad_input"),
    (BadSnapshot, 422, "bad_snapshot"),
    (BadRun, 422, "bad_run"),
    (UnknownModel, 404, "unknown_model"),
    (RateLimited, 429, "rate_limited"),
    (ClientGone, 499, "client_gone"),
    (Overloaded, 503, "overloaded"),
    (NotReady, 503, "not_ready"),
    (RuntimeUnavailable, 503, "runtime_unavailable"),
    (MissingExtra, 503, "missing_extra"),
    (BadBundle, 503, "bad_bundle"),
    (DatabaseUnavailable, 503, "database_unavailable"),
    (NoRoom, 507, "no_room"),
)
INTERNAL = "the server failed; its log tells why under this answer's X-Request-ID"


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as HTTP tells it."""

    status: int
    code: str
    message: str
    headers: dict[str, str] = field(default_factory=dict)


def failure(error: Exception) -> Failure:
    """What the client is told of `error`; of one that is not in the table, nothing but that it happened."""
    for kind, status, code in STATUSES:
        if isinstance(error, kind):
            return Failure(status, code, str(error), _headers(error))
    return Failure(500, "internal", INTERNAL)


def _headers(error: Exception) -> dict[str, str]:
    if isinstance(error, Overloaded | RateLimited):
        return {"Retry-After": str(max(1, math.ceil(error.retry_after)))}
    if isinstance(error, Unauthorized):
        return {"WWW-Authenticate": 'Bearer realm="wenlei"'}
    return {"Retry-After": "1"} if isinstance(error, NotReady) else {}
