"""Training by folds: what is said of a sample comes from models that have not seen it, in one go or in several."""

import gc
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import training.crossfit
import training.loop
from model.architectures.bert import BertClassifier
from model.errors import BadInput, BadRun, BadSnapshot
from model.predictions import NO_FOLD, Predictions, read_predictions
from model.run import Run
from model.runtime.decode import Decoder
from model.snapshot import Snapshot, write_snapshot
from model.text import sample_id
from model.types import Sample, Split
from training.baselines import LinearOptions, LinearRecipe, feature_matrix, fit, fit_tokenizer
from training.crossfit import train_by_folds
from training.data import encode, read
from training.device import NumberFormat
from training.evaluate import evaluate_path
from training.export import export_run
from training.finetune import FinetuneOptions, FinetuneRecipe
from training.folds import near_folds
from training.kinds import BertKind
from training.loop import Options, predict
from training.recipe import Prepared, Recipe, train

Kill = Callable[[pytest.MonkeyPatch], None]
LOOP = Options(
    epochs=1, batch_size=8, learning_rate=3e-3, head_learning_rate=3e-3, checkpoint_every=2,
    precision=NumberFormat.FP32,
)  # fmt: skip


class Killed(Exception):
    """Stands for a process that ends in mid-training."""


def linear(snapshot: Snapshot, **options: int) -> LinearRecipe:
    return LinearRecipe(taxonomy=snapshot.taxonomy, options=LinearOptions(**options), seed=0)


def bert(snapshot: Snapshot, start: Path) -> FinetuneRecipe:
    """Of two folds: three steps of eight texts each."""
    options = FinetuneOptions(init=str(start), max_length=40, limit=48, loop=LOOP)
    return FinetuneRecipe.resolve(snapshot.taxonomy, BertKind(), options, seed=1, cache=start.parent)


def changed(snapshot: Snapshot, samples: Iterable[Sample], folder: Path) -> Snapshot:
    return write_snapshot(
        sorted(samples, key=lambda sample: sample.id),
        taxonomy=snapshot.taxonomy,
        normaliser=snapshot.normaliser,
        folder=folder,
    )


def planted(text: str, label: str) -> Sample:
    return Sample(sample_id(text), text, None, (label,), Split.TRAIN)


def said(run: Run) -> Predictions:
    return read_predictions(run.path, run.taxonomy)


def test_every_sample_is_judged_once_and_train_by_folds(any_snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_by_folds(any_snapshot, linear(any_snapshot), n_folds=3, out=tmp_path / "run")
    predictions, train_samples = said(run), read(any_snapshot, Split.TRAIN)
    assert sorted(predictions.ids) == [sample.id for sample in any_snapshot.samples()]
    folds = {each: fold for each, fold in zip(predictions.ids, predictions.folds.tolist(), strict=True)}  # noqa: C416
    expected = near_folds(train_samples, n_folds=3, seed=0).tolist()
    assert [folds.pop(sample.id) for sample in train_samples] == expected
    assert set(folds.values()) == {NO_FOLD}
    assert Run.open(run.path) == run
    assert run.config["folds"] == 3
    assert {split: figures["n"] for split, figures in run.metrics.items()} == {
        split: any_snapshot.counts[split] for split in ("train", "dev", "test")
    }
    assert {path.name for path in run.path.iterdir()} == {"run.json", "predictions.parquet", ".lock"}
    chance = {2: 0.55, 7: 0.3, 10: 0.15}[len(any_snapshot.taxonomy)]
    assert run.metrics["train"]["micro_f1"] > chance


def test_bert_judges_every_task_by_folds(any_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    run = train_by_folds(any_snapshot, bert(any_snapshot, tiny_bert), n_folds=2, out=tmp_path / "run")
    assert run.metrics["train"]["n"] == 48
    assert set(said(run).folds.tolist()) == {NO_FOLD, 0, 1}
    assert ("thresholds" in run.calibration) == any_snapshot.taxonomy.multiple


def test_scores_are_those_of_models_that_were_trained_without_the_fold(snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_by_folds(snapshot, linear(snapshot), n_folds=3, out=tmp_path / "run")
    predictions, decoder = said(run), Decoder(run.taxonomy, **run.calibration)
    samples = {split: read(snapshot, split) for split in Split}
    strength = run.cost["folds"][0]["C"]
    dev_logits = np.zeros((len(samples[Split.DEV]), 2), np.float32)
    for fold in range(3):
        held = {each for each, its in zip(predictions.ids, predictions.folds, strict=True) if its == fold}
        kept = [sample for sample in samples[Split.TRAIN] if sample.id not in held]
        tokenizer = fit_tokenizer(kept, LinearOptions(), n_labels=2)
        dataset = encode(kept, tokenizer, run.taxonomy)
        classifier = fit(feature_matrix(dataset, len(tokenizer.vocabulary)), dataset, strength, seed=0)
        judged = [sample for sample in samples[Split.TRAIN] if sample.id in held]
        scores = decoder.scores(predict(classifier, encode(judged, tokenizer, run.taxonomy)))
        rows = [predictions.ids.index(sample.id) for sample in judged]
        np.testing.assert_allclose(predictions.scores[rows], scores, atol=1e-5)
        dev_logits += predict(classifier, encode(samples[Split.DEV], tokenizer, run.taxonomy)) / 3
    rows = [predictions.ids.index(sample.id) for sample in samples[Split.DEV]]
    np.testing.assert_allclose(predictions.scores[rows], decoder.scores(dev_logits), atol=1e-5)


def test_a_label_that_only_memory_gives_is_not_given(snapshot: Snapshot, tmp_path: Path) -> None:
    """Pairs of near duplicates in words that nothing else has: whoever saw one of a pair knows the other's label."""
    pairs = [("鑫森淼焱垚犇骉羴猋麤", "好评"), ("甲乙丙丁戊己庚辛壬癸", "差评"), ("子丑寅卯辰巳午未申酉", "好评")]
    texts = [planted(text + end, label) for text, label in pairs for end in ("。", "乎")]
    wider = changed(snapshot, [*snapshot.samples(), *texts], tmp_path)
    remembered = train(wider, linear(wider), out=tmp_path / "once")
    assert evaluate_path(remembered.path, wider, Split.TRAIN)["accuracy"] == 1.0

    predictions = said(train_by_folds(wider, linear(wider), n_folds=4, out=tmp_path / "folds"))
    rows = [predictions.ids.index(sample.id) for sample in texts]
    labels = [wider.taxonomy.labels.index(sample.labels[0]) for sample in texts]
    assert (predictions.folds[rows[::2]] == predictions.folds[rows[1::2]]).all()
    sure = predictions.scores[rows, labels]
    assert (sure < 0.8).all()
    others = predictions.folds >= 0
    others[rows] = False
    assert np.median(predictions.scores[others].max(axis=1)) > 0.8


def kill_second_fold(patch: pytest.MonkeyPatch) -> None:
    original, folds = training.crossfit.train_fold, iter(range(100))

    def train_fold(*arguments: object, **keywords: object) -> None:
        if next(folds) == 1:
            raise Killed
        original(*arguments, **keywords)  # type: ignore[arg-type]

    patch.setattr(training.crossfit, "train_fold", train_fold)


def kill_second_fold_inside(patch: pytest.MonkeyPatch) -> None:
    original, steps = training.loop.Training.update, iter(range(1000))

    def update(loop: training.loop.Training, rows: list[int]) -> None:
        if next(steps) == 5:  # the last one
            raise Killed
        original(loop, rows)

    patch.setattr(training.loop.Training, "update", update)


def kill_conclusion(patch: pytest.MonkeyPatch) -> None:
    def conclude(*arguments: object, **keywords: object) -> None:
        raise Killed

    patch.setattr(training.crossfit, "conclude", conclude)


@pytest.mark.parametrize(
    ("arch", "kill", "finished"),
    [
        ("linear", kill_second_fold, 1),
        ("linear", kill_conclusion, 2),
        ("bert", kill_second_fold_inside, 1),
    ],
)
def test_a_broken_off_training_goes_on_where_it_was(
    arch: str,
    kill: Kill,
    finished: int,
    snapshot: Snapshot,
    tiny_bert: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe: Recipe = linear(snapshot) if arch == "linear" else bert(snapshot, tiny_bert)
    whole = train_by_folds(snapshot, recipe, n_folds=2, out=tmp_path / "whole")
    with monkeypatch.context() as patch:
        kill(patch)
        with pytest.raises(Killed):
            train_by_folds(snapshot, recipe, n_folds=2, out=tmp_path / "killed")
    assert len(list((tmp_path / "killed" / "checkpoint").glob("fold-*.safetensors"))) == finished
    capsys.readouterr()
    resumed = train_by_folds(snapshot, recipe, n_folds=2, out=tmp_path / "killed")
    told = capsys.readouterr().err
    assert [f"fold {fold + 1}/2" in told for fold in range(2)] == [fold >= finished for fold in range(2)]
    assert ("going on from step 2" in told) == (kill is kill_second_fold_inside)
    np.testing.assert_array_equal(said(resumed).scores, said(whole).scores)
    assert resumed.metrics == whole.metrics
    assert not resumed.checkpoint_path.exists()


def test_c_is_chosen_with_the_first_fold_alone(
    snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = train_by_folds(snapshot, linear(snapshot), n_folds=4, out=tmp_path / "run")
    assert capsys.readouterr().err.count("is best on dev") == 1
    assert len({fold["C"] for fold in run.cost["folds"]}) == 1


def test_another_number_of_folds_does_not_go_on(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_second_fold(patch)
        with pytest.raises(Killed):
            train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run")
    with pytest.raises(BadRun, match="another config: folds 2 there, folds 3 now"):
        train_by_folds(snapshot, linear(snapshot), n_folds=3, out=tmp_path / "run")
    with pytest.raises(BadRun, match="another config: folds 2 there, folds None now"):
        train(snapshot, linear(snapshot), out=tmp_path / "run")


def test_a_damaged_fold_is_named_with_the_way_out(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_second_fold(patch)
        with pytest.raises(Killed):
            train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run")
    damaged = tmp_path / "run" / "checkpoint" / "fold-0.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.raises(BadRun, match=r"fold-0\.safetensors can't be read: .* remove it"):
        train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run")
    damaged.unlink()
    assert train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run").status == "done"


def test_a_run_by_folds_has_no_model_to_evaluate_or_export(snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run")
    with pytest.raises(BadRun, match=r"by 2 folds and keeps no model.*train without --folds"):
        evaluate_path(run.path, snapshot, Split.TEST)
    with pytest.raises(BadRun, match=r"by 2 folds and keeps no model.*train without --folds"):
        export_run(run, out=tmp_path / "bundle")
    with pytest.raises(BadRun, match="holds a finished run"):
        train_by_folds(snapshot, linear(snapshot), n_folds=2, out=tmp_path / "run")


def test_a_class_that_stands_in_one_fold_is_named_and_trained_anyway(
    snapshot: Snapshot, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its two samples are near duplicates, so that no model that judges them has seen the class."""
    rare = [planted("上次的中评写得不好不坏也不长" + end, "中评") for end in ("。", "！")]
    wider = write_snapshot(
        sorted([*snapshot.samples(), *rare], key=lambda sample: sample.id),
        taxonomy=replace(snapshot.taxonomy, labels=(*snapshot.taxonomy.labels, "中评")),
        normaliser=snapshot.normaliser,
        folder=tmp_path,
    )
    run = train_by_folds(wider, linear(wider), n_folds=3, out=tmp_path / "run")
    told = capsys.readouterr().err
    assert "warning: 1 labels have all their train samples in one fold" in told
    assert told.split("import more of:")[1].splitlines()[0].strip() == "中评"
    assert run.metrics["train"]["per_label"]["中评"]["recall"] == 0.0


def test_what_can_not_be_parted_is_refused_before_anything_is_written(snapshot: Snapshot, tmp_path: Path) -> None:
    praise = [sample for sample in snapshot.samples() if sample.labels == ("好评",)]
    lone = changed(snapshot, [*praise, planted("价格太贵了，不会再来。", "差评")], tmp_path / "snapshots")
    with pytest.raises(BadSnapshot, match="train samples outside fold 1 of 2 have the same labels"):
        train_by_folds(lone, linear(lone), n_folds=2, out=tmp_path / "run")
    with pytest.raises(BadInput, match="--folds 99: the 9 train samples are 9 groups"):
        train_by_folds(snapshot, linear(snapshot, limit=9), n_folds=99, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_limit_is_one_of_train_samples(snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_by_folds(snapshot, linear(snapshot, limit=60), n_folds=2, out=tmp_path / "run")
    assert run.metrics["train"]["n"] == run.cost["train_samples"] == 60
    assert run.metrics["dev"]["n"] == snapshot.counts["dev"]


def test_a_start_that_can_not_be_used_leaves_no_run(multi_snapshot: Snapshot, tiny_bert: Path, tmp_path: Path) -> None:
    foreign = write_snapshot(
        (replace(sample, text=f"qwxz{number}") for number, sample in enumerate(multi_snapshot.samples())),
        taxonomy=multi_snapshot.taxonomy,
        normaliser=multi_snapshot.normaliser,
        folder=tmp_path / "snapshots",
    )
    with pytest.raises(BadInput, match="of the texts' tokens are unknown"):
        train_by_folds(foreign, bert(foreign, tiny_bert), n_folds=2, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_bert_at_a_time_is_in_memory(
    snapshot: Snapshot, tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, alive = FinetuneRecipe.prepare, []

    def prepare(recipe: FinetuneRecipe, splits: object) -> Prepared:
        alive.append(sum(type(each) in (BertClassifier, training.loop.Training) for each in gc.get_objects()))
        return original(recipe, splits)  # type: ignore[arg-type]

    gc.collect()
    monkeypatch.setattr(FinetuneRecipe, "prepare", prepare)
    train_by_folds(snapshot, bert(snapshot, tiny_bert), n_folds=2, out=tmp_path / "run")
    assert alive[0] == alive[1]  # what other tests have left may live
