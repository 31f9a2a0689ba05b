"""Run: the folder of one training, from its first step to its figures.

`run.json` says what was trained, on what, with which seed and how well; `predictions.parquet` holds what the
model said about samples (`model.predictions`); `model/` holds the weights; `checkpoint/` is there until it is done.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from model.errors import BadRun
from model.run_folder import RunFolder
from model.types import Taxonomy


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(RunFolder):
    """What `run.json` holds. `config` is all that was chosen; with `seed` and `snapshot` it re-makes the run.

    snapshot: its hash; snapshot_path: where it lay.

    metrics: split → metric → value. calibration: what `fit` found on dev.
    """

    FILE: ClassVar[str] = "run.json"
    WHAT: ClassVar[str] = "run"
    COMMAND: ClassVar[str] = "train"
    IDENTITY: ClassVar[tuple[str, ...]] = ("arch", "config", "seed", "snapshot")

    arch: str
    config: dict[str, Any]
    seed: int
    snapshot: str
    snapshot_path: str
    taxonomy: Taxonomy
    metrics: dict[str, Any] = field(default_factory=dict)
    calibration: dict[str, Any] = field(default_factory=dict)
    cost: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, path: Path, data: dict[str, Any]) -> Self:
        return cls(path=path, **{**data, "taxonomy": Taxonomy.from_json(data["taxonomy"])})

    def to_json(self) -> dict[str, Any]:
        return {**RunFolder.to_json(self), "taxonomy": self.taxonomy.to_json()}


def start_run(asked: Run) -> Run:
    """Begin the run that is asked for, or go on with it where it was broken off.

    Raises:
        BadRun: its folder holds another run, or one that is done.
    """
    run = asked.begin()
    if run.status == "done":
        raise BadRun(
            f"{run.path} holds a finished run; give another --out, or evaluate it with wenlei evaluate {run.path}"
        )
    return run
