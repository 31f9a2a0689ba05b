"""The line-up: every architecture on one snapshot, the cheap ones first, each by a command that anyone can give."""

import shlex
import subprocess
import sysconfig
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from model.console import say
from model.errors import BadInput, BadRun
from model.run import Run

# From seconds to hours, each with what it needs: nothing, an offline start that there is, or one that has to be given
LINEAR = "linear"
CHEAP = (LINEAR, "fasttext", "textcnn", "bilstm")
BERT, TINYBERT = "bert", "tinybert"
STARTED = ("nezha", "gpt", "elmo")
ORDER = (*CHEAP, BERT, TINYBERT, *STARTED)


@dataclass(frozen=True, slots=True)
class Entry:
    """One training. command: what `wenlei` is given; out: the run that comes of it."""

    arch: str
    seed: int
    out: Path
    command: tuple[str, ...]

    def __str__(self) -> str:
        return f"wenlei {shlex.join(self.command)}"

    @property
    def done(self) -> bool:
        """Whether it was finished before."""
        try:
            return Run.open(self.out).status == "done"
        except BadRun:
            return False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a line-up: trainings that are done, that failed, and that there was no time for."""

    done: list[Entry]
    failed: list[Entry]
    left_out: list[Entry]

    @property
    def candidates(self) -> list[str]:
        """The runs as `wenlei compare` takes them: the seeds of an architecture together."""
        archs = dict.fromkeys(entry.arch for entry in self.done)
        return [f"{arch}={','.join(str(each.out) for each in self.done if each.arch == arch)}" for arch in archs]


def lineup(
    snapshot: Path,
    archs: Sequence[str],
    *,
    starts: Mapping[str, str],
    seeds: Sequence[int],
    max_length: int,
    limit: int | None,
    folder: Path,
    home: Path,
) -> list[Entry]:
    """The trainings of `archs`, the cheapest first, of each all seeds; their runs are in `folder`.

    starts: architecture → what it begins with; `STARTED` need one. max_length, limit: as of `wenlei train`.

    Raises:
        BadInput: an architecture is unknown, or has no start; or TinyBERT has no BERT to learn from.
    """
    if unknown := [arch for arch in archs if arch not in ORDER]:
        raise BadInput(f"--archs: {', '.join(unknown)} is none of {', '.join(ORDER)}")
    if lacking := [arch for arch in STARTED if arch in archs and arch not in starts]:
        raise BadInput(
            f"--archs {lacking[0]} needs a start: --start {lacking[0]}=RUN, of wenlei pretrain --arch {lacking[0]}"
        )
    if useless := [arch for arch in starts if arch not in archs or arch not in (BERT, *STARTED)]:
        raise BadInput(f"--start {useless[0]}=… has no meaning unless --archs has it, and it begins with one")
    if TINYBERT in archs and BERT not in archs:
        raise BadInput(f"--archs {TINYBERT} learns from {BERT}; give both")
    common = ["--snapshot", str(snapshot), "--home", str(home), *(["--limit", str(limit)] if limit else [])]
    found = []
    for arch in (arch for arch in ORDER if arch in archs):
        for seed in seeds:
            out = folder / f"{arch}-seed{seed}"
            command = ["train", "--arch", arch]
            if arch == TINYBERT:
                command = ["distill", "--teacher", str(folder / f"{BERT}-seed{seed}"), "--student", "tiny4-312"]
            if arch in starts:
                command += ["--init", starts[arch]]
            if arch != LINEAR:
                command += ["--max-length", str(max_length)]
            found.append(Entry(arch, seed, out, (*command, *common, "--seed", str(seed), "--out", str(out))))
    return found


def run_lineup(entries: Sequence[Entry], *, minutes: float | None) -> Outcome:
    """Train one after the other, each in a process of its own; those that are done already are not trained again.

    minutes: after which no more are begun. One that fails stops no other.
    """
    started = time.monotonic()
    outcome = Outcome([], [], [])
    for number, entry in enumerate(entries, 1):
        if entry.done:
            say(f"[{number}/{len(entries)}] 已完成 done already: {entry.out}")
            outcome.done.append(entry)
        elif minutes is not None and time.monotonic() - started > 60 * minutes:
            outcome.left_out.append(entry)
        else:
            say(f"[{number}/{len(entries)}] $ {entry}")
            (outcome.done if _train(entry) else outcome.failed).append(entry)
    return outcome


def _train(entry: Entry) -> bool:
    """Whether the training ended well; what it says goes to stderr."""
    wenlei = Path(sysconfig.get_path("scripts"), "wenlei")
    ended = subprocess.run([str(wenlei), *entry.command], stdout=subprocess.DEVNULL, check=False)
    return ended.returncode == 0 and entry.done
