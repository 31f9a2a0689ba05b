"""What is compared: runs on one snapshot, those of one recipe taken together."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from model.errors import BadInput, BadRun, BadSnapshot
from model.files import canonical_json
from model.metrics import BoolArray, gold_matrix, predicted_matrix
from model.predictions import read_predictions
from model.run import Run
from model.snapshot import Snapshot, describe_snapshot, open_snapshot
from model.types import FloatArray, Sample, Split


@dataclass(frozen=True, slots=True)
class Candidate:
    """The runs of one recipe, and of each what it says of the texts: (n, n_labels)."""

    name: str
    runs: tuple[Run, ...]
    scores: tuple[FloatArray, ...]
    predicted: tuple[BoolArray, ...]


@dataclass(frozen=True, slots=True)
class Contest:
    """Candidates, and the texts that they are judged by, sorted by id; gold: (n, n_labels)."""

    snapshot: Snapshot
    split: Split
    samples: Sequence[Sample]
    gold: BoolArray
    candidates: tuple[Candidate, ...]


def read_contest(given: Sequence[str], *, split: Split | None, snapshot: Path | None) -> Contest:
    """The contest of the runs `given`, each a folder, or NAME=FOLDER,FOLDER for the seeds of one recipe.

    split: test where all runs were judged on it, else dev, unless it is given. snapshot: where it lies now.

    Raises:
        BadInput: there are fewer than two candidates, or two of one name.
        BadRun: a run is not there or not done, knows nothing of the split, or is of another snapshot than the first.
        BadSnapshot: the snapshot is no longer where the first run says.
    """
    parsed = [_parse(each) for each in given]
    runs = [run for _, own in parsed for run in own]
    _check_snapshots(runs)
    named = _named(parsed)
    if len(named) < 2:
        raise BadInput(
            "a comparison needs two candidates at least; give more runs, or NAME=RUN for each where one recipe's seeds "
            "are to be compared"
        )
    chosen = split or (Split.TEST if all(Split.TEST.value in run.metrics for run in runs) else Split.DEV)
    opened = _open(runs, snapshot)
    samples = sorted(opened.samples(chosen), key=lambda sample: sample.id)
    return Contest(
        snapshot=opened,
        split=chosen,
        samples=samples,
        gold=gold_matrix([sample.labels for sample in samples], opened.taxonomy),
        candidates=tuple(_candidate(name, own, chosen, samples) for name, own in named),
    )


def _parse(given: str) -> tuple[str | None, list[Run]]:
    name, equals, paths = given.partition("=")
    if equals and not Path(given).exists():
        return name, [Run.open(Path(path)) for path in paths.split(",")]
    return None, [Run.open(Path(given))]


def _named(given: Sequence[tuple[str | None, list[Run]]]) -> list[tuple[str, list[Run]]]:
    """Candidates with their names; runs that differ in nothing but their seed are one."""
    recipes: dict[bytes, list[Run]] = {}
    found: list[tuple[str | None, list[Run]]] = []
    for name, runs in given:
        if name is not None:
            found.append((name, runs))
            continue
        key = canonical_json([runs[0].arch, runs[0].config])
        if key not in recipes:
            recipes[key] = []
            found.append((None, recipes[key]))
        recipes[key] += runs
    named = [(name or _name_of(runs), runs) for name, runs in found]
    names = [name for name, _ in named]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise BadInput(f"two candidates are called {twice[0]!r}; name them: A=RUN B=RUN")
    for name, runs in named:
        paths = [run.path.resolve() for run in runs]
        if len(set(paths)) < len(paths):
            raise BadInput(f"{name}: a run stands twice; name it once")
    return named


def _name_of(runs: Sequence[Run]) -> str:
    name = runs[0].path.resolve().name
    return re.sub(r"[-_]?seed[-_]?\d+$", "", name) or name if len(runs) > 1 else name


def _check_snapshots(runs: Sequence[Run]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if run.snapshot != first.snapshot:
            raise BadRun(
                f"{run.path} was trained on snapshot {_described(run)}, {first.path} on {_described(first)}: figures "
                "on different texts can't be compared; train both on one"
            )


def _described(run: Run) -> str:
    try:
        counts = describe_snapshot(Path(run.snapshot_path)).counts
    except BadSnapshot:
        return run.snapshot
    sizes = ", ".join(f"{counts[split.value]:,} {split.value}" for split in reversed(Split))
    return f"{run.snapshot} ({sizes})"


def _open(runs: Sequence[Run], snapshot: Path | None) -> Snapshot:
    wanted = runs[0].snapshot
    places = [snapshot] if snapshot else list(dict.fromkeys(Path(run.snapshot_path) for run in runs))
    there = next((place for place in places if (place / "manifest.json").exists()), None)
    if there is None:
        raise BadSnapshot(
            f"snapshot {wanted} is not in {', '.join(map(str, places))} any more; say where it is with --snapshot"
        )
    opened = open_snapshot(there)
    if opened.hash != wanted:
        raise BadSnapshot(f"{there} is snapshot {opened.hash}, the runs were trained on {wanted}; give that one")
    return opened


def _candidate(name: str, runs: Sequence[Run], split: Split, samples: Sequence[Sample]) -> Candidate:
    scores, predicted = [], []
    for run in runs:
        said = read_predictions(run.path, run.taxonomy)
        rows = {said.ids[row]: row for row, its in enumerate(said.splits) if its is split}
        if rows.keys() != {sample.id for sample in samples}:
            raise BadRun(
                f"{run.path} has predictions of {len(rows):,} {split.value} samples, its snapshot has "
                f"{len(samples):,}; train it again, or choose another --split"
            )
        own = said.scores[[rows[sample.id] for sample in samples]]
        scores.append(own)
        predicted.append(predicted_matrix(own, run.taxonomy, run.calibration.get("thresholds")))
    return Candidate(name, tuple(runs), tuple(scores), tuple(predicted))
