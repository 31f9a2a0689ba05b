"""What pretraining is worth: each architecture pretrained for some minutes, then fine-tuned beside random weights.

    python tests/benchmarks/pretraining.py --home SCRATCH --corpus laws.txt.xz lctt.txt.xz --minutes 30 \\
        --task cic=SNAPSHOT --task titles=SNAPSHOT:5000 --seeds 0 1

Every step is a `wenlei` command, shown as it begins, and left out where its run is finished already, so that the script
goes on after an interruption; what they say is in SCRATCH/log. As many run at a time as there are cores (`--at-once`),
one thread each. A task is a snapshot and, after a colon, how many train samples are used; its train texts join the
corpus, its dev texts judge, nothing looks at test.
Prints the tables of docs/experiments.md.
"""

import argparse
import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import finished

ARCHITECTURES = ("bert", "gpt", "elmo")
OFFLINE = "offline"
EPOCHS, OFFLINE_EPOCHS = 3, 2
PATIENCE = 4  # evaluations, two an epoch
MAX_LENGTH = 64


@dataclass(frozen=True)
class Rates:
    """Learning rates of a fine-tuning: of the encoder, and of what is on top of it."""

    encoder: float
    head: float


# Tried on the dev texts, see docs/experiments.md; random weights get the rates of the pretrained ones.
RATES = {"bert": Rates(1e-3, 1e-3), "gpt": Rates(5e-4, 1e-3), "elmo": Rates(2e-3, 1e-2)}
OFFLINE_RATES = Rates(1e-4, 1e-3)

# What a BERT needs to get somewhere in half an hour, see docs/experiments.md
PRETRAINING = {
    "bert": ("--no-next-sentence", "--max-length", "32", "--learning-rate", "1e-3"),
    "gpt": (),
    "elmo": (),
}


@dataclass(frozen=True)
class Task:
    """A snapshot to fine-tune on, with at most `limit` of its train samples."""

    name: str
    snapshot: Path
    limit: int | None

    @classmethod
    def parse(cls, given: str) -> "Task":
        name, _, rest = given.partition("=")
        path, _, limit = rest.partition(":")
        return cls(name, Path(path), int(limit) if limit else None)


@dataclass(frozen=True)
class Row:
    """What a task is learned from. init: of `wenlei train`; None for the linear baseline."""

    name: str
    arch: str
    init: str | None = None
    from_scratch: bool = False

    @property
    def rates(self) -> Rates | None:
        """None for the linear baseline."""
        return OFFLINE_RATES if self.init == OFFLINE else RATES.get(self.arch)


@dataclass(frozen=True)
class Bench:
    """Pretrains and fine-tunes, in `home`."""

    home: Path

    def pretrain(self, arch: str, corpus: Sequence[Path], *, minutes: float, batch_tokens: int) -> dict[str, Any]:
        """The finished `pretrain.json` of `arch`."""
        given = ["pretrain", "--arch", arch, "--corpus", *corpus, "--minutes", minutes, "--batch-tokens", batch_tokens]
        given += PRETRAINING[arch]
        return finished(self.home, self.home / f"{arch}-pretrained", "pretrain.json", *given)

    def train(self, task: Task, row: Row, seed: int) -> dict[str, Any]:
        """The finished `run.json` of one fine-tuning."""
        given: list[object] = ["train", "--snapshot", task.snapshot, "--arch", row.arch, "--seed", seed]
        given += ["--limit", task.limit] if task.limit else []
        if row.rates:
            epochs = OFFLINE_EPOCHS if row.init == OFFLINE else EPOCHS
            given += ["--init", row.init, "--learning-rate", row.rates.encoder, "--head-learning-rate", row.rates.head]
            given += ["--epochs", epochs, "--max-length", MAX_LENGTH, "--patience", PATIENCE]
            given += ["--from-scratch"] if row.from_scratch else []
        out = self.home / task.name / f"{row.name.replace(' ', '-')}-seed{seed}"
        return finished(self.home, out, "run.json", *given)


def main() -> None:
    """Pretrain, fine-tune, and print all tables."""
    options = parse()
    bench = Bench(options.home)
    options.home.mkdir(parents=True, exist_ok=True)
    corpus = [*options.corpus, *(task.snapshot for task in options.task)]
    rows = [Row("linear", "linear"), Row(OFFLINE, "bert", OFFLINE)]
    for arch in options.arch:
        start = str(options.home / f"{arch}-pretrained")
        rows += [Row(f"{arch} pretrained", arch, start), Row(f"{arch} random", arch, start, from_scratch=True)]
    with ThreadPoolExecutor(options.at_once) as pool:
        length = {"minutes": options.minutes, "batch_tokens": options.batch_tokens}
        pretrained = {arch: pool.submit(bench.pretrain, arch, corpus, **length) for arch in options.arch}
        trials = Trials(bench, pool, rows, options.seeds, pretrained)
        for table in trials.tables(options.task):
            sys.stdout.write(table + "\n\n")
        runs = [pretrained[arch].result() for arch in options.arch]
        sys.stdout.write(pretraining_table(options.arch, runs) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a folder for all runs")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="files of running text")
    parser.add_argument("--task", type=Task.parse, action="append", required=True, help="NAME=SNAPSHOT[:LIMIT]")
    parser.add_argument("--arch", nargs="+", choices=ARCHITECTURES, default=ARCHITECTURES)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--batch-tokens", type=int, default=1024, help="few, so that the minutes are many steps")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="runs at a time; on a GPU give 1")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    return parser.parse_args()


def pretraining_table(architectures: Sequence[str], runs: Sequence[dict[str, Any]]) -> str:
    """Held-out bits a character, of masked ones for BERT and NEZHA, along the way."""
    lines = [
        "| architecture | parameters | tokens | tokens/s | held-out figure | at the tenths of the time |",
        "|---|---|---|---|---|---|",
    ]
    for arch, run in zip(architectures, runs, strict=True):
        figures = run["figures"]
        name = next(name for name in figures if name.startswith("bits_per_"))
        curve = [point["held_out"][name] for point in run["history"] if "held_out" in point]
        lines.append(
            f"| {arch} | {figures['parameters']:,} | {figures['tokens']:,} | {figures['tokens_per_second']:,} | "
            f"{name.replace('_', ' ')} | {', '.join(f'{value:.3f}' for value in curve)} |"
        )
    return "\n".join(lines)


@dataclass(frozen=True)
class Trials:
    """All fine-tunings; a row's wait for the pretraining that they start from."""

    bench: Bench
    pool: ThreadPoolExecutor
    rows: Sequence[Row]
    seeds: Sequence[int]
    pretrained: Mapping[str, Future[dict[str, Any]]]

    def submit(self, task: Task, row: Row, seed: int) -> Future[dict[str, Any]]:
        def train() -> dict[str, Any]:
            if row.init not in (None, OFFLINE):
                self.pretrained[row.arch].result()
            return self.bench.train(task, row, seed)

        return self.pool.submit(train)

    def tables(self, tasks: Sequence[Task]) -> Iterator[str]:
        """A table a task: accuracy and macro-F1 on dev, seed by seed and in the mean."""
        # All at once and row by row, so that no core waits for a pretraining while there is other work.
        runs = {
            (row, task): [self.submit(task, row, seed) for seed in self.seeds] for row in self.rows for task in tasks
        }
        for task in tasks:
            yield "\n".join(
                [
                    f"| {task.name}: start | learning rates |"
                    + "".join(f" seed {seed} |" for seed in self.seeds)
                    + " mean accuracy | mean macro-F1 |",
                    "|---|---|" + "---|" * (len(self.seeds) + 2),
                    *(line(row, [run.result() for run in runs[row, task]]) for row in self.rows),
                ]
            )


def line(row: Row, runs: Sequence[dict[str, Any]]) -> str:
    """A row of a table, from one run a seed."""
    cells = "".join(f" {accuracy(run):.2f} |" for run in runs)
    macro_f1 = statistics.mean(100 * run["metrics"]["dev"]["macro_f1"] for run in runs)
    rate = f"{row.rates.encoder:g}, {row.rates.head:g}" if row.rates else ""
    return f"| {row.name} | {rate} |{cells} {statistics.mean(map(accuracy, runs)):.2f} | {macro_f1:.2f} |"


def accuracy(run: dict[str, Any]) -> float:
    """On dev, in per cent."""
    return 100 * float(run["metrics"]["dev"]["accuracy"])


if __name__ == "__main__":
    main()
