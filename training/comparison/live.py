"""Candidates as the bundles that would go live: how fast they answer on this machine, and how they take odd writing."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from model.bundle import Bundle, open_bundle
from model.comparison import SliceShape, SpeedShape
from model.console import say
from model.errors import ParityFailed
from model.files import sha256_file
from model.metrics import BoolArray, predicted_matrix
from model.run import Run
from model.runtime.bench import race
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.types import Text
from training.comparison.candidates import Contest
from training.comparison.perturbing import perturbations
from training.comparison.standing import accuracy
from training.evaluate import serve_logits
from training.export import export_run

TEXTS = 256  # of the snapshot, that are answered again and again
ROUNDS = 512
REWRITTEN = 500  # texts that are written in other ways
WRITING, AS_IT_IS = "写法 writing", "原文 as it is"
MIB = 1 << 20


def exported(runs: Mapping[str, Run], *, snapshot: Snapshot, folder: Path) -> dict[str, Bundle]:
    """The bundle of each candidate's run, exported into `folder` unless it is there already.

    One that does not answer as the trained model does is told, and left out.
    """
    found = {}
    for name, run in runs.items():
        try:
            found[name] = _bundle(run, snapshot, folder)
        except ParityFailed as error:
            say(f"{name} 不能导出，不测速 | {name} can't be exported, and its speed is not measured: {error}")
    return found


def _bundle(run: Run, snapshot: Snapshot, folder: Path) -> Bundle:
    weights = "".join(sha256_file(path) for path in sorted(run.model_path.glob("*.safetensors")))
    path = folder / f"{run.path.resolve().name}-{sha256(weights.encode()).hexdigest()[:8]}"
    if not path.exists():
        say(f"导出 | exporting: {run.path}")
        return export_run(run, out=path, snapshot=snapshot)
    return open_bundle(path)


def measure_speed(bundles: Mapping[str, Bundle], texts: Sequence[Text]) -> dict[str, dict[str, SpeedShape]]:
    """Of every precision of each bundle, all of them in turn."""
    contestants = {
        (name, precision): OnnxClassifier.load(bundle, precision=precision)
        for name, bundle in bundles.items()
        for precision in bundle.manifest.onnx
    }
    found: dict[str, dict[str, SpeedShape]] = {name: {} for name in bundles}
    for (name, precision), pace in race(contestants, texts[:TEXTS], rounds=ROUNDS).items():
        found[name][precision] = {
            "p50_ms": pace.p50_ms,
            "p99_ms": pace.p99_ms,
            "texts_per_second": pace.texts_per_second,
            "file_mib": round(bundles[name].onnx_path(precision).stat().st_size / MIB, 1),
        }
    return found


def measure_robustness(bundles: Mapping[str, Bundle], contest: Contest) -> dict[str, list[SliceShape]]:
    """Accuracy on some of the texts as they are, and written in each of the ways of `perturbations`."""
    rows = np.random.default_rng(0).permutation(len(contest.samples))[:REWRITTEN]
    texts = [Text(contest.samples[row].text, contest.samples[row].pair) for row in rows.tolist()]
    every = [Text(sample.text, sample.pair) for sample in contest.samples]
    written = {AS_IT_IS: texts, **{name: rewrite(texts) for name, rewrite in perturbations(every).items()}}
    classifiers = {name: OnnxClassifier.load(bundle) for name, bundle in bundles.items()}
    return {
        name: [
            {
                "kind": WRITING,
                "name": form,
                "n": len(texts),
                "accuracy": accuracy(_right(classifier, its, contest.gold[rows])[None]),
            }
            for form, its in written.items()
        ]
        for name, classifier in classifiers.items()
    }


def _right(classifier: OnnxClassifier, texts: Sequence[Text], gold: BoolArray) -> BoolArray:
    """Which of `texts` it has all labels of: (n,)."""
    scores = classifier.decoder.scores(serve_logits(classifier, list(texts)))
    right: BoolArray = (predicted_matrix(scores, classifier.taxonomy, classifier.decoder.thresholds) == gold).all(
        axis=1
    )
    return right
