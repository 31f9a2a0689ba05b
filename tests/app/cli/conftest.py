"""The command line on real databases, as a script calls it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

Call = Callable[..., dict[str, Any]]
Refusal = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WENLEI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WENLEI_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """The JSON object that the command answers with."""

    def run(*arguments: str) -> dict[str, Any]:
        with pytest.raises(SystemExit) as ended:
            main(["library", *arguments, "--json"])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, err
        assert out.count("\n") == 1
        answer = json.loads(out)
        assert isinstance(answer, dict)
        return answer

    return run


@pytest.fixture
def refusal(home: Path, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """The line on stderr of a command that ends with exit code 2."""

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["library", *arguments, "--json"])
        out, err = capsys.readouterr()
        assert (ended.value.code, out) == (2, "")
        assert "Traceback" not in err
        return err.strip().splitlines()[-1]

    return run
