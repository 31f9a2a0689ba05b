"""Folds hold every sample once, keep groups together, spread labels, and do not depend on the order of rows."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.errors import BadInput, BadSnapshot
from model.text import sample_id
from model.types import Sample, Split
from training.folds import in_one_fold, make_folds, near_folds

LABELS = ("交通", "卫生", "价格", "服务")
label_sets = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3, unique=True)


def sample(text: str, *labels: str) -> Sample:
    return Sample(sample_id(text), text, None, labels, Split.TRAIN)


@st.composite
def grouped_samples(draw: st.DrawFn) -> tuple[list[Sample], np.ndarray, int]:
    """Samples with one to three labels, the group of each, and a number of folds that so many groups allow."""
    groups = draw(st.lists(st.integers(0, 20), min_size=2, max_size=60).filter(lambda groups: len(set(groups)) > 1))
    samples = [sample(f"第{n}条", *draw(label_sets)) for n in range(len(groups))]
    return samples, np.array(groups), draw(st.integers(2, min(6, len(set(groups)))))


@given(given=grouped_samples(), seed=st.integers(0, 3))
def test_groups_are_never_split_and_no_fold_is_empty(given: tuple[list[Sample], np.ndarray, int], seed: int) -> None:
    samples, groups, n_folds = given
    folds = make_folds(samples, groups, n_folds=n_folds, seed=seed)
    assert set(folds.tolist()) == set(range(n_folds))
    for group in set(groups.tolist()):
        assert len(set(folds[groups == group].tolist())) == 1


@given(given=grouped_samples(), random=st.randoms(use_true_random=False))
def test_folds_do_not_depend_on_the_order_of_samples_or_the_names_of_groups(
    given: tuple[list[Sample], np.ndarray, int], random: object
) -> None:
    samples, groups, n_folds = given
    folds = make_folds(samples, groups, n_folds=n_folds, seed=1)
    order = list(range(len(samples)))
    random.shuffle(order)  # type: ignore[attr-defined]
    again = make_folds([samples[row] for row in order], 100 - groups[order], n_folds=n_folds, seed=1)
    assert again.tolist() == folds[order].tolist()


@given(labels=st.lists(st.sampled_from(LABELS), min_size=2, max_size=80), n_folds=st.integers(2, 6))
def test_with_nothing_alike_sizes_and_every_label_are_even(labels: list[str], n_folds: int) -> None:
    samples = [sample(f"第{n}条", label) for n, label in enumerate(labels)]
    n_folds = min(n_folds, len(samples))
    folds = make_folds(samples, np.arange(len(samples)), n_folds=n_folds, seed=0)
    assert np.ptp(np.bincount(folds, minlength=n_folds)) <= 1
    for label in set(labels):
        rows = [row for row, its in enumerate(labels) if its == label]
        assert np.ptp(np.bincount(folds[rows], minlength=n_folds)) <= 1


@given(given=grouped_samples())
def test_a_label_of_two_groups_is_always_known_outside_its_fold(given: tuple[list[Sample], np.ndarray, int]) -> None:
    several, groups, n_folds = given
    first = {group: several[groups.tolist().index(group)].labels[0] for group in groups.tolist()}
    samples = [sample(each.text, first[group]) for each, group in zip(several, groups.tolist(), strict=True)]
    folds = make_folds(samples, groups, n_folds=n_folds, seed=0)
    alone = [label for label, count in Counter(first.values()).items() if count == 1]
    assert in_one_fold(samples, folds) == sorted(alone)


def test_another_seed_draws_other_folds() -> None:
    samples = [sample(f"第{n}条", LABELS[n % 2]) for n in range(40)]
    drawn = [make_folds(samples, np.arange(40), n_folds=4, seed=seed).tolist() for seed in (0, 1)]
    assert drawn[0] != drawn[1]


def test_near_duplicates_share_a_fold() -> None:
    places = ("车站", "旅馆", "餐厅", "公园", "书店", "医院")
    texts = [
        f"上个月我们一家人去过的那个{place}离市中心实在太远了{end}" for place in places for end in ("", "。", "啊！")
    ]
    samples = [sample(text, LABELS[n % 2]) for n, text in enumerate(texts)]
    folds = near_folds(samples, n_folds=2, seed=0)
    by_place = folds.reshape(len(places), 3)
    assert (by_place == by_place[:, :1]).all()


def test_too_few_or_too_many_folds_are_refused_with_the_number_that_is_possible() -> None:
    samples = [sample("很好", "服务"), sample("很差", "服务"), sample("很贵", "价格")]
    with pytest.raises(BadInput, match="--folds 1: give at least 2"):
        make_folds(samples, np.arange(3), n_folds=1, seed=0)
    with pytest.raises(BadInput, match=r"--folds 3: the 3 train samples are 2 groups .* at most --folds 2"):
        make_folds(samples, np.array([0, 0, 2]), n_folds=3, seed=0)
    with pytest.raises(BadSnapshot, match="3 train samples are near duplicates of each other"):
        make_folds(samples, np.zeros(3, np.int64), n_folds=2, seed=0)
