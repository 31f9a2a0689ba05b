"""How the tables that the migrations make differ from those that the queries expect."""

from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from app.store.tables import metadata


def schema_differences(connection: sa.Connection) -> list[Any]:
    """The differences, but for the search index, which SQLAlchemy can't describe."""

    def described(name: str | None, kind: str, _parents: object) -> bool:
        return not (kind in ("table", "index") and name is not None and "_bigrams" in name)

    def compared(thing: object, name: str | None, kind: str, _reflected: bool, _other: object) -> bool:
        return described(name, kind, None)

    options = {"include_name": described, "include_object": compared}
    return compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
