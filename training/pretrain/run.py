"""A pretraining's folder: what was asked, what came of it, and the start that fine-tuning takes.

`pretrain.json` says what was trained, on what, with which seed and how well; `model/` is the start, with its tokenizer
from the beginning and its weights at the end; `tokens/` is the corpus in tokens; `checkpoint/` is there until it is
done; `curves.jsonl` and `curves.svg` are its curves.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from model.errors import BadRun
from model.files import canonical_json, read_json, write_json
from model.run import describe_environment, difference, now

SCHEMA_VERSION = 1
FILE = "pretrain.json"
IDENTITY = ("arch", "config", "seed", "corpus", "start")  # what makes a run this run


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainRun:
    """What `pretrain.json` holds. With `config`, `seed`, `corpus` and `start` the run can be made again.

    corpus: its sources. start: name and SHA-256 of the weights that were trained on; None of random ones. tokenizer:
    SHA-256 and how it was made. status: `running` or `done`. figures: what the end says; history: the curves' points.
    """

    path: Path
    arch: str
    config: dict[str, Any]
    seed: int
    corpus: dict[str, Any]
    start: dict[str, str] | None
    tokenizer: dict[str, Any] = field(default_factory=dict)
    status: str = "running"
    figures: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    finished_at: str = ""

    @property
    def model_path(self) -> Path:
        """The start: weights with their heads, configuration and tokenizer."""
        return self.path / "model"

    @property
    def tokens_path(self) -> Path:
        """The prepared corpus."""
        return self.path / "tokens"

    @property
    def checkpoint_path(self) -> Path:
        """What a training that was broken off goes on from."""
        return self.path / "checkpoint"

    @property
    def curves_path(self) -> Path:
        """The points of the curves, a line each."""
        return self.path / "curves.jsonl"

    def save(self) -> "PretrainRun":
        """Write `pretrain.json`."""
        self.path.mkdir(parents=True, exist_ok=True)
        data = {name: value for name, value in asdict(self).items() if name != "path"}
        write_json(self.path / FILE, {"schema_version": SCHEMA_VERSION, **data})
        return self

    def changed(self, **changes: Any) -> "PretrainRun":
        """The same run with `changes`; written."""
        return replace(self, **changes).save()


def begin_pretraining(asked: PretrainRun) -> PretrainRun:
    """Begin the run that is asked for, or go on with it where it was broken off; one that is done is given back.

    Raises:
        BadRun: the folder holds something else.
    """
    if not (asked.path / FILE).exists():
        if asked.path.exists() and any(path.name != ".lock" for path in asked.path.iterdir()):
            raise BadRun(f"{asked.path} is not empty and no pretraining; give another --out")
        return asked.changed(environment=describe_environment(), started_at=now())
    run = open_pretraining(asked.path, finished=False)
    for name in IDENTITY:
        there, here = getattr(run, name), getattr(asked, name)
        if canonical_json(there) != canonical_json(here):
            was, is_now = map(_sources, (there, here)) if name == "corpus" else difference(there, here)
            raise BadRun(
                f"{asked.path} holds a pretraining with another {name}: {was} there, {is_now} now; give another "
                "--out, or the command that began it"
            )
    return run


def _sources(corpus: Mapping[str, Any]) -> str:
    """The files of a corpus, told apart."""
    return ", ".join(
        f"{source['name']} ({source['sha256'][:8]}, {source['layout'] or 'snapshot'})" for source in corpus["sources"]
    )


def open_pretraining(path: Path, *, finished: bool = True) -> PretrainRun:
    """Read the run in `path`.

    Raises:
        BadRun: there is none, a newer wenlei wrote it, or it is not done although `finished` asks for it.
    """
    try:
        data = read_json(path / FILE)
    except (FileNotFoundError, NotADirectoryError):
        raise BadRun(f"{path} is no pretraining: no {FILE} in it; make one with wenlei pretrain") from None
    except (OSError, ValueError) as error:
        raise BadRun(f"{path}/{FILE} can't be read: {error}") from None
    try:
        if (version := data.pop("schema_version")) > SCHEMA_VERSION:
            raise BadRun(f"{path} has schema {version}, this wenlei reads {SCHEMA_VERSION}; update it")
        run = PretrainRun(path=path, **data)
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRun(f"{path}/{FILE} can't be understood ({error!r}); pretrain again into another --out") from None
    if finished and run.status != "done":
        raise BadRun(
            f"the pretraining in {path} was broken off; run the same wenlei pretrain command again to finish it"
        )
    return run
