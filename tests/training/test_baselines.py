from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import vstack
from sklearn.feature_extraction.text import TfidfVectorizer

from model.errors import BadInput, BadRun, BadSnapshot
from model.run import Run
from model.snapshot import Snapshot, write_snapshot
from model.tokenization import ngrams
from model.types import Split, Task, Taxonomy, Text
from training.baselines import LinearOptions, feature_matrix, fit_tokenizer, train_linear
from training.data import load, read
from training.evaluate import evaluate_path


def test_features_are_those_of_scikit_learn(snapshot: Snapshot) -> None:
    samples = read(snapshot, Split.TRAIN)
    tokenizer = fit_tokenizer(samples, LinearOptions(), n_labels=2)
    texts = [sample.text for sample in samples]
    reference = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), min_df=2, sublinear_tf=True).fit(texts)
    dataset = load(snapshot, Split.TEST, tokenizer)
    expected = reference.transform([sample.text for sample in dataset.samples])
    difference = feature_matrix(dataset, len(tokenizer.vocabulary)) - expected
    assert abs(difference).max() < 1e-6
    assert vstack([expected]).nnz > 0


def test_a_text_of_unknown_ngrams_gets_no_weight(snapshot: Snapshot) -> None:
    (encoded,) = fit_tokenizer(read(snapshot, Split.TRAIN), LinearOptions(), n_labels=2).encode([Text("qwx")])
    assert encoded.length == 1
    assert encoded.inputs["ngram_weights"].tolist() == [0.0]


def test_the_tokenizer_is_read_back_as_it_was(snapshot: Snapshot, tmp_path: Path) -> None:
    tokenizer = fit_tokenizer(read(snapshot, Split.TRAIN), LinearOptions(), n_labels=2)
    tokenizer.save(tmp_path)
    again = ngrams.load(tmp_path)
    text = [Text("上次房间干净。", "价格贵")]
    for name, values in tokenizer.encode(text)[0].inputs.items():
        np.testing.assert_allclose(values, again.encode(text)[0].inputs[name], rtol=1e-5)


def test_it_learns_and_is_evaluated_as_it_was_trained(snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    assert run.metrics["test"]["accuracy"] > 0.9
    assert evaluate_path(tmp_path / "run", snapshot, Split.TEST) == run.metrics["test"]
    assert Run.open(tmp_path / "run").calibration["temperature"] > 0


def test_several_labels_a_text(multi_snapshot: Snapshot, tmp_path: Path) -> None:
    run = train_linear(multi_snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    assert run.metrics["test"]["micro_f1"] > 0.9
    assert set(run.calibration["thresholds"]) == set(multi_snapshot.taxonomy.labels)


def test_one_class_is_refused(snapshot: Snapshot, tmp_path: Path) -> None:
    praise = [sample for sample in snapshot.samples() if sample.labels == ("好评",)]
    one_class = write_snapshot(
        praise, taxonomy=Taxonomy(Task.SINGLE, ("好评",)), normaliser=snapshot.normaliser, folder=tmp_path
    )
    with pytest.raises(BadSnapshot, match="have the same labels"):
        train_linear(one_class, options=LinearOptions(), seed=0, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_finished_run_is_not_trained_over(snapshot: Snapshot, tmp_path: Path) -> None:
    train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    with pytest.raises(BadRun, match="finished run"):
        train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")


def test_a_model_is_not_judged_by_labels_it_does_not_know(
    snapshot: Snapshot, multi_snapshot: Snapshot, tmp_path: Path
) -> None:
    train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    with pytest.raises(BadRun, match="trained for other labels"):
        evaluate_path(tmp_path / "run", multi_snapshot, Split.TEST)


def test_a_label_that_train_lacks_is_never_chosen(snapshot: Snapshot, tmp_path: Path) -> None:
    wider = write_snapshot(
        snapshot.samples(),
        taxonomy=Taxonomy(Task.SINGLE, ("好评", "差评", "中评")),
        normaliser=snapshot.normaliser,
        folder=tmp_path,
    )
    run = train_linear(wider, options=LinearOptions(), seed=0, out=tmp_path / "run")
    assert run.metrics["test"]["accuracy"] > 0.9
    assert run.metrics["test"]["per_label"]["中评"]["support"] == 0


def test_a_run_has_no_precisions(snapshot: Snapshot, tmp_path: Path) -> None:
    train_linear(snapshot, options=LinearOptions(), seed=0, out=tmp_path / "run")
    with pytest.raises(BadInput, match=r"--precision int8: .* is a run"):
        evaluate_path(tmp_path / "run", snapshot, Split.TEST, precision="int8")
