"""Which tokens are masked, how often, and how."""

import time

import numpy as np
import pytest

from training.pretrain.masking import Masking, Row, RowRandom

MASK = 4
ORDINARY = np.arange(5, 205)


def draw(*, lengths: np.ndarray, seed: int = 0, step: int = 0) -> list[Row]:
    """Rows of random tokens in words of one to four."""
    content, random = np.random.default_rng(7), RowRandom(seed)
    rows = []
    for number, length in enumerate(lengths):
        ids = content.choice(ORDINARY, length)
        starts = content.random(length) < 0.5
        rows.append(Row.draw(ids, starts, random.at(step, number)))
    return rows


def within(share: float, expected: float, n: int) -> bool:
    """Whether `share` of `n` is as near to `expected` as all but one in 15,000 draws are: four deviations."""
    return bool(abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n))


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("longest", [12, 126])
def test_15_percent_are_chosen_and_shown_80_10_10(whole_words: bool, longest: int) -> None:
    rows = draw(lengths=np.random.default_rng(1).integers(2, longest, 200_000 // longest))
    ids = np.concatenate([row.ids for row in rows])
    seen, chosen = Masking(MASK, ORDINARY, whole_words)(rows)
    # Words are chosen whole, so what varies is words: two tokens in the mean.
    assert within(chosen.mean(), 0.15, len(ids) // 2)
    n = int(chosen.sum()) // 2
    same_by_chance = 0.1 / len(ORDINARY)
    assert within((seen[chosen] == MASK).mean(), 0.8, n)
    assert within((seen[chosen] == ids[chosen]).mean(), 0.1 + same_by_chance, n)
    assert within(((seen != ids) & (seen != MASK))[chosen].mean(), 0.1 - same_by_chance, n)
    assert (seen[~chosen] == ids[~chosen]).all()


def test_replacements_are_any_ordinary_token_alike() -> None:
    rows = draw(lengths=np.full(4000, 100))
    ids = np.concatenate([row.ids for row in rows])
    seen, _ = Masking(MASK, ORDINARY)(rows)
    replacements = seen[(seen != ids) & (seen != MASK)]
    counts = np.bincount(replacements, minlength=205)
    assert counts[:5].sum() == 0
    expected = len(replacements) / len(ORDINARY)
    chi_squared = float(((counts[5:] - expected) ** 2 / expected).sum())
    assert chi_squared < len(ORDINARY) + 4 * np.sqrt(2 * len(ORDINARY))


def test_a_word_is_chosen_whole_and_its_tokens_are_treated_alike() -> None:
    rows = draw(lengths=np.random.default_rng(2).integers(2, 60, 2000))
    ids = np.concatenate([row.ids for row in rows])
    seen, chosen = Masking(MASK, ORDINARY, whole_words=True)(rows)
    begins = np.concatenate([np.r_[True, row.word_starts[1:]] for row in rows])
    word = np.cumsum(begins) - 1
    size = np.bincount(word)
    for flags in (chosen, seen == MASK):
        marked = np.bincount(word, weights=flags)
        assert ((marked == 0) | (marked == size)).all()
    kept_in_masked_word = chosen & (seen == ids)
    masked_words = np.bincount(word, weights=seen == MASK) > 0
    assert not masked_words[word[kept_in_masked_word]].any()
    assert (np.bincount(word, weights=chosen)[size > 2] > 2).any()


def test_every_word_is_about_as_likely_to_be_chosen_whatever_its_length() -> None:
    rows = draw(lengths=np.full(4000, 100))
    _, chosen = Masking(MASK, ORDINARY, whole_words=True)(rows)
    begins = np.concatenate([np.r_[True, row.word_starts[1:]] for row in rows])
    first = np.flatnonzero(begins)
    size = np.diff(first, append=len(begins))
    for length in (1, 2, 3, 4):
        assert chosen[first[size == length]].mean() == pytest.approx(0.15, abs=0.015)


def test_a_row_is_masked_alike_whatever_rows_are_beside_it() -> None:
    rows = draw(lengths=np.array([30, 7, 0, 50]), seed=3, step=5)
    masking = Masking(MASK, ORDINARY, whole_words=True)
    together, _ = masking(rows)
    alone = np.concatenate([masking([row])[0] for row in rows])
    assert (together == alone).all()


def test_the_streams_of_seeds_steps_and_rows_differ_and_come_again() -> None:
    random = RowRandom(1)
    first = random.at(2, 3).random(4)
    others = [random.at(2, 4).random(4), random.at(3, 3).random(4), RowRandom(2).at(2, 3).random(4)]
    assert all((first != other).all() for other in others)
    random.at(9, 9).integers(0, 5, dtype=np.int32)  # leaves half a number over
    assert (random.at(2, 3).random(4) == first).all()


def test_masking_keeps_up_with_any_model() -> None:
    content, random = np.random.default_rng(0), RowRandom(0)
    masking = Masking(MASK, ORDINARY, whole_words=True)
    texts = [(content.choice(ORDINARY, 64), content.random(64) < 0.6) for _ in range(128)]
    quickest = float("inf")
    for step in range(20):
        started = time.thread_time()
        masking([Row.draw(ids, starts, random.at(step, number)) for number, (ids, starts) in enumerate(texts)])
        quickest = min(quickest, time.thread_time() - started)
    assert 128 * 64 / quickest > 1e6  # tokens a second; some 4 million on one core
