"""Databases that nobody has migrated yet: how they become libraries is what is tested here."""

from pathlib import Path

import pytest

from tests.conftest import DATABASES
from tests.databases import Databases


@pytest.fixture(params=DATABASES)
def database_url(request: pytest.FixtureRequest, databases: Databases, tmp_path: Path) -> str:
    """The URL of a database with nothing in it; a test that asks for it runs on SQLite and on PostgreSQL."""
    return databases.empty(request.param, tmp_path)
