"""What pretraining is worth: each architecture pretrained for some minutes, then fine-tuned beside random weights.

    python tests/benchmarks/pretraining.py --home SCRATCH --corpus laws.txt.xz lctt.txt.xz --minutes 30 \\
        --task cic=SNAPSHOT --task titles=SNAPSHOT:5000 --seeds 0 1

Every step is a `wenlei` command, shown as it runs, and left out where its run is finished already; so the script goes
on after an interruption. A task is a snapshot and, after a colon, how many train samples are used; its train texts
join the corpus, its dev texts judge, nothing looks at test. A row's learning rate is chosen on dev, by the first seed.
Prints the tables of docs/experiments.md.
"""

import argparse
import json
import shlex
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ARCHITECTURES = ("bert", "nezha", "gpt", "elmo")
LEARNING_RATES = (1e-4, 3e-4, 1e-3)  # small networks want more than the 5e-5 of the large ones
OFFLINE_RATES = (5e-5, 1e-4)
HEAD_RATE = 1e-3


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


def main() -> None:
    """Pretrain, fine-tune, and print both tables."""
    options = parse()
    home: Path = options.home
    corpora = [str(path) for path in options.corpus] + [str(task.snapshot) for task in options.task]
    runs: dict[str, Path] = {}
    for arch in options.arch:
        for start, length in (("pretrained", ["--minutes", str(options.minutes)]), ("random", ["--steps", "0"])):
            out = home / f"{arch}-{start}"
            runs[f"{arch} {start}"] = out
            finished(out, "pretrain.json") or wenlei(
                "pretrain", "--arch", arch, "--corpus", *corpora, *length, "--out", out
            )
    sys.stdout.write(pretraining_table(options.arch, runs) + "\n\n")
    starts = {**{name: (name.split()[0], str(path)) for name, path in runs.items()}, "offline": ("bert", "offline")}
    for task in options.task:
        rows = {"linear": [train(home, task, "linear", "linear", None, None, seed) for seed in options.seeds]}
        for name, (arch, init) in starts.items():
            rates = OFFLINE_RATES if name == "offline" else LEARNING_RATES
            tried = {rate: train(home, task, name, arch, init, rate, options.seeds[0]) for rate in rates}
            best = max(rates, key=lambda rate: tried[rate]["metrics"]["dev"]["accuracy"])
            rows[f"{name}, {best:g}"] = [train(home, task, name, arch, init, best, seed) for seed in options.seeds]
        sys.stdout.write(task_table(task, rows, options.seeds) + "\n\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a folder for all runs")
    parser.add_argument("--corpus", type=Path, nargs="+", required=True, help="files of running text")
    parser.add_argument("--task", type=Task.parse, action="append", required=True, help="NAME=SNAPSHOT[:LIMIT]")
    parser.add_argument("--arch", nargs="+", default=ARCHITECTURES)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    return parser.parse_args()


def train(
    home: Path, task: Task, name: str, arch: str, init: str | None, rate: float | None, seed: int
) -> dict[str, Any]:
    """The finished `run.json` of one fine-tuning."""
    out = home / task.name / f"{name.replace(' ', '-')}{f'-{rate:g}' if rate else ''}-seed{seed}"
    if not finished(out, "run.json"):
        own = ["--init", init, "--learning-rate", rate, "--head-learning-rate", HEAD_RATE] if init else []
        long = (
            []
            if arch == "linear"
            else ["--epochs", 3 if init == "offline" else 10, "--max-length", 64, "--patience", 4]
        )
        limit = ["--limit", task.limit] if task.limit else []
        wenlei(
            "train", "--snapshot", task.snapshot, "--arch", arch, *own, *long, *limit,
            "--seed", seed, "--home", home, "--out", out,
        )  # fmt: skip
    data: dict[str, Any] = json.loads((out / "run.json").read_text())
    return data


def finished(out: Path, file: str) -> bool:
    return (out / file).exists() and json.loads((out / file).read_text())["status"] == "done"


def wenlei(*arguments: object) -> None:
    command = [sys.executable, "-c", "from app.cli import main; main()", *map(str, arguments)]
    sys.stderr.write(f"$ wenlei {shlex.join(map(str, arguments))}\n")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def pretraining_table(architectures: list[str], runs: dict[str, Path]) -> str:
    """Held-out bits a character, of masked ones for BERT and NEZHA, before and after, and the tokens that were seen."""
    lines = ["| architecture | tokens | tokens/s | bits a character, random | pretrained |", "|---|---|---|---|---|"]
    for arch in architectures:
        before, after = (
            json.loads((runs[f"{arch} {start}"] / "pretrain.json").read_text()) for start in ("random", "pretrained")
        )
        figures = after["figures"]
        name = next(name for name in figures if name.startswith("bits_per_"))
        lines.append(
            f"| {arch} | {figures['tokens']:,} | {figures['tokens_per_second']:,} | "
            f"{before['figures'][name]:.3f} | {figures[name]:.3f} |"
        )
    return "\n".join(lines)


def task_table(task: Task, rows: dict[str, list[dict[str, Any]]], seeds: list[int]) -> str:
    """Accuracy and macro-F1 on dev, seed by seed and in the mean."""
    heads = "".join(f" seed {seed} |" for seed in seeds)
    lines = [
        f"| {task.name}: start, learning rate |{heads} mean accuracy | mean macro-F1 |",
        "|---|" + "---|" * (len(seeds) + 2),
    ]
    for name, runs in rows.items():
        accuracies = [run["metrics"]["dev"]["accuracy"] for run in runs]
        macro = statistics.mean(run["metrics"]["dev"]["macro_f1"] for run in runs)
        cells = "".join(f" {100 * accuracy:.2f} |" for accuracy in accuracies)
        lines.append(f"| {name} |{cells} {100 * statistics.mean(accuracies):.2f} | {100 * macro:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
