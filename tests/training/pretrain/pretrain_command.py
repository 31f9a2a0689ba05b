"""`wenlei pretrain` at sizes that take seconds."""

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli import main

TINY = {
    "bert": {"vocabulary": 120, "layers": 2, "hidden_size": 32, "heads": 4, "inner_size": 128, "max_length": 48},
    "elmo": {"vocabulary": 60, "characters": 60, "projection_size": 16, "cell_size": 24, "character_size": 8,
             "filters": [[1, 8], [2, 8]], "sampled_words": 20, "correction_size": 4, "max_length": 24},
}  # fmt: skip
TINY |= {"gpt": TINY["bert"], "nezha": TINY["bert"]}
ARCHITECTURES = ("elmo", "gpt", "bert", "nezha")


def size(folder: Path, arch: str, **changes: Any) -> Path:
    path = folder / f"{arch}.json"
    path.write_text(json.dumps({**TINY[arch], **changes}))
    return path


def command(arch: str, corpus: Path, out: Path, *more: object) -> list[str]:
    given = ["pretrain", "--arch", arch, "--corpus", corpus, "--batch-tokens", 512, "--precision", "fp32", "--out", out]
    return [str(argument) for argument in (*given, *more)]


def run(*arguments: str, code: int = 0, capsys: pytest.CaptureFixture[str]) -> tuple[Any, str]:
    """What the command prints in JSON, and what it says."""
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    printed, told = capsys.readouterr()
    assert ended.value.code == code, told
    return (json.loads(printed) if code == 0 else None), told
