"""Libraries are only opened with keys, so that it is known who says what: a server without keys says so."""

from fastapi import APIRouter, Request

from app.errors import Unauthorized

router = APIRouter(include_in_schema=False)
NOUNS = ("libraries", "samples", "taxonomy", "snapshots", "events", "users", "keys", "audit")


async def _refuse(request: Request) -> None:
    raise Unauthorized(
        f"{request.url.path[:100]} needs a key, and this server was started without any: make one with wenlei user "
        "create NAME --scope operate and wenlei key create --user NAME --scope operate, and start it with "
        "WENLEI_REQUIRE_KEYS=true"
    )


for noun in NOUNS:
    for path in (f"/v1/{noun}", f"/v1/{noun}/{{rest:path}}"):
        router.add_api_route(path, _refuse, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])
