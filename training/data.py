"""A snapshot's splits as encoded texts and gold labels, and the batches that an epoch goes through."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model.errors import BadSnapshot
from model.metrics import BoolArray, gold_matrix
from model.snapshot import Snapshot
from model.tokenization.base import Encoded, Tokenizer, collate
from model.types import Sample, Split, Taxonomy, Text

BATCHES_SORTED_TOGETHER = 50  # enough that lengths match within a batch, few enough that epochs stay different
# PyTorch keeps kernels and buffers for every shape that it has seen: fewer shapes, less memory.
LENGTH_MULTIPLE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedTexts:
    """Encoded texts, in batches. padding: as the tokenizer's."""

    encoded: Sequence[Encoded]
    padding: dict[str, int]

    @classmethod
    def of(cls, texts: Sequence[Text], tokenizer: Tokenizer) -> "EncodedTexts":
        """`texts` as the network of `tokenizer` reads them."""
        return EncodedTexts(encoded=tokenizer.encode(texts), padding=tokenizer.padding)

    def take(self, rows: Sequence[int]) -> "EncodedTexts":
        """Those of `rows`."""
        return EncodedTexts(encoded=[self.encoded[row] for row in rows], padding=self.padding)

    def __len__(self) -> int:
        return len(self.encoded)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens a text: (n_texts,)."""
        return np.array([encoded.length for encoded in self.encoded], np.int64)

    def batch(self, rows: Sequence[int]) -> dict[str, NDArray[Any]]:
        """The padded inputs of `rows`: name → (batch, length)."""
        return collate([self.encoded[row] for row in rows], self.padding, multiple=LENGTH_MULTIPLE)

    def targets(self, rows: Sequence[int]) -> NDArray[Any]:
        """None: (batch, 0)."""
        return np.empty((len(rows), 0), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(EncodedTexts):
    """One split: samples, their encodings and gold: (n_samples, n_labels)."""

    samples: Sequence[Sample]
    gold: BoolArray

    def targets(self, rows: Sequence[int]) -> BoolArray:
        """The labels of `rows`: (batch, n_labels)."""
        return self.gold[rows]


def load(snapshot: Snapshot, split: Split, tokenizer: Tokenizer, *, limit: int | None = None) -> Dataset:
    """Read and encode one split of `snapshot`; of at most `limit` samples, those with the smallest ids.

    An id is a hash, so the smallest ids are a fair draw.
    """
    return encode(read(snapshot, split, limit=limit), tokenizer, snapshot.taxonomy)


def encode(samples: Sequence[Sample], tokenizer: Tokenizer, taxonomy: Taxonomy) -> Dataset:
    """`samples` as a model reads them, with the labels of `taxonomy` as columns of gold."""
    return Dataset(
        samples=samples,
        encoded=tokenizer.encode([Text(sample.text, sample.pair) for sample in samples]),
        gold=gold_matrix([sample.labels for sample in samples], taxonomy),
        padding=tokenizer.padding,
    )


def read(snapshot: Snapshot, split: Split, *, limit: int | None = None) -> list[Sample]:
    """The samples of one split.

    Raises:
        BadSnapshot: there are none.
    """
    samples = list(islice(snapshot.samples(split), limit))
    if not samples:
        raise BadSnapshot(
            f"snapshot {snapshot.hash} has no {split} samples; import more, or freeze it with other --test and --dev"
        )
    return samples


def read_splits(snapshot: Snapshot, *, limit: int | None) -> dict[Split, list[Sample]]:
    """Train (at most `limit` samples), dev, and test where the snapshot has one.

    Raises:
        BadSnapshot: train or dev is empty, or all of train has the same labels.
    """
    splits = {Split.TRAIN: read(snapshot, Split.TRAIN, limit=limit)}
    check_labels_differ(splits[Split.TRAIN], f"train samples of snapshot {snapshot.hash}")
    splits[Split.DEV] = read(snapshot, Split.DEV)
    if snapshot.counts[Split.TEST.value]:
        splits[Split.TEST] = read(snapshot, Split.TEST)
    return splits


def check_labels_differ(samples: Sequence[Sample], what: str) -> None:
    """Refuse samples that nothing can be learned from.

    Raises:
        BadSnapshot: all of them have the same labels.
    """
    if len({frozenset(sample.labels) for sample in samples}) < 2:
        raise BadSnapshot(f"all {len(samples)} {what} have the same labels; import others too")


def epoch_batches(lengths: NDArray[np.int64], *, batch_size: int, seed: int, epoch: int) -> list[list[int]]:
    """Every row once, in batches of like length whose order and content follow from `seed` and `epoch` alone."""
    rng = np.random.default_rng([seed, epoch])
    rows = rng.permutation(len(lengths))
    pool = batch_size * BATCHES_SORTED_TOGETHER
    batches: list[list[int]] = []
    for start in range(0, len(rows), pool):
        group = rows[start : start + pool]
        group = group[np.argsort(lengths[group], kind="stable")]
        batches += [group[at : at + batch_size].tolist() for at in range(0, len(group), batch_size)]
    return [batches[index] for index in rng.permutation(len(batches))]
