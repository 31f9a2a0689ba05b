"""A pretraining's folder: what was asked, what came of it, and the start that fine-tuning takes.

`pretrain.json` says what was trained, on what, with which seed and how well; `model/` is the start, with its tokenizer
from the beginning and its weights at the end; `tokens/` is the corpus in tokens; `checkpoint/` is there until it is
done; `curves.jsonl` and `curves.svg` are its curves.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from model.run_folder import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainRun(RunFolder):
    """What `pretrain.json` holds. With `config`, `seed`, `corpus` and `start` the run can be made again.

    corpus: its sources. start: name and SHA-256 of the weights that were trained on; None of random ones. tokenizer:
    SHA-256 and how it was made. figures: what the end says; history: the curves' points.
    """

    FILE: ClassVar[str] = "pretrain.json"
    WHAT: ClassVar[str] = "pretraining"
    COMMAND: ClassVar[str] = "pretrain"
    IDENTITY: ClassVar[tuple[str, ...]] = ("arch", "config", "seed", "corpus", "start")

    arch: str
    config: dict[str, Any]
    seed: int
    corpus: dict[str, Any]
    start: dict[str, str] | None
    tokenizer: dict[str, Any] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)

    @property
    def tokens_path(self) -> Path:
        """The prepared corpus."""
        return self.path / "tokens"

    @property
    def curves_path(self) -> Path:
        """The points of the curves, a line each."""
        return self.path / "curves.jsonl"

    def difference(self, other: Self, name: str) -> tuple[str, str]:
        """As of every run; corpora are told apart by their files."""
        if name == "corpus":
            return self._sources(), other._sources()
        return RunFolder.difference(self, other, name)

    def _sources(self) -> str:
        return ", ".join(
            f"{source['name']} ({source['sha256'][:8]}, {source['layout'] or 'snapshot'})"
            for source in self.corpus["sources"]
        )
