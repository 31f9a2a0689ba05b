"""Runs of `wenlei` commands for benchmarks, each in a process of its own with one thread."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any


def finished(home: Path, out: Path, file: str, *given: object) -> dict[str, Any]:
    """The record `file` of the finished run in `out`, which `wenlei GIVEN` makes unless it is there.

    What the command says goes to `home`/log.
    """
    if not ((out / file).exists() and json.loads((out / file).read_text())["status"] == "done"):
        printed(home, *given, "--home", home, "--out", out)
    data: dict[str, Any] = json.loads((out / file).read_text())
    return data


def printed(home: Path, *given: object) -> Any:
    """What `wenlei GIVEN --json` prints; what it says beside goes to `home`/log."""
    arguments = [*map(str, given), "--json"]
    sys.stderr.write(f"$ wenlei {shlex.join(arguments)}\n")
    with (home / "log").open("a") as log:
        done = subprocess.run(
            [sys.executable, "-c", "from app.cli import main; main()", *arguments],
            check=True,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    return json.loads(done.stdout)
