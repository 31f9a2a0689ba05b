"""How well label errors are found, and what cleaning them is worth, the whole way through the product.

    python tests/benchmarks/label_errors.py --data DIR --home DIR --seeds 0 1 2 3 4
    python tests/benchmarks/label_errors.py --data DIR --home DIR --seeds 0 --rows 10000 --bert
    python tests/benchmarks/label_errors.py --data DIR --home DIR --noisy

DIR holds `train.txt` and `dev.txt`, `text<TAB>class` a line; with --noisy, `train.json` and `dev.json`, JSON lines with
`sentence` and `label`, in which nothing is planted for they are mislabelled as they are. Each seed mislabels one text
in ten of train, as two other classes of each class, seven to three. Then: import, snapshot, training by folds, judging,
cleaning of train in sweeps, snapshot, training, accuracy on the dev that nobody touched. Where cleanlab is installed,
its rankings are measured on the same predictions.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sqlalchemy as sa

from app.library.definition import ImportOptions
from app.library.doctor.applying import Action, apply_label_errors
from app.library.doctor.census import Census, take_census
from app.library.doctor.judging import read_judged
from app.library.doctor.label_errors import Verdicts, judge_labels, still_standing
from app.library.importing import import_files
from app.library.rows import Columns
from app.library.snapshots import Conflicts, freeze
from app.library.splits import Splitter
from app.library.sweeping import undo_sweep
from app.library.tables import Reading
from app.settings import Settings
from app.store.database import connect, open_database, reading
from app.store.libraries import get_library
from model.files import read_json
from model.near import NearSettings
from model.predictions import Predictions, read_predictions
from model.run import Run
from model.snapshot import Snapshot
from model.text import Normaliser, sample_id
from model.types import Split
from training.baselines import LinearOptions, LinearRecipe
from training.crossfit import train_by_folds
from training.recipe import Recipe, train

LIBRARY = "errors"
RATE = 0.1
CONFIDENCES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
PERSON = "measurement"


class Rows(NamedTuple):
    """Texts of a split, and the class of each as it was published."""

    texts: list[str]
    labels: list[str]


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--home", type=Path, required=True, help="a scratch folder; what is there is used again")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--rows", type=int, help="of train at most")
    parser.add_argument("--noisy", action="store_true", help="plant nothing")
    parser.add_argument("--bert", action="store_true", help="train the offline BERT on what a linear model cleaned")
    parser.add_argument("--clean-at", type=float, nargs="+", default=[0.5])
    given = parser.parse_args()
    suffix = "json" if given.noisy else "txt"
    published = {split: read(given.data / f"{split}.{suffix}") for split in (Split.TRAIN, Split.DEV)}
    published[Split.TRAIN] = Rows(*(column[: given.rows] for column in published[Split.TRAIN]))
    for seed in given.seeds:
        labels = published[Split.TRAIN].labels if given.noisy else plant(published[Split.TRAIN].labels, seed)
        home = given.home / f"{'noisy' if given.noisy else 'planted'}-{len(labels)}-seed{seed}"
        with open_database(Settings(home=home, database_url=f"sqlite:///{home}/wenlei.db")) as engine:
            Trial(engine, home, seed, given.bert, published, labels).run(given.clean_at)


def read(path: Path) -> Rows:
    """The rows of a file."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".json":
        objects = [json.loads(line) for line in lines]
        return Rows([row["sentence"] for row in objects], [f"{row['label']}" for row in objects])
    pairs = [line.rsplit("\t", 1) for line in lines]
    return Rows([text for text, _ in pairs], [label for _, label in pairs])


def by_id(rows: Rows) -> dict[str, str]:
    """Of each sample, as the library has it, its published label."""
    normalise = Normaliser()
    return {sample_id(normalise(text)): label for text, label in zip(*rows, strict=True)}


def plant(labels: list[str], seed: int) -> list[str]:
    """The labels, one in ten of them wrong: each class is taken for one of two others."""
    generator = np.random.default_rng(seed)
    names = sorted(set(labels))
    others = {name: generator.choice([each for each in names if each != name], 2, replace=False) for name in names}
    flipped = generator.random(len(labels)) < RATE
    return [
        str(others[label][int(generator.random() < 0.3)]) if flip else label
        for label, flip in zip(labels, flipped, strict=True)
    ]


class Trial:
    """One library with errors: what is found in it, and what cleaning gains."""

    def __init__(
        self,
        engine: sa.Engine,
        home: Path,
        seed: int,
        bert: bool,
        published: Mapping[Split, Rows],
        labels: list[str],
    ) -> None:
        self.engine, self.home, self.seed, self.bert = engine, home, seed, bert
        train_rows, dev_rows = published[Split.TRAIN], published[Split.DEV]
        self.published, self.dev = by_id(train_rows), by_id(dev_rows)
        self.clean_snapshot = self._library("clean", train_rows, dev_rows)
        self.snapshot = self._library(LIBRARY, Rows(train_rows.texts, labels), dev_rows)

    def run(self, clean_at: list[float]) -> None:
        """Judge, then clean and train."""
        run = self._trained(self.snapshot, "folds", n_folds=5)
        with connect(self.engine) as connection, reading(connection):
            census = take_census(connection, get_library(connection, LIBRARY), NearSettings()).census
        predictions = read_judged(run.path, census, [self.snapshot.hash]).predictions
        verdicts = judge_labels(predictions, run.taxonomy, still_standing(census, predictions))
        say(f"\n## seed {self.seed}: {len(verdicts):,} judged, {verdicts.left_out:,} left out")
        for split in (Split.TRAIN, Split.DEV):
            places = [place for place, its in enumerate(verdicts.splits) if its is split]
            wrong = verdicts.wrong[places]
            say(f"{split}: {len(places):,} judged, estimated wrong {wrong.sum():,.0f} ({wrong.mean():.2%})")
        in_train = np.array([sample in self.published for sample in verdicts.ids])
        truly = np.array([self.published.get(sample) for sample in verdicts.ids], object)
        planted = in_train & np.array([given[0] != true for given, true in zip(verdicts.given, truly, strict=True)])
        if planted.any():
            self._rankings(verdicts, predictions, planted, in_train, truly)
        self._gains(run, census, verdicts, predictions, clean_at)

    def _rankings(
        self, verdicts: Verdicts, predictions: Predictions, planted: np.ndarray, in_train: np.ndarray, truly: np.ndarray
    ) -> None:
        """How well planted errors rank among all of train."""
        say(f"planted and judged: {planted.sum():,}")
        rows = np.flatnonzero(in_train)
        say("| ranking | first 200 | first 1000 | at recall 0.5 | at recall 0.8 |\n|---|---|---|---|---|")
        say(told("wenlei", verdicts.right[rows], planted[rows]))
        alone = judge_labels(predictions, verdicts.taxonomy, np.flatnonzero(in_split(predictions, Split.TRAIN)))
        those = dict(zip(alone.ids, alone.right, strict=True))
        quality = np.array([those.get(verdicts.ids[row], verdicts.right[row]) for row in rows])
        say(told("wenlei, train judged by itself", quality, planted[rows]))
        places = {sample: place for place, sample in enumerate(predictions.ids)}
        scores = predictions.scores[[places[verdicts.ids[row]] for row in rows]].astype(np.float64)
        scores /= scores.sum(axis=1, keepdims=True)
        columns = {label: column for column, label in enumerate(verdicts.taxonomy.labels)}
        given = np.array([columns[verdicts.given[row][0]] for row in rows])
        cleanlab(scores, given, planted[rows])
        say("| confidence from | wrong | of these planted | proposals | of these right |\n|---|---|---|---|---|")
        is_right = np.array([proposed == (true,) for proposed, true in zip(verdicts.proposed, truly, strict=True)])
        errors = np.intersect1d(verdicts.errors(), rows)
        for least in CONFIDENCES:
            drops = errors[verdicts.wrong[errors] >= least]
            changes = errors[verdicts.confidence[errors] >= least]
            say(
                f"| {least} | {len(drops):,} | {planted[drops].mean():.3f} | {len(changes):,} | "
                f"{is_right[changes].mean():.3f} |"
            )

    def _gains(
        self, run: Run, census: Census, verdicts: Verdicts, predictions: Predictions, clean_at: list[float]
    ) -> None:
        """Accuracy on dev before and after cleaning train; of a dev that may be wrong itself, also where it is not."""
        suspected = {verdicts.ids[place] for place in verdicts.errors()}
        train_alone = some(predictions, np.flatnonzero(in_split(predictions, Split.TRAIN)))
        say("| trained on | changed | accuracy on dev | on dev without suspects |\n|---|---|---|---|")
        arch = "bert" if self.bert else "linear"
        reached = {"raw": self._accuracy("raw", self._trained(self.snapshot, f"{arch}-raw"), 0, suspected)}
        for action in Action:
            for least in clean_at:
                done = apply_label_errors(
                    self.engine, census, run, train_alone, action=action, min_confidence=least, by=PERSON
                )
                if done.sweep is None:
                    continue
                name = f"{action} at {least}"
                cleaned = self._freeze(LIBRARY)
                trained = self._trained(cleaned, f"{arch}-{action}-{least}")
                reached[name] = self._accuracy(name, trained, done.changed, suspected)
                undo_sweep(self.engine, library=LIBRARY, sweep=done.sweep, by=PERSON)
        if self.clean_snapshot.hash == self.snapshot.hash:
            return
        reached["clean"] = self._accuracy("clean", self._trained(self.clean_snapshot, f"{arch}-clean"), 0, suspected)
        loss = reached["clean"] - reached["raw"]
        say(f"the noise costs {100 * loss:.2f} points; recovered:")
        for name, accuracy in reached.items():
            if name not in ("raw", "clean"):
                gain = accuracy - reached["raw"]
                say(f"- {name}: {100 * gain:+.2f} points, {gain / loss:.0%}")

    def _accuracy(self, name: str, run: Run, changed: int, suspected: set[str]) -> float:
        """Of the dev samples as published, the share that `run` has right."""
        found = read_predictions(run.path, run.taxonomy)
        hits = {
            sample: run.taxonomy.labels[int(scores.argmax())] == self.dev[sample]
            for sample, split, scores in zip(found.ids, found.splits, found.scores, strict=True)
            if split is Split.DEV and sample in self.dev and sample not in self.published
        }
        trusted = [hit for sample, hit in hits.items() if sample not in suspected]
        accuracy = sum(hits.values()) / len(hits)
        among = 100 * sum(trusted) / len(trusted)
        say(f"| {name} | {changed:,} | {100 * accuracy:.2f} | {among:.2f} of {len(trusted):,} |")
        return accuracy

    def _library(self, name: str, train_rows: Rows, dev_rows: Rows) -> Snapshot:
        """A library of that name, filled if it isn't, and frozen."""
        for split, rows in ((Split.TRAIN, train_rows), (Split.DEV, dev_rows)):
            path = self.home / f"{name}-{split}.csv"
            if path.exists():
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            table = [{"text": text, "label": label} for text, label in zip(*rows, strict=True)]
            path.with_suffix(".jsonl").write_text("\n".join(json.dumps(row) for row in table), encoding="utf-8")
            import_files(
                self.engine,
                [path.with_suffix(".jsonl")],
                options=ImportOptions(library=name),
                columns=Columns(text="text", label="label", split=split.value),
                reading=Reading(),
                rejects_folder=self.home / "rejects",
            )
            path.touch()
        return self._freeze(name)

    def _freeze(self, name: str) -> Snapshot:
        return freeze(
            self.engine,
            library=name,
            folder=self.home / "snapshots",
            splitter=Splitter(test=0, dev=0, seed=0),
            conflicts=Conflicts.KEEP,
            near=NearSettings(),
        ).snapshot

    def _trained(self, snapshot: Snapshot, name: str, *, n_folds: int = 0) -> Run:
        """A run on the snapshot."""
        out = self.home / "runs" / name
        if (out / "run.json").exists() and read_json(out / "run.json")["status"] == "done":
            return Run.open(out)
        recipe: Recipe = LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(), seed=self.seed)
        if n_folds:
            return train_by_folds(snapshot, recipe, n_folds=n_folds, out=out)
        if self.bert:
            from training.finetune import FinetuneOptions, FinetuneRecipe
            from training.kinds import BertKind

            recipe = FinetuneRecipe.resolve(
                snapshot.taxonomy, BertKind(), FinetuneOptions(), seed=self.seed, cache=self.home / "pretrained"
            )
        return train(snapshot, recipe, out=out)


def cleanlab(scores: np.ndarray, given: np.ndarray, planted: np.ndarray) -> None:
    """The rankings of cleanlab, where it is installed."""
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        say("| cleanlab is not installed | | | | |")
        return
    for method in ("self_confidence", "normalized_margin"):
        for adjusted in (False, True):
            quality = get_label_quality_scores(given, scores, method=method, adjust_pred_probs=adjusted)
            say(told(f"cleanlab {method}{', adjusted' if adjusted else ''}", quality, planted))
    for filtered in ("prune_by_noise_rate", "confident_learning"):
        found = find_label_issues(given, scores, filter_by=filtered, n_jobs=1)
        say(f"| cleanlab {filtered}: {found.sum():,}, precision {planted[found].mean():.3f} | | | | |")


def told(name: str, quality: np.ndarray, planted: np.ndarray) -> str:
    """A row of the table: the precision among the first, lowest quality first."""
    hits = planted[np.argsort(quality, kind="stable")].cumsum()
    cells = [hits[199] / 200, hits[999] / 1000]
    for recall in (0.5, 0.8):
        count = int(np.searchsorted(hits, recall * planted.sum())) + 1
        cells.append(hits[count - 1] / count)
    return f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |"


def some(predictions: Predictions, places: np.ndarray) -> Predictions:
    """The predictions at these places."""
    return Predictions(
        ids=[predictions.ids[place] for place in places],
        splits=[predictions.splits[place] for place in places],
        gold=[predictions.gold[place] for place in places],
        scores=predictions.scores[places],
        folds=predictions.folds[places],
    )


def in_split(predictions: Predictions, split: Split) -> np.ndarray:
    """(n,), which predictions are of it."""
    return np.array([its is split for its in predictions.splits])


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
