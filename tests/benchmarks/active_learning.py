"""How many labels active learning saves against drawing texts by lot.

    python tests/benchmarks/active_learning.py SNAPSHOT… [--batch 200] [--seeds 3]

The train split of each snapshot (one label a text) is a pool without labels, its dev split judges, its test split is
not read. Every strategy begins with the same texts drawn by lot, one batch of them; then the model is trained, the
strategy chooses the next batch, and so on until dev's accuracy reaches 95% of that of a model trained on the whole
pool. The model is the linear one: TF-IDF of characters and bigrams of the pool, a support vector machine, its
temperature fitted on two halves that judge each other. Labels at the mark are read off the line between the last two
points of the curve.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.svm import LinearSVC

from app.library.selecting import Strategy, choose, lots, uncertainty
from model.metrics import activate, fit_temperature
from model.snapshot import open_snapshot
from model.types import FloatArray, IntArray, Sample, Split, Taxonomy, Text

STRENGTH = 0.3  # of C; see training/baselines.py
SHARE = 0.95  # of full accuracy, to be reached
ABSENT = -3.0  # the logit of a class that no label has been seen of
COLD = "diversity, cold"  # the first batch is spread out as well, without a model


def main() -> None:
    """Print a table a snapshot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("snapshots", nargs="+", type=Path)
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for path in options.snapshots:
        start = time.perf_counter()
        task = Task.read(path)
        say(
            f"{path}: pool {len(task.ids):,}, dev {task.dev.shape[0]:,}, {len(task.taxonomy)} classes; accuracy with "
            f"all labels {task.full:.4f}, mark {task.mark:.4f}; batches of {options.batch}, {options.seeds} seeds"
        )
        say("| strategy | labels to the mark, by seed | median | against random | accuracy at first batch |")
        say("|---|---|---|---|---|")
        baseline = 0.0
        for name in (Strategy.RANDOM, Strategy.MARGIN, Strategy.ENTROPY, Strategy.DIVERSITY, COLD):
            curves = [task.curve(name, batch=options.batch, seed=seed) for seed in range(options.seeds)]
            needed = [labels_at(curve, task.mark) for curve in curves]
            median = float(np.median(needed))
            baseline = baseline or median
            first = float(np.median([curve[0][1] for curve in curves]))
            each = ", ".join(f"{labels:,.0f}" for labels in needed)
            say(f"| {name} | {each} | {median:,.0f} | {median / baseline:.2f} | {first:.4f} |")
        say(f"{time.perf_counter() - start:.0f} s")


@dataclass(frozen=True)
class Task:
    """A pool with the labels that it would be given, and a dev set.

    pool, dev: their TF-IDF. full: accuracy with all labels.
    """

    taxonomy: Taxonomy
    ids: list[str]
    texts: list[Text]
    pool: csr_matrix
    labels: IntArray
    dev: csr_matrix
    dev_labels: IntArray
    full: float

    @classmethod
    def read(cls, path: Path) -> "Task":
        snapshot = open_snapshot(path)
        train, dev = (list(snapshot.samples(split)) for split in (Split.TRAIN, Split.DEV))
        vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(1, 2), min_df=2, sublinear_tf=True, dtype=np.float32)
        pool = vectorizer.fit_transform([sample.text for sample in train])
        given = {
            "pool": pool,
            "labels": positions(train, snapshot.taxonomy),
            "dev": vectorizer.transform([sample.text for sample in dev]),
            "dev_labels": positions(dev, snapshot.taxonomy),
        }
        model = machine().fit(pool, given["labels"])
        return cls(
            taxonomy=snapshot.taxonomy,
            ids=[sample.id for sample in train],
            texts=[Text(sample.text, sample.pair) for sample in train],
            full=float((model.predict(given["dev"]) == given["dev_labels"]).mean()),
            **given,
        )

    @property
    def mark(self) -> float:
        """The accuracy to be reached."""
        return SHARE * self.full

    def curve(self, name: str, *, batch: int, seed: int) -> list[tuple[int, float]]:
        """Numbers of labels and the accuracy with them, up to the first that reaches the mark."""
        everything = np.arange(len(self.ids))
        strategy = Strategy.DIVERSITY if name == COLD else Strategy(name)
        first = Strategy.DIVERSITY if name == COLD else Strategy.RANDOM
        labelled = self.choose(everything, lots(self.ids, seed), first, batch, judged=False)
        curve = []
        while True:
            model = machine().fit(self.pool[labelled], self.labels[labelled])
            curve.append((len(labelled), float((model.predict(self.dev) == self.dev_labels).mean())))
            if curve[-1][1] >= self.mark or len(labelled) == len(everything):
                return curve
            rest = np.setdiff1d(everything, labelled)
            if strategy is Strategy.RANDOM:
                worth = lots([self.ids[row] for row in rest], seed)
            else:
                scores = activate(
                    self.logits(model, self.pool[rest]) / self.temperature(labelled), self.taxonomy.activation
                )
                worth = uncertainty(scores, self.taxonomy, thresholds={}, strategy=strategy)
            chosen = self.choose(rest, worth, strategy, batch, judged=strategy is not Strategy.RANDOM)
            labelled = np.concatenate((labelled, chosen))

    def choose(self, rest: IntArray, worth: FloatArray, strategy: Strategy, batch: int, *, judged: bool) -> IntArray:
        """Rows of the pool, out of `rest`, which are worth so much."""
        chosen: IntArray = rest[
            choose(
                worth,
                [self.ids[row] for row in rest],
                lambda wanted: [self.texts[row] for row in rest[wanted]],
                count=batch,
                strategy=strategy,
                judged=judged,
            )
        ]
        return chosen

    def logits(self, model: Any, features: csr_matrix) -> FloatArray:
        """What `model` says of each class, also of those that it knows nothing of."""
        found = np.full((features.shape[0], len(self.taxonomy)), ABSENT, np.float32)
        decisions = model.decision_function(features)
        found[:, model.classes_] = np.column_stack((-decisions, decisions)) if decisions.ndim == 1 else decisions
        return found

    def temperature(self, labelled: IntArray) -> float:
        """That of the scores, by two models that each judge what the other was trained on."""
        halves = labelled[::2], labelled[1::2]
        rows = np.concatenate(halves[::-1])
        said = [
            self.logits(machine().fit(self.pool[half], self.labels[half]), self.pool[other])
            for half, other in (halves, halves[::-1])
        ]
        gold = self.labels[rows][:, None] == np.arange(len(self.taxonomy))
        return fit_temperature(np.vstack(said), gold, self.taxonomy.activation)


def machine() -> LinearSVC:
    """An untrained model. Seeded: the batches of a curve follow from the last digits of the ones before."""
    return LinearSVC(C=STRENGTH, random_state=0)


def positions(samples: list[Sample], taxonomy: Taxonomy) -> IntArray:
    """The label of each sample, as a position in the taxonomy."""
    return np.array(taxonomy.indices(label for sample in samples for label in sample.labels))


def labels_at(curve: list[tuple[int, float]], mark: float) -> float:
    """Where the line between the last two points crosses the mark."""
    if len(curve) == 1:
        return curve[0][0]
    (before, low), (after, high) = curve[-2:]
    return before + (mark - low) / (high - low) * (after - before)


def say(line: str) -> None:
    """Print it at once: a table takes minutes."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
