"""A head's run folder: `task.json` says what was trained, on what and how well, `model/` holds what answers.

`checkpoint/` is there until the training is done, and the same command goes on from it.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from model.errors import BadRun
from model.files import canonical_json, read_json, sha256_file, write_json
from model.run import describe_environment, difference, now

SCHEMA_VERSION = 1
FACTS = "task.json"


@dataclass(frozen=True, slots=True)
class HeadRun:
    """What `task.json` holds; `task`, `options`, `start`, `files` and `seed` re-make it.

    arch: the encoder's model type. files: split → name and SHA-256. found: what the task learned beside weights
    (labels, a threshold). figures: split → figure → value. status: `running` or `done`.
    """

    path: Path
    task: str
    arch: str
    options: dict[str, Any]
    start: dict[str, str]
    seed: int
    files: dict[str, dict[str, str]]
    status: str = "running"
    found: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    finished_at: str = ""

    @property
    def model_path(self) -> Path:
        """The folder of the trained weights and their tokenizer."""
        return self.path / "model"

    @property
    def checkpoint_path(self) -> Path:
        """The folder that a broken-off training goes on from."""
        return self.path / "checkpoint"

    def save(self) -> "HeadRun":
        """Write `task.json`."""
        self.path.mkdir(parents=True, exist_ok=True)
        data = {name: value for name, value in asdict(self).items() if name != "path"}
        write_json(self.path / FACTS, {"schema_version": SCHEMA_VERSION, **data})
        return self

    def finish(self, **results: Any) -> "HeadRun":
        """The same run, done, with its results; written."""
        return replace(self, status="done", finished_at=now(), **results).save()


def describe_file(path: Path) -> dict[str, str]:
    """What a run remembers of a file of rows."""
    return {"name": path.name, "sha256": sha256_file(path)}


def start_run(asked: HeadRun) -> HeadRun:
    """Begin `asked` in its folder, or go on with it if it was broken off there.

    Raises:
        BadRun: the folder holds something else, or the same run and it is done.
    """
    path = asked.path
    if not (path / FACTS).exists():
        if path.exists() and any(path.iterdir()):
            raise BadRun(f"{path} is not empty and not a run of wenlei finetune; give another --out")
        return replace(asked, environment=describe_environment(), started_at=now()).save()
    run = open_run(path, finished=False)
    for name in ("task", "arch", "options", "start", "seed", "files"):
        there, here = getattr(run, name), getattr(asked, name)
        if canonical_json(there) != canonical_json(here):
            before, after = difference(there, here)
            raise BadRun(f"{path} holds a run with another {name}: {before} there, {after} now; give another --out")
    if run.status == "done":
        raise BadRun(f"{path} holds a finished run; give another --out, or use it: wenlei finetune predict {path} FILE")
    return run


def open_run(path: Path, *, finished: bool = True) -> HeadRun:
    """Read the run in `path`.

    Raises:
        BadRun: there is none, a newer wenlei wrote it, or it is not done although `finished` asks for it.
    """
    try:
        data = read_json(path / FACTS)
    except (FileNotFoundError, NotADirectoryError):
        raise BadRun(f"{path} has no {FACTS}; make a run with wenlei finetune tokens, span or choice") from None
    except (OSError, ValueError) as error:
        raise BadRun(f"{path}/{FACTS} can't be read: {error}") from None
    try:
        if (version := data.pop("schema_version")) > SCHEMA_VERSION:
            raise BadRun(f"{path} has schema {version}, this wenlei reads {SCHEMA_VERSION}; update it")
        run = HeadRun(path=path, **data)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRun(f"{path}/{FACTS} can't be understood ({error!r}); train again into another --out") from None
    if finished and run.status != "done":
        raise BadRun(f"the training in {path} was broken off; run the same wenlei finetune command again to finish it")
    return run
