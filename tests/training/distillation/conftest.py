"""One teacher, and the size of its students."""

from pathlib import Path

import pytest
from distilling import STUDENT, teach

from model.files import write_json
from model.run import Run
from model.snapshot import Snapshot


@pytest.fixture(scope="session")
def teacher(snapshot: Snapshot, tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return teach(snapshot, tiny_bert, tmp_path_factory.mktemp("teachers") / "one")


@pytest.fixture(scope="session")
def student(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("students") / "student.json"
    write_json(path, STUDENT)
    return str(path)
