"""The predictions of a run come back as they were written, or not at all."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from model.errors import BadRun
from model.predictions import NO_FOLD, SplitPredictions, read_predictions, write_predictions
from model.types import Sample, Split, Task, Taxonomy

TAXONOMY = Taxonomy(Task.MULTI, ("交通", "卫生"), multiple=True)


def samples(split: Split, count: int, first: int = 0) -> list[Sample]:
    return [
        Sample(f"{n:032x}", f"第{n}条", None, TAXONOMY.labels[: n % 2 + 1], split) for n in range(first, first + count)
    ]


def test_predictions_come_back_with_their_folds(tmp_path):
    train, test = samples(Split.TRAIN, 4), samples(Split.TEST, 3, first=4)
    scores = np.linspace(0, 1, 14, dtype=np.float32).reshape(7, 2)
    write_predictions(
        tmp_path,
        {
            Split.TRAIN: SplitPredictions(train, scores[:4], np.array([0, 1, 0, 1])),
            Split.DEV: SplitPredictions([], scores[:0]),
            Split.TEST: SplitPredictions(test, scores[4:]),
        },
    )
    read = read_predictions(tmp_path, TAXONOMY)
    assert read.ids == [sample.id for sample in train + test]
    assert read.gold == [sample.labels for sample in train + test]
    assert read.splits == [Split.TRAIN] * 4 + [Split.TEST] * 3
    assert read.folds.tolist() == [0, 1, 0, 1, NO_FOLD, NO_FOLD, NO_FOLD]
    np.testing.assert_array_equal(read.scores, scores)


def test_predictions_of_an_earlier_wenlei_have_no_folds(tmp_path):
    write_predictions(tmp_path, {Split.DEV: SplitPredictions(samples(Split.DEV, 2), np.full((2, 2), 0.5))})
    path = tmp_path / "predictions.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["fold"]), path)
    assert read_predictions(tmp_path, TAXONOMY).folds.tolist() == [NO_FOLD, NO_FOLD]


@pytest.mark.parametrize("score", [np.nan, -0.1, 1.5, np.inf])
def test_a_score_that_is_no_probability_is_refused_by_sample_and_label(tmp_path, score):
    scores = np.array([[0.5, 0.5], [0.5, score]])
    write_predictions(tmp_path, {Split.DEV: SplitPredictions(samples(Split.DEV, 2), scores)})
    with pytest.raises(BadRun, match=f"sample {1:032x} has the score .* for '卫生', which is not from 0 to 1"):
        read_predictions(tmp_path, TAXONOMY)


def test_predictions_of_other_labels_are_refused(tmp_path):
    write_predictions(tmp_path, {Split.DEV: SplitPredictions(samples(Split.DEV, 2), np.full((2, 3), 0.5))})
    with pytest.raises(BadRun, match="not of the run's 2 labels"):
        read_predictions(tmp_path, TAXONOMY)


def test_missing_and_damaged_predictions_are_told_apart(tmp_path):
    with pytest.raises(BadRun, match="has no predictions"):
        read_predictions(tmp_path, TAXONOMY)
    (tmp_path / "predictions.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(BadRun, match="can't be read"):
        read_predictions(tmp_path, TAXONOMY)
    pq.write_table(pa.table({"id": ["1"]}), tmp_path / "predictions.parquet")
    with pytest.raises(BadRun, match="can't be read"):
        read_predictions(tmp_path, TAXONOMY)


@pytest.mark.parametrize(("column", "value"), [("split", "trial"), ("split", None), ("gold", None)])
def test_predictions_of_no_split_or_without_labels_are_refused(tmp_path, column, value):
    write_predictions(tmp_path, {Split.DEV: SplitPredictions(samples(Split.DEV, 2), np.full((2, 2), 0.5))})
    path = tmp_path / "predictions.parquet"
    table = pq.read_table(path)
    spoilt = pa.array([value] * 2, table.schema.field(column).type)
    pq.write_table(table.set_column(table.column_names.index(column), column, spoilt), path)
    with pytest.raises(BadRun, match=r"predictions\.parquet can't be understood"):
        read_predictions(tmp_path, TAXONOMY)
