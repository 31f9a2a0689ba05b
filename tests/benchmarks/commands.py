"""Runs of `wenlei` commands for benchmarks, each in a process of its own with one thread, made once."""

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
        arguments = [*map(str, given), "--home", str(home), "--out", str(out)]
        sys.stderr.write(f"$ wenlei {shlex.join(arguments)}\n")
        with (home / "log").open("a") as log:
            subprocess.run(
                [sys.executable, "-c", "from app.cli import main; main()", *arguments],
                check=True,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
    data: dict[str, Any] = json.loads((out / file).read_text())
    return data
