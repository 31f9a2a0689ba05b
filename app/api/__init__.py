"""The HTTP API: routes, schemas, and what every request passes through."""
