"""Export a run as a bundle: ONNX models that answer as the trained network does, or no bundle at all.

Every model is opened again the way the server opens it and compared on real texts. In fp32 every label has to be
the same; in int8 accuracy may differ by half a point, or, on too few texts to tell, logits by a fifth of their spread.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from model.bundle import Bundle, Manifest, seal_bundle
from model.console import say
from model.errors import BadInput, BadSnapshot, ParityFailed
from model.files import staging_folder
from model.metrics import BoolArray, evaluate, predicted_matrix
from model.provenance import now
from model.run import Run
from model.runtime.decode import Decoder
from model.runtime.onnx import OnnxClassifier
from model.snapshot import Snapshot, open_snapshot
from model.text import Normaliser
from model.tokenization import load_tokenizer
from model.types import FloatArray, Split, Text
from training import onnx_file
from training.architectures import ARCHITECTURES, build_graph, load_classifier
from training.card import model_card
from training.data import Dataset, load
from training.evaluate import check_model_kept, serve_logits
from training.loop import predict

MAX_FP32_DIFFERENCE = 1e-3  # of a logit; float32 sums in another order stay far below
ROUNDING = 1e-5  # of a score: what float32 sums in another order come to
MAX_INT8_ACCURACY_CHANGE = 0.005
MAX_INT8_LOGIT_ERROR = 0.2  # root mean square, as a share of the logits' own spread
FEWEST_FOR_ACCURACY = 200  # on fewer texts half a point is less than one text


def export_run(
    run: Run,
    *,
    out: Path,
    precisions: Sequence[str] | None = None,
    snapshot: Snapshot | None = None,
    name: str | None = None,
    abstain_below: float = 0.0,
) -> Bundle:
    """Write the bundle `out` from a finished run, in `precisions`, by default all that the architecture has.

    By default int8 is left out where it does not pass its gate.

    `snapshot` is the one the run was trained on; without it, it is looked for where it lay then.

    Raises:
        BadInput: the architecture has no such precision, or `out` exists.
        BadRun: the run keeps no model.
        BadSnapshot: the snapshot is gone, or is another.
        ParityFailed: an exported model does not answer as the trained one does; nothing is written.
    """
    check_model_kept(run)
    wanted = check_precisions(run, precisions)
    optional = [] if precisions else wanted[1:]  # what nobody asked for by name is left out where it fails
    if out.exists():
        raise BadInput(f"{out} exists already, and a bundle never changes; give another --out")
    judged, split = parity_set(run, snapshot or trained_on(run))
    classifier = load_classifier(run)
    reference = predict(classifier, judged)
    manifest = Manifest(
        name=name or out.name,
        arch=run.arch,
        taxonomy=run.taxonomy,
        normaliser=Normaliser.from_json(run.config["normaliser"]),
        max_length=run.config["max_length"],
        pooling=run.config.get("pooling"),
        snapshot=run.snapshot,
        run={
            "seed": run.seed,
            "config": run.config,
            "environment": run.environment,
            "train_samples": run.cost["train_samples"],
            "finished_at": run.finished_at,
        },
        onnx={precision: f"onnx/model.{precision}.onnx" for precision in wanted},
        abstain_below=abstain_below,
        metrics={"trained": run.metrics},
        created_at=now(),
        **run.calibration,
    )
    with staging_folder(out) as staging:
        shutil.copytree(run.model_path, staging, dirs_exist_ok=True)
        (staging / "onnx").mkdir()
        for precision, file in manifest.onnx.items():
            say(f"导出 exporting {precision}")
            onnx_file.save(build_graph(classifier, precision, run), staging / file)
        trial = Bundle(path=staging, version="unsealed", manifest=manifest)
        verdicts = {}
        for precision, file in manifest.onnx.items():
            try:
                verdicts[precision] = judge(trial, precision, judged, reference)
            except ParityFailed as failure:
                if precision not in optional:
                    raise
                say(f"不含 {precision}：没有通过检验 | {precision} is left out: {failure}")
                (staging / file).unlink()
        manifest = replace(
            manifest,
            onnx={precision: manifest.onnx[precision] for precision in verdicts},
            parity={precision: {"split": split.value, **verdict.parity} for precision, verdict in verdicts.items()},
            metrics={**manifest.metrics, **{precision: verdict.metrics for precision, verdict in verdicts.items()}},
        )
        (staging / "README.md").write_text(model_card(manifest), encoding="utf-8")
        return seal_bundle(staging, manifest, out)


def check_precisions(run: Run, asked: Sequence[str] | None) -> list[str]:
    """The precisions to write, without repetition.

    Raises:
        BadInput: the architecture has no such precision.
    """
    available = ARCHITECTURES[run.arch].precisions
    wanted = list(dict.fromkeys(asked or available))
    if unknown := [precision for precision in wanted if precision not in available]:
        raise BadInput(f"--precision {', '.join(unknown)}: models of {run.arch} have {', '.join(available)}")
    return wanted


def trained_on(run: Run) -> Snapshot:
    """The snapshot of `run`, where it lay when it was trained.

    Raises:
        BadSnapshot: it is gone.
    """
    if not Path(run.snapshot_path).is_dir():
        raise BadSnapshot(f"snapshot {run.snapshot} is no longer at {run.snapshot_path}; say where with --snapshot")
    return open_snapshot(Path(run.snapshot_path))


def parity_set(run: Run, snapshot: Snapshot) -> tuple[Dataset, Split]:
    """The texts on which the exported models are compared: test, or dev where there is no test split.

    Raises:
        BadSnapshot: `snapshot` is not the one that the run was trained on.
    """
    if snapshot.hash != run.snapshot:
        raise BadSnapshot(
            f"{snapshot.path} is snapshot {snapshot.hash}, the run was trained on {run.snapshot}; give that"
        )
    split = Split.TEST if snapshot.counts[Split.TEST.value] else Split.DEV
    return load(snapshot, split, load_tokenizer(run.model_path, max_length=run.config["max_length"])), split


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate saw of one precision that passed: how far it is from the trained network, and its figures."""

    parity: dict[str, Any]
    metrics: dict[str, Any]


def judge(trial: Bundle, precision: str, judged: Dataset, reference: FloatArray) -> Verdict:
    """Run `precision` as the server would and compare its logits with `reference` (n_samples, n_labels).

    Raises:
        ParityFailed: they are too far apart.
    """
    classifier = OnnxClassifier.load(trial, precision=precision)
    decoder = classifier.decoder
    logits = serve_logits(classifier, [Text(sample.text, sample.pair) for sample in judged.samples])
    both = decoder.scores(logits), decoder.scores(reference)
    figures = [evaluate(scores, judged.gold, decoder.taxonomy, thresholds=decoder.thresholds) for scores in both]
    spread = float((reference - reference.mean(0)).std()) or 1.0
    parity = {
        "samples": len(judged),
        "same_labels": int(same_labels(*both, decoder).sum()),
        "max_logit_difference": float(np.abs(logits - reference).max()),
        "logit_error": float(np.sqrt(np.mean((logits - reference) ** 2))) / spread,
        "accuracy_change": figures[0]["accuracy"] - figures[1]["accuracy"],
        "judged_by": "labels"
        if precision == "fp32"
        else "accuracy"
        if len(judged) >= FEWEST_FOR_ACCURACY
        else "logits",
    }
    if reason := why_refused(precision, parity):
        raise ParityFailed(f"the {precision} model is not the one that was trained: {reason}")
    return Verdict(parity=parity, metrics=figures[0])


def same_labels(scores: FloatArray, expected: FloatArray, decoder: Decoder) -> BoolArray:
    """Which texts get the same labels by both scores (n_samples, n_labels): (n_samples,).

    A label whose two scores are the same but for rounding is none that tells them apart: it lies on its threshold, as
    scores of a model that has hardly learned do, or level with another label.
    """
    taxonomy, thresholds = decoder.taxonomy, decoder.thresholds
    differs = predicted_matrix(scores, taxonomy, thresholds) != predicted_matrix(expected, taxonomy, thresholds)
    same: BoolArray = ~(differs & (np.abs(scores - expected) > ROUNDING)).any(axis=1)
    return same


def why_refused(precision: str, parity: Mapping[str, Any]) -> str | None:
    """What is wrong with an exported model, or None where it may go out."""
    if precision == "fp32":
        if (different := parity["samples"] - parity["same_labels"]) > 0:
            return (
                f"{different} of {parity['samples']} texts get another label, though no logit differs by more than "
                f"{parity['max_logit_difference']:.2g}"
            )
        if parity["max_logit_difference"] > MAX_FP32_DIFFERENCE:
            return f"a logit differs by {parity['max_logit_difference']:.2g}, allowed is {MAX_FP32_DIFFERENCE}"
    elif parity["judged_by"] == "accuracy":
        if abs(parity["accuracy_change"]) > MAX_INT8_ACCURACY_CHANGE:
            return (
                f"accuracy changes by {100 * parity['accuracy_change']:+.2f} points, allowed are "
                f"{100 * MAX_INT8_ACCURACY_CHANGE}; export it with --precision fp32, or train longer"
            )
    elif parity["logit_error"] > MAX_INT8_LOGIT_ERROR:
        return (
            f"on {parity['samples']} texts, too few to judge accuracy, logits are off by {parity['logit_error']:.0%} "
            f"of their spread, allowed are {MAX_INT8_LOGIT_ERROR:.0%}; export it with --precision fp32, or train longer"
        )
    return None
