"""Libraries on real databases."""

from collections.abc import Iterator

import pytest
from workshop import Workshop

from app.settings import Settings
from app.store.database import open_database


@pytest.fixture
def workshop(settings: Settings) -> Iterator[Workshop]:
    """On SQLite and on PostgreSQL."""
    with open_database(settings) as engine:
        yield Workshop(engine, settings.home)
