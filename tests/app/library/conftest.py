"""Libraries on real databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from workshop import Workshop

from app.settings import Settings
from app.store.database import open_database
from tests.app.library.gates import SINGLE, WORDS, Gate
from tests.gating import made_up


@pytest.fixture
def workshop(settings: Settings) -> Iterator[Workshop]:
    """On SQLite and on PostgreSQL."""
    with open_database(settings) as engine:
        yield Workshop(engine, settings.home)


@pytest.fixture
def gate(workshop: Workshop, tmp_path: Path) -> Gate:
    """Three texts in ten are a toss-up for the model; all others it has right."""
    made = Gate(workshop, tmp_path, SINGLE, WORDS)
    made.labelled(made_up(20, WORDS, seed=1), "train")
    made.labelled(made_up(10, WORDS, seed=2), "dev")
    made.labelled(made_up(400, WORDS, seed=3), "test")
    made.pool(text for text, _ in made_up(200, WORDS, seed=4))
    return made
