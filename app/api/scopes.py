"""What a key has to open for each request; what no rule speaks of needs the widest scope: a new route is shut."""

import re
from typing import NamedTuple

from app.store.people import Scope

# Whether the server lives, and what it can be asked, is no secret.
OPEN = frozenset({"/health/live", "/health/ready", "/docs", "/openapi.json"})


class Rule(NamedTuple):
    """Requests whose method and whole path match need `scope`."""

    methods: str
    path: str
    scope: Scope


# The first that matches counts. Whoever operates reads and labels, imports and freezes; what changes the meaning of
# labels, what counts, or who may do what, is for an admin.
RULES = (
    Rule("POST", r"/v1/classify", Scope.CLASSIFY),
    Rule("GET", r"/metrics", Scope.OPERATE),
    Rule("GET", r"/v1/(libraries|samples|reviews|taxonomy|snapshots)(/.*)?", Scope.OPERATE),
    Rule("POST", r"/v1/samples/[^/]+/labels", Scope.OPERATE),
    Rule("POST", r"/v1/events/[^/]+/undo", Scope.OPERATE),
    Rule("POST", r"/v1/reviews(/.*)?", Scope.OPERATE),
    Rule("POST", r"/v1/libraries/[^/]+/(import|verify|suggest|doctor|label)", Scope.OPERATE),
    Rule("POST", r"/v1/libraries/[^/]+/sweeps/[^/]+/undo", Scope.OPERATE),
    Rule("POST", r"/v1/snapshots", Scope.OPERATE),
)
_RULES = [(re.compile(f"(?:{rule.methods}) {rule.path}"), rule.scope) for rule in RULES]


def needed_scope(method: str, path: str) -> Scope:
    """The narrowest scope that a key must have for the request."""
    request = f"{method} {path}"
    return next((scope for pattern, scope in _RULES if pattern.fullmatch(request)), Scope.ADMIN)
