"""Splits: near-copies stay together, imported splits hold, shares come out as asked."""

import numpy as np
import pytest

from app.library.splits import SPLITS, UNPROTECTED, Splitter, duplicate_group
from model.errors import BadInput
from model.types import Split


def test_texts_that_differ_in_punctuation_width_or_case_share_a_group() -> None:
    copies = ("WiFi 很快！", "wifi很快", "ＷＩＦＩ，很快……", "【wi-fi】很快~")
    assert len({duplicate_group("id", text, None) for text in copies}) == 1
    assert duplicate_group("id", "wifi很慢", None) != duplicate_group("id", copies[0], None)


def test_texts_without_letters_are_alone_in_their_groups() -> None:
    assert duplicate_group("1", "！！！", None) != duplicate_group("2", "？？？", None)


def test_a_pair_counts_and_so_does_where_it_is_parted() -> None:
    groups = {duplicate_group("id", *pair) for pair in (("甲乙", "丙"), ("甲", "乙丙"), ("甲乙丙", None))}
    assert len(groups) == 3


def test_the_shares_come_out_as_asked_and_follow_the_seed() -> None:
    splitter = Splitter(test=0.2, dev=0.1, seed=0)
    splits = [splitter.split(group, None) for group in range(20_000)]
    assert splits.count(Split.TEST) == pytest.approx(4000, rel=0.05)
    assert splits.count(Split.DEV) == pytest.approx(2000, rel=0.05)
    assert splits != [Splitter(test=0.2, dev=0.1, seed=1).split(group, None) for group in range(20_000)]


def test_an_imported_split_holds() -> None:
    assert Splitter(test=0.9, dev=0.0, seed=0).split(1, protected=2) is Split.TRAIN


@pytest.mark.parametrize(("test", "dev"), [(-0.1, 0.1), (0.5, 0.5), (1.0, 0.0), (float("nan"), 0.1)])
def test_fractions_that_leave_nothing_to_train_on_are_refused(test: float, dev: float) -> None:
    with pytest.raises(BadInput, match="--test"):
        Splitter(test=test, dev=dev, seed=0)


def test_a_near_group_stands_where_its_smallest_exact_group_would_and_where_an_import_says() -> None:
    splitter = Splitter(test=0.4, dev=0.3, seed=0)
    exact = np.arange(3000)
    alone = splitter.assign(exact, np.full(3000, UNPROTECTED), exact)
    assert [SPLITS[split] for split in alone] == [splitter.split(group, None) for group in range(3000)]
    paired = splitter.assign(exact, np.full(3000, UNPROTECTED), exact // 2)
    assert (paired[0::2] == alone[0::2]).all()
    assert (paired[1::2] == alone[0::2]).all()
    protected = np.full(3000, UNPROTECTED)
    protected[7] = SPLITS.index(Split.DEV)
    given = splitter.assign(exact, protected, exact // 2)
    assert given[6] == given[7] == SPLITS.index(Split.DEV)
    protected[6] = SPLITS.index(Split.TEST)
    assert splitter.assign(exact, protected, exact // 2)[7] == SPLITS.index(Split.TEST)


def test_a_group_that_would_fill_most_of_a_split_is_for_training_unless_an_import_says_otherwise() -> None:
    splitter = Splitter(test=0.1, dev=0.1, seed=0)
    exact = np.arange(1000)
    for first in (0, 100, 200, 300):
        near = np.where((exact >= first) & (exact < first + 51), first, exact)
        assert (splitter.assign(exact, np.full(1000, UNPROTECTED), near)[first : first + 51] == 2).all()
    protected = np.full(1000, UNPROTECTED)
    protected[320] = SPLITS.index(Split.TEST)
    assert (splitter.assign(exact, protected, near)[300:351] == 0).all()
