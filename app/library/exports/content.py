"""What every format is given: the samples to write, and what they look like as a table."""

import json
from collections.abc import Callable, Iterator
from functools import cached_property

import pyarrow.parquet as pq

from model.errors import BadInput
from model.snapshot import ROWS_AT_ONCE, Snapshot
from model.types import Sample, Split, Taxonomy

# What may part the labels of a cell: the first that is part of no label and no level separator.
_LABEL_SEPARATORS = "|;,、/&␟"


class Content:
    """The samples of `snapshot`, of one split or of all; `on_sample` hears of each that has been written."""

    def __init__(self, snapshot: Snapshot, split: Split | None, on_sample: Callable[[int], None]) -> None:
        self._snapshot, self._split, self._on_sample = snapshot, split, on_sample

    @property
    def snapshot_hash(self) -> str:
        """That of the snapshot, of which this may be one split only."""
        return self._snapshot.hash

    @property
    def taxonomy(self) -> Taxonomy:
        """That of the snapshot."""
        return self._snapshot.taxonomy

    @property
    def counts(self) -> dict[Split, int]:
        """The samples of each split that is written and not empty, train first."""
        asked = [Split.TRAIN, Split.DEV, Split.TEST] if self._split is None else [self._split]
        return {split: count for split in asked if (count := self._snapshot.counts[split.value])}

    @property
    def total(self) -> int:
        """How many samples are written."""
        return sum(self.counts.values())

    @cached_property
    def has_pairs(self) -> bool:
        """Whether any sample of the snapshot has a second text."""
        file = pq.ParquetFile(self._snapshot.path / "samples.parquet")
        batches = file.iter_batches(batch_size=ROWS_AT_ONCE, columns=["pair"])
        return any(batch.column(0).null_count < len(batch) for batch in batches)

    @cached_property
    def label_sep(self) -> str | None:
        """What parts the labels of a cell; None where a text carries one.

        Raises:
            BadInput: the labels hold every character that could.
        """
        if not self.taxonomy.multiple:
            return None
        taken = {char for label in self.taxonomy.labels for char in label} | set(self.taxonomy.level_sep or "")
        for separator in _LABEL_SEPARATORS:
            if separator not in taken:
                return separator
        raise BadInput(f"the labels hold each of {_LABEL_SEPARATORS}, so none can part them in a cell; take jsonl")

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table of these samples."""
        return ("id", "text", *(["pair"] if self.has_pairs else []), "label", "split")

    def samples(self, split: Split | None = None) -> Iterator[Sample]:
        """The samples to write, sorted by id; of one of their splits, or all."""
        for sample in self._snapshot.samples(split or self._split):
            yield sample
            self._on_sample(1)

    def record(self, sample: Sample) -> dict[str, object]:
        """`sample` by column; its label is a list where a text may carry several."""
        label = list(sample.labels) if self.taxonomy.multiple else sample.labels[0]
        record = {
            "id": sample.id,
            "text": sample.text,
            "pair": sample.pair,
            "label": label,
            "split": sample.split.value,
        }
        return {column: record[column] for column in self.columns}

    def cells(self, sample: Sample) -> list[str]:
        """`sample` as the cells of a row, all labels in one of them."""
        label = self.label_sep.join(sample.labels) if self.label_sep else sample.labels[0]
        pair = [sample.pair or ""] if self.has_pairs else []
        return [sample.id, sample.text, *pair, label, sample.split.value]


def to_json(value: object) -> str:
    """`value` on one line, Chinese as it is."""
    return json.dumps(value, ensure_ascii=False)
