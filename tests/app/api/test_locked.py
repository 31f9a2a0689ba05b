"""Libraries are opened with keys only."""

import pytest

from app.api.scopes import RULES, needed_scope
from app.main import create_app
from app.settings import Settings
from app.store.people import Scope
from tests.app.api.servers import serving


@pytest.mark.parametrize("path", ["/v1/libraries", "/v1/samples/00/labels", "/v1/taxonomy/rename", "/v1/users"])
def test_a_server_without_keys_says_how_to_open_its_libraries(path: str) -> None:
    with serving(create_app(Settings())) as server:
        for method in ("GET", "POST", "DELETE"):
            answer = server.client.request(method, path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
            assert "WENLEI_REQUIRE_KEYS=true" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/classify", Scope.CLASSIFY),
        ("GET", "/v1/samples", Scope.OPERATE),
        ("GET", "/v1/samples/00ff", Scope.OPERATE),
        ("POST", "/v1/samples/00ff/labels", Scope.OPERATE),
        ("POST", "/v1/libraries/reviews/import", Scope.OPERATE),
        ("POST", "/v1/libraries/reviews/rollback", Scope.ADMIN),
        ("POST", "/v1/libraries/a/b/import", Scope.ADMIN),
        ("POST", "/v1/taxonomy/rename", Scope.ADMIN),
        ("GET", "/v1/taxonomyx", Scope.ADMIN),
        ("GET", "/v1/users", Scope.ADMIN),
        ("GET", "/v1/audit", Scope.ADMIN),
        ("DELETE", "/v1/samples/00ff", Scope.ADMIN),
        ("GET", "/v1/classify", Scope.ADMIN),
        ("GET", "/nowhere", Scope.ADMIN),
    ],
)
def test_what_no_rule_opens_is_for_admins(method: str, path: str, scope: Scope) -> None:
    assert needed_scope(method, path) is scope


def test_every_rule_speaks_of_a_path_that_is_not_open_to_all() -> None:
    assert all(rule.path.startswith(("/v1/", "/metrics")) for rule in RULES)
