"""How good a run or a bundle is: figures on a split, calibration fitted on dev, predictions kept."""

import resource
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from model.bundle import open_bundle
from model.console import progress
from model.errors import BadInput, BadRun
from model.metrics import BoolArray, evaluate, fit_temperature, fit_thresholds, gold_matrix
from model.predictions import SplitPredictions, write_predictions
from model.run import Run
from model.runtime.base import logits_of
from model.runtime.decode import Decoder
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import FloatArray, IntArray, Sample, Split, Taxonomy, Text
from training.architectures import load_classifier
from training.data import Dataset, load, read
from training.loop import predict


def decoder_of(run: Run) -> Decoder:
    """The calibrated decoder of `run`."""
    return Decoder(run.taxonomy, **run.calibration)


class Judged(NamedTuple):
    """Samples of one split, what was said of them, (n_samples, n_labels), and their folds, (n_samples,), if any."""

    samples: Sequence[Sample]
    logits: FloatArray
    folds: IntArray | None = None


def judge(classifier: nn.Module, datasets: Mapping[Split, Dataset]) -> dict[Split, Judged]:
    """What `classifier` says of each split."""
    return {split: Judged(dataset.samples, predict(classifier, dataset)) for split, dataset in datasets.items()}


def conclude(run: Run, judged: Mapping[Split, Judged], *, cost: dict[str, Any]) -> Run:
    """Calibrate on dev, evaluate on every split of `judged`, keep the predictions, and mark the run as done."""
    gold = {
        split: gold_matrix([sample.labels for sample in given.samples], run.taxonomy) for split, given in judged.items()
    }
    calibration = calibrate(judged[Split.DEV].logits, gold[Split.DEV], run.taxonomy)
    decoder = Decoder(run.taxonomy, **calibration)
    scores = {split: decoder.scores(given.logits) for split, given in judged.items()}
    write_predictions(
        run.path,
        {split: SplitPredictions(given.samples, scores[split], given.folds) for split, given in judged.items()},
    )
    metrics = {
        split.value: evaluate(scores[split], gold[split], run.taxonomy, thresholds=decoder.thresholds)
        for split in judged
    }
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "peak_memory_mib": used.ru_maxrss // 1024,  # Linux counts in KiB
    }
    return run.finish(metrics=metrics, calibration=calibration, cost={**cost, **spent})


def calibrate(logits: FloatArray, gold: BoolArray, taxonomy: Taxonomy) -> dict[str, Any]:
    """Temperature, and thresholds where a text may carry several labels: the settings of a `Decoder`."""
    temperature = fit_temperature(logits, gold, taxonomy.activation)
    if not taxonomy.multiple:
        return {"temperature": temperature}
    scores = Decoder(taxonomy, temperature=temperature).scores(logits)
    return {"temperature": temperature, "thresholds": fit_thresholds(scores, gold, taxonomy.labels)}


def evaluate_path(path: Path, snapshot: Snapshot, split: Split, *, precision: str | None = None) -> dict[str, Any]:
    """Figures of the run or bundle at `path` on one split of `snapshot`.

    Raises:
        BadInput: `precision` is given for a run.
        BadRun: `path` is neither, keeps no model, or knows other labels than the snapshot.
        BadSnapshot: the split has no samples.
    """
    if (path / "bundle.json").exists():
        return _evaluate_bundle(path, snapshot, split, precision)
    run = Run.open(path)
    check_model_kept(run)
    if precision:
        raise BadInput(f"--precision {precision}: {path} is a run, only bundles have precisions; export it first")
    check_taxonomy(run.taxonomy, snapshot, path)
    tokenizer = load_tokenizer(run.model_path, max_length=run.config["max_length"])
    dataset = load(snapshot, split, tokenizer)
    decoder = decoder_of(run)
    scores = decoder.scores(predict(load_classifier(run), dataset))
    return evaluate(scores, dataset.gold, run.taxonomy, thresholds=decoder.thresholds)


def _evaluate_bundle(path: Path, snapshot: Snapshot, split: Split, precision: str | None) -> dict[str, Any]:
    bundle = open_bundle(path)
    check_taxonomy(bundle.manifest.taxonomy, snapshot, path)
    classifier = OnnxClassifier.load(bundle, precision=precision)
    samples = read(snapshot, split)
    scores = classifier.decoder.scores(serve_logits(classifier, [Text(s.text, s.pair) for s in samples]))
    gold = gold_matrix([sample.labels for sample in samples], snapshot.taxonomy)
    return evaluate(scores, gold, classifier.taxonomy, thresholds=classifier.decoder.thresholds)


def serve_logits(classifier: OnnxClassifier, texts: list[Text]) -> FloatArray:
    """Logits (n_texts, n_labels) on the path that serving takes: normalised, tokenized and run by the bundle."""
    with progress("评估 evaluating", len(texts)) as advance:
        return logits_of(classifier, texts, on_texts=advance)


def check_model_kept(run: Run) -> None:
    """Refuse a run that judged its own train split by folds: there are several models of it, and none is kept.

    Raises:
        BadRun: it is one.
    """
    if folds := run.config.get("folds"):
        raise BadRun(
            f"{run.path} was trained by {folds} folds and keeps no model, only predictions.parquet; "
            "train without --folds for a model"
        )


def check_taxonomy(taxonomy: Taxonomy, snapshot: Snapshot, path: Path) -> None:
    """Refuse to judge a model by labels that it does not know.

    Raises:
        BadRun: the taxonomies differ.
    """
    if taxonomy != snapshot.taxonomy:
        ours, theirs = set(taxonomy.labels), set(snapshot.taxonomy.labels)
        difference = ", ".join(sorted(ours ^ theirs)[:5]) or "task or order"
        raise BadRun(
            f"{path} was trained for other labels than snapshot {snapshot.hash} has ({difference}); train on that one"
        )
