"""A head's run folder: `task.json` says what was trained, on what and how well, `model/` holds what answers.

`checkpoint/` is there until the training is done, and the same command goes on from it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from model.errors import BadRun
from model.files import sha256_file
from model.run_folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadRun(RunFolder):
    """What `task.json` holds; `task`, `options`, `start`, `files` and `seed` re-make it.

    arch: the encoder's model type. files: split → name and SHA-256. found: what the task learned beside weights
    (labels, a threshold). figures: split → figure → value.
    """

    FILE: ClassVar[str] = "task.json"
    WHAT: ClassVar[str] = "run"
    COMMAND: ClassVar[str] = "finetune"
    IDENTITY: ClassVar[tuple[str, ...]] = ("task", "arch", "options", "start", "seed", "files")

    task: str
    arch: str
    options: dict[str, Any]
    start: dict[str, str]
    seed: int
    files: dict[str, dict[str, str]]
    found: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)


def describe_file(path: Path) -> dict[str, str]:
    """What a run remembers of a file of rows."""
    return {"name": path.name, "sha256": sha256_file(path)}


def start_run(asked: HeadRun) -> HeadRun:
    """Begin the run that is asked for, or go on with it where it was broken off.

    Raises:
        BadRun: its folder holds something else, or the same run and it is done.
    """
    run = asked.begin()
    if run.status == "done":
        raise BadRun(
            f"{run.path} holds a finished run; give another --out, or use it: wenlei finetune predict {run.path} FILE"
        )
    return run
