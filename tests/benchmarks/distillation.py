"""What distillation keeps of a teacher, beside the same students taught by labels alone, and what each part is worth.

    python tests/benchmarks/distillation.py --home SCRATCH --task titles=SNAPSHOT:10000 \\
        --task chnsenticorp=SNAPSHOT:5000 --seeds 0 1 --ablate titles

A task is a snapshot and how many of its train samples have labels; all its train texts are the pool, without theirs.
The teacher is the offline start, fine-tuned. Every step is a `wenlei` command, shown as it begins, and left out where
it is finished already; what they say is in SCRATCH/log. Dev judges, nothing looks at test. Prints the tables of
docs/experiments.md.
"""

import argparse
import json
import os
import statistics
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import finished, printed

MAX_LENGTH = ("--max-length", 64)
TEACHER = ("--arch", "bert", "--epochs", 3, "--learning-rate", 1e-4, "--head-learning-rate", 1e-3, *MAX_LENGTH)
SIZES = {"4 x 312": "tiny4-312", "6 layers": {"layers": 6}}  # tiny6-768 is wider than the offline start
DISTILLED: dict[str, tuple[object, ...]] = {
    "4 x 312": (),
    "6 layers": ("--general-epochs", 0, "--epochs", 2),  # made of the teacher's own layers, it has less to learn
}
LABELS_ALONE: dict[str, tuple[object, ...]] = {
    "4 x 312": ("--control", "--epochs", 8),
    "6 layers": ("--control", "--epochs", 4),
}
NO_POOL = "no pool"
ABLATIONS: dict[str, tuple[object, ...]] = {
    "all of it": (),
    "without the general stage": ("--general-epochs", 0),
    "without the layers": ("--no-layers",),
    "random weights at first": ("--random",),
    "without the pool": (NO_POOL,),
    "without the pool, word neighbours in its place": (NO_POOL, "--augment", "neighbours"),
}
PRECISIONS = ("fp32", "int8")


@dataclass(frozen=True)
class Task:
    """A snapshot, and how many of its train samples have labels."""

    name: str
    snapshot: Path
    limit: int

    @classmethod
    def parse(cls, given: str) -> "Task":
        name, _, rest = given.partition("=")
        snapshot, _, limit = rest.partition(":")
        return cls(name, Path(snapshot), int(limit))


@dataclass(frozen=True)
class Student:
    """A size of `SIZES`, and the options of `wenlei distill` that are not the default."""

    size: str
    given: tuple[object, ...] = ()

    @property
    def options(self) -> list[object]:
        return [option for option in self.given if option != NO_POOL]

    @property
    def is_control(self) -> bool:
        return "--control" in self.given

    @property
    def reads_pool(self) -> bool:
        return not (self.is_control or NO_POOL in self.given)

    @property
    def folder(self) -> str:
        return "-".join(str(part).strip("-").replace(" ", "-") for part in (self.size, *self.given))


@dataclass(frozen=True)
class Bench:
    """Trains teachers and students, in `home`."""

    home: Path

    def teacher(self, task: Task, seed: int) -> dict[str, Any]:
        """The teacher's `run.json`."""
        given = ["train", "--snapshot", task.snapshot, "--limit", task.limit, "--seed", seed, *TEACHER]
        return finished(self.home, self._run(task, "teacher", seed), "run.json", *given)

    def student(self, task: Task, seed: int, student: Student) -> dict[str, Any]:
        """The `run.json` of a student of the teacher of the same seed."""
        given = ["distill", "--teacher", self._run(task, "teacher", seed), "--student", self._size(student.size)]
        given += ["--snapshot", task.snapshot, "--limit", task.limit, "--seed", seed, *MAX_LENGTH, *student.options]
        given += ["--unlabelled", task.snapshot] if student.reads_pool else []
        return finished(self.home, self._run(task, student.folder, seed), "run.json", *given)

    def exported(self, task: Task, seed: int, student: Student) -> dict[str, float]:
        """Accuracy on dev of each of `PRECISIONS`, of the student's bundle."""
        run = self._run(task, student.folder, seed)
        bundle = run.with_name(f"{run.name}-bundle")
        if not bundle.exists():
            printed(self.home, "export", run, "--out", bundle, "--precision", ",".join(PRECISIONS))
        split = ("--snapshot", task.snapshot, "--split", "dev")
        found = {one: printed(self.home, "evaluate", bundle, *split, "--precision", one) for one in PRECISIONS}
        return {precision: 100 * float(metrics["accuracy"]) for precision, metrics in found.items()}

    def _run(self, task: Task, name: str, seed: int) -> Path:
        return self.home / task.name / f"{name}-seed{seed}"

    def _size(self, size: str) -> str:
        given = SIZES[size]
        if isinstance(given, str):
            return given
        file = self.home / f"{size.replace(' ', '-')}.json"
        file.write_text(json.dumps(given))
        return str(file)


def main() -> None:
    """Train all, and print the tables."""
    options = parse()
    options.home.mkdir(parents=True, exist_ok=True)
    bench = Bench(options.home)
    students = [Student(size, given[size]) for size in SIZES for given in (DISTILLED, LABELS_ALONE)]
    with ThreadPoolExecutor(options.at_once) as pool:
        jobs = [(task, seed) for task in options.task for seed in options.seeds]
        list(pool.map(lambda job: bench.teacher(*job), jobs))
        list(pool.map(lambda job: bench.student(*job), [(*job, student) for student in students for job in jobs]))
        for task in options.task:
            sys.stdout.write(kept_table(bench, task, options.seeds, students) + "\n\n")
        for task in options.task:
            if task.name in options.ablate:
                sys.stdout.write(ablation_table(bench, pool, task, options.seeds[0]) + "\n\n")
        sys.stdout.write(precision_table(bench, options.task, options.seeds) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True, help="a folder for all runs")
    parser.add_argument("--task", type=Task.parse, action="append", required=True, help="NAME=SNAPSHOT:LIMIT")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--ablate", nargs="*", default=[], help="names of tasks")
    parser.add_argument("--at-once", type=int, default=os.cpu_count(), help="runs at a time, one thread each")
    return parser.parse_args()


def kept_table(bench: Bench, task: Task, seeds: Sequence[int], students: Sequence[Student]) -> str:
    """Accuracy of teachers and students on dev, and the share of the teacher's that a student keeps."""
    lines = [
        f"| {task.name} |"
        + "".join(f" seed {seed} |" for seed in seeds)
        + " mean | of the teacher | CPU minutes | MiB |",
        "|---|" + "---|" * (len(seeds) + 4),
    ]
    teachers = [bench.teacher(task, seed) for seed in seeds]
    best = statistics.mean(map(accuracy, teachers))
    rows = {"teacher": teachers}
    for student in students:
        name = f"{student.size}, labels alone" if student.is_control else student.size
        rows[name] = [bench.student(task, seed, student) for seed in seeds]
    for name, runs in rows.items():
        mean = statistics.mean(map(accuracy, runs))
        cells = "".join(f" {accuracy(run):.2f} |" for run in runs)
        memory = max(run["cost"]["peak_memory_mib"] for run in runs)
        lines.append(f"| {name} |{cells} {mean:.2f} | {100 * mean / best:.1f} % | {minutes(runs)} | {memory:,} |")
    return "\n".join(lines)


def ablation_table(bench: Bench, pool: ThreadPoolExecutor, task: Task, seed: int) -> str:
    """Accuracy of the small student on dev, without one part at a time."""
    students = [Student("4 x 312", given) for given in ABLATIONS.values()]
    runs = pool.map(lambda student: bench.student(task, seed, student), students)
    lines = [f"| {task.name}, 4 x 312, seed {seed} | accuracy | CPU minutes |", "|---|---|---|"]
    lines += [f"| {name} | {accuracy(run):.2f} | {minutes([run])} |" for name, run in zip(ABLATIONS, runs, strict=True)]
    return "\n".join(lines)


def precision_table(bench: Bench, tasks: Sequence[Task], seeds: Sequence[int]) -> str:
    """Accuracy on dev of the exported students, in each precision."""
    lines = ["| student | " + " | ".join(PRECISIONS) + " | difference |", "|---|" + "---|" * (len(PRECISIONS) + 1)]
    for task in tasks:
        for size in SIZES:
            for seed in seeds:
                found = bench.exported(task, seed, Student(size, DISTILLED[size]))
                cells = "".join(f" {found[precision]:.2f} |" for precision in PRECISIONS)
                lines.append(f"| {task.name}, {size}, seed {seed} |{cells} {found['int8'] - found['fp32']:+.2f} |")
    return "\n".join(lines)


def accuracy(run: dict[str, Any]) -> float:
    """On dev, in per cent."""
    return 100 * float(run["metrics"]["dev"]["accuracy"])


def minutes(runs: Sequence[dict[str, Any]]) -> str:
    """Of CPU, in the mean; of a run that was broken off, those since it went on."""
    return f"{statistics.mean(run['cost']['cpu_seconds'] for run in runs) / 60:.1f}"


if __name__ == "__main__":
    main()
