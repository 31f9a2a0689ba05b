"""The predictions of a run: `predictions.parquet`, what its model said about samples that it was not trained on.

Of dev and test, and, where the training went by folds, of train: each sample by the model that had not seen its fold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from model.errors import BadRun
from model.types import FloatArray, IntArray, Sample, Split, Taxonomy

FILE = "predictions.parquet"
NO_FOLD = -1
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("split", pa.string()),
        ("gold", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float32())),
        ("fold", pa.int16()),
    ]
)


class SplitPredictions(NamedTuple):
    """Samples of one split, their scores (n_samples, n_labels), and the fold of each, (n_samples,), if it has any."""

    samples: Sequence[Sample]
    scores: FloatArray
    folds: IntArray | None = None


@dataclass(frozen=True, slots=True)
class Predictions:
    """What was said about n samples.

    gold: the labels that they had. scores: (n, n_labels), 0 to 1, columns in the order of the run's taxonomy.
    folds: (n,), 0, 1, …: the samples of a fold were kept from the model that scored them; `NO_FOLD` in dev and test.
    """

    ids: list[str]
    splits: list[Split]
    gold: list[tuple[str, ...]]
    scores: FloatArray
    folds: IntArray

    def __len__(self) -> int:
        return len(self.ids)


def write_predictions(run: Path, predictions: Mapping[Split, SplitPredictions]) -> None:
    """Write the predictions of a run into its folder."""
    tables = [
        pa.table(
            {
                "id": [sample.id for sample in given.samples],
                "split": [split.value] * len(given.samples),
                "gold": [list(sample.labels) for sample in given.samples],
                "scores": list(np.asarray(given.scores, np.float32)),
                "fold": [None] * len(given.samples) if given.folds is None else given.folds,
            },
            schema=SCHEMA,
        )
        for split, given in predictions.items()
    ]
    pq.write_table(pa.concat_tables(tables), run / FILE, compression="zstd")


def read_predictions(run: Path, taxonomy: Taxonomy) -> Predictions:
    """Read the predictions of the run in folder `run`, which was trained for `taxonomy`.

    Raises:
        BadRun: there are none, they are not of so many labels or of no split that there is, or a score is not a number
        from 0 to 1.
    """
    path = run / FILE
    try:
        table = pq.read_table(path)
        if "fold" not in table.column_names:  # of an earlier wenlei, which knew no folds
            table = table.append_column("fold", pa.nulls(len(table), pa.int16()))
        table = table.cast(SCHEMA)
    except FileNotFoundError:
        raise BadRun(f"{run} has no {FILE}; train it again") from None
    except (OSError, pa.ArrowException, ValueError) as error:
        raise BadRun(f"{path} can't be read: {error}") from None
    ids, width = table["id"].to_pylist(), len(taxonomy)
    lists = table["scores"].combine_chunks()
    if lists.null_count or (np.diff(lists.offsets.to_numpy()) != width).any():
        raise BadRun(f"{path} has rows that are not of the run's {width} labels; train it again")
    scores = lists.flatten().to_numpy(zero_copy_only=False).reshape(len(ids), width)
    odd = ~((scores >= 0) & (scores <= 1))  # NaN is neither
    if odd.any():
        row, column = np.argwhere(odd)[0]
        raise BadRun(
            f"{path}: sample {ids[row]} has the score {scores[row, column]} for {taxonomy.labels[column]!r}, which is "
            "not from 0 to 1; train it again"
        )
    try:
        splits = [Split(split) for split in table["split"].to_pylist()]
        gold = [tuple(labels) for labels in table["gold"].to_pylist()]
    except (TypeError, ValueError) as error:  # no labels, or no split that there is
        raise BadRun(f"{path} can't be understood ({error}); train it again") from None
    return Predictions(
        ids=ids,
        splits=splits,
        gold=gold,
        scores=scores,
        folds=table["fold"].fill_null(NO_FOLD).to_numpy().astype(np.int64),
    )
