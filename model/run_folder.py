"""A run's folder: what was asked, what came of it, and where it goes on after it was broken off.

Each kind of run keeps its record in one JSON file of the folder, beside what it makes.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from model.errors import BadRun
from model.files import canonical_json, read_json, write_json
from model.provenance import describe_environment, now


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """What the record of every run holds; a kind of run adds its own fields.

    status: `running` or `done`.
    """

    SCHEMA_VERSION: ClassVar[int] = 1  # of the record; a kind of run that changes its own counts up
    FILE: ClassVar[str]
    WHAT: ClassVar[str]  # as messages call it
    COMMAND: ClassVar[str]  # that makes it
    IDENTITY: ClassVar[tuple[str, ...]]  # the fields that make a run this run

    path: Path
    status: str = "running"
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    finished_at: str = ""

    @property
    def model_path(self) -> Path:
        """The folder of the trained weights, configuration and tokenizer."""
        return self.path / "model"

    @property
    def checkpoint_path(self) -> Path:
        """The folder that a broken-off run goes on from."""
        return self.path / "checkpoint"

    @classmethod
    def from_json(cls, path: Path, data: dict[str, Any]) -> Self:
        """The run in `path` with the record `data`."""
        return cls(path=path, **data)

    def to_json(self) -> dict[str, Any]:
        """The record."""
        return {name: value for name, value in asdict(self).items() if name != "path"}

    def difference(self, other: Self, name: str) -> tuple[str, str]:
        """What is different in the field `name` of two runs, in a few words each."""
        return difference(getattr(self, name), getattr(other, name))

    def save(self) -> Self:
        """Write the record."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / self.FILE, {"schema_version": self.SCHEMA_VERSION, **self.to_json()})
        return self

    def changed(self, **changes: Any) -> Self:
        """The same run with `changes`; written."""
        return replace(self, **changes).save()

    def finish(self, **results: Any) -> Self:
        """The same run, done, with its results; written."""
        return self.changed(status="done", finished_at=now(), **results)

    def begin(self) -> Self:
        """Begin this run in its folder, or the one that was broken off there, or is done.

        Raises:
            BadRun: the folder holds something else.
        """
        if not (self.path / self.FILE).exists():
            if self.path.exists() and any(path.name != ".lock" for path in self.path.iterdir()):
                raise BadRun(f"{self.path} is not empty and not a {self.WHAT}; give another --out")
            return self.changed(environment=describe_environment(), started_at=now())
        run = self.open(self.path, finished=False)
        for name in self.IDENTITY:
            if canonical_json(getattr(run, name)) != canonical_json(getattr(self, name)):  # in JSON a tuple is a list
                there, here = run.difference(self, name)
                raise BadRun(
                    f"{self.path} holds a {self.WHAT} with another {name}: {there} there, {here} now; give another "
                    "--out, or the command that began it"
                )
        return run

    @classmethod
    def open(cls, path: Path, *, finished: bool = True) -> Self:
        """Read the run in `path`.

        Raises:
            BadRun: there is none, a newer wenlei wrote it, or it is not done although `finished` asks for it.
        """
        try:
            data = read_json(path / cls.FILE)
        except (FileNotFoundError, NotADirectoryError):
            raise BadRun(
                f"{path} is not a {cls.WHAT}: no {cls.FILE} in it; make one with wenlei {cls.COMMAND}"
            ) from None
        except (OSError, ValueError) as error:
            raise BadRun(f"{path}/{cls.FILE} can't be read: {error}") from None
        try:
            if (version := data.pop("schema_version")) > cls.SCHEMA_VERSION:
                raise BadRun(f"{path} has schema {version}, this wenlei reads {cls.SCHEMA_VERSION}; update it")
            run = cls.from_json(path, data)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise BadRun(f"{path}/{cls.FILE} can't be understood ({error!r}); make it again in another --out") from None
        if finished and run.status != "done":
            raise BadRun(
                f"the {cls.WHAT} in {path} was broken off; run the same wenlei {cls.COMMAND} command again to finish it"
            )
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
