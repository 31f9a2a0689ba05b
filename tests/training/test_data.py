import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadSnapshot
from model.snapshot import Snapshot
from model.types import Split
from training.data import epoch_batches, read


@given(lengths=st.lists(st.integers(1, 200), max_size=300), batch_size=st.integers(1, 40), epoch=st.integers(0, 3))
def test_an_epoch_shows_every_row_once_whatever_the_tail(lengths: list[int], batch_size: int, epoch: int) -> None:
    batches = epoch_batches(np.array(lengths, np.int64), batch_size=batch_size, seed=1, epoch=epoch)
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert all(len(batch) <= batch_size for batch in batches)


def test_batches_follow_from_seed_and_epoch_and_differ_between_epochs() -> None:
    lengths = np.arange(1, 101)
    first = epoch_batches(lengths, batch_size=8, seed=1, epoch=0)
    assert first == epoch_batches(lengths, batch_size=8, seed=1, epoch=0)
    assert first != epoch_batches(lengths, batch_size=8, seed=1, epoch=1)
    assert first != epoch_batches(lengths, batch_size=8, seed=2, epoch=0)


def test_a_batch_holds_texts_of_like_length() -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 1600)
    batches = epoch_batches(lengths, batch_size=32, seed=0, epoch=0)
    padded = sum(len(batch) * lengths[batch].max() for batch in batches)
    assert padded < 1.05 * lengths.sum()


def test_a_split_without_samples_is_named(snapshot: Snapshot) -> None:
    assert all(sample.split is Split.DEV for sample in read(snapshot, Split.DEV))
    with pytest.raises(BadSnapshot, match="no test samples"):
        read(snapshot, Split.TEST, limit=0)
