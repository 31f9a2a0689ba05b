"""Run: the folder of one training, from its first step to its figures.

`run.json` says what was trained, on what, with which seed and how well; `predictions.parquet` holds what the
model said about samples (`model.predictions`); `model/` holds the weights; `checkpoint/` is there until it is done.
"""

import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from model.errors import BadRun
from model.files import canonical_json, read_json, write_json
from model.types import Taxonomy

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Run:
    """What `run.json` holds. `config` is all that was chosen; with `seed` and `snapshot` it re-makes the run.

    snapshot: its hash; snapshot_path: where it lay.

    status: `running` or `done`. metrics: split → metric → value. calibration: what `fit` found on dev.
    """

    path: Path
    arch: str
    config: dict[str, Any]
    seed: int
    snapshot: str
    snapshot_path: str
    taxonomy: Taxonomy
    status: str = "running"
    metrics: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    finished_at: str = ""

    @property
    def model_path(self) -> Path:
        """The folder of the trained weights, configuration and tokenizer."""
        return self.path / "model"

    @property
    def checkpoint_path(self) -> Path:
        """The folder a broken-off training goes on from."""
        return self.path / "checkpoint"

    def save(self) -> "Run":
        """Write `run.json`."""
        self.path.mkdir(parents=True, exist_ok=True)
        data = {name: value for name, value in asdict(self).items() if name != "path"}
        write_json(
            self.path / "run.json",
            {"schema_version": SCHEMA_VERSION, **data, "taxonomy": self.taxonomy.to_json()},
        )
        return self

    def finish(self, **results: Any) -> "Run":
        """The same run, done, with its results; written."""
        return replace(self, status="done", finished_at=now(), **results).save()


def start_run(
    path: Path,
    *,
    arch: str,
    config: dict[str, Any],
    seed: int,
    snapshot: str,
    snapshot_path: Path,
    taxonomy: Taxonomy,
) -> Run:
    """Begin a run in `path`, or go on with the one that was broken off there.

    Raises:
        BadRun: `path` holds another run, or one that is done.
    """
    if not (path / "run.json").exists():
        if path.exists() and any(path.iterdir()):
            raise BadRun(f"{path} is not empty and not a run; give another --out")
        return Run(
            path=path,
            arch=arch,
            config=config,
            seed=seed,
            snapshot=snapshot,
            snapshot_path=str(snapshot_path.absolute()),
            taxonomy=taxonomy,
            environment=describe_environment(),
            started_at=now(),
        ).save()
    run = open_run(path, finished=False)
    asked = {"arch": arch, "config": config, "seed": seed, "snapshot": snapshot}
    for name, value in asked.items():
        if canonical_json(getattr(run, name)) != canonical_json(value):  # in JSON a tuple is a list
            there, here = difference(getattr(run, name), value)
            raise BadRun(f"{path} holds a run with another {name}: {there} there, {here} now; give another --out")
    if run.status == "done":
        raise BadRun(f"{path} holds a finished run; give another --out, or evaluate it with wenlei evaluate {path}")
    return run


def difference(there: Any, here: Any) -> tuple[str, str]:
    """What is different in two JSON values, those keys alone of two objects."""
    if not (isinstance(there, dict) and isinstance(here, dict)):
        return str(there), str(here)
    odd = sorted(
        key for key in there.keys() | here.keys() if canonical_json(there.get(key)) != canonical_json(here.get(key))
    )
    parts = [difference(there.get(key), here.get(key)) for key in odd]
    return (
        ", ".join(f"{key} {part[0]}" for key, part in zip(odd, parts, strict=True)),
        ", ".join(f"{key} {part[1]}" for key, part in zip(odd, parts, strict=True)),
    )


def open_run(path: Path, *, finished: bool = True) -> Run:
    """Read the run in `path`.

    Raises:
        BadRun: there is none, a newer wenlei wrote it, or it is not done although `finished` asks for it.
    """
    try:
        data = read_json(path / "run.json")
    except (FileNotFoundError, NotADirectoryError):
        raise BadRun(f"{path} is not a run: no run.json in it; make one with wenlei train") from None
    except (OSError, ValueError) as error:
        raise BadRun(f"{path}/run.json can't be read: {error}") from None
    try:
        if (version := data.pop("schema_version")) > SCHEMA_VERSION:
            raise BadRun(f"{path} has schema {version}, this wenlei reads {SCHEMA_VERSION}; update it")
        run = Run(path=path, **{**data, "taxonomy": Taxonomy.from_json(data["taxonomy"])})
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadRun(f"{path}/run.json can't be understood ({error!r}); train again into another --out") from None
    if finished and run.status != "done":
        raise BadRun(f"the training in {path} was broken off; run the same wenlei train command again to finish it")
    return run


def describe_environment() -> dict[str, Any]:
    """Versions and machine, so that a figure can be understood later."""
    packages = (
        "wenlei",
        "torch",
        "transformers",
        "tokenizers",
        "scikit-learn",
        "numpy",
        "onnxruntime",
        "onnxruntime-gpu",
    )
    versions = {}
    for package in packages:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    commit = _commit()
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        **versions,
        **({"commit": commit} if commit else {}),
    }


def _commit() -> str | None:
    """The commit that this code was checked out at, if it was."""
    root, git = Path(__file__).parents[1], shutil.which("git")
    if not git or not (root / ".git").exists():
        return None
    asked = subprocess.run([git, "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)  # noqa: S603  fixed words
    return asked.stdout.strip()[:12] or None


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
