"""What is judged of the held-out texts."""

import numpy as np
import pytest

from training.pretrain.feed import PASSAGE, drawn
from training.pretrain.windows import Window

N_DOCUMENTS, DOCUMENT = 40, 6_000  # characters of each


def windows_of(length: int) -> list[list[Window]]:
    """Forty documents in windows of `length` characters, a batch each."""
    return [
        [window_at(document, place, length) for place in range(0, DOCUMENT, length)] for document in range(N_DOCUMENTS)
    ]


def window_at(document: int, place: int, length: int) -> Window:
    ids, starts, words = np.arange(length // 2), np.zeros(1, np.int64), np.ones(length // 2, np.bool_)
    return Window(ids, starts, words, document=document, n_characters=length, place=place)


def passages(batches: list[list[Window]]) -> set[tuple[int, int]]:
    """What is judged, as documents and their passages."""
    return {(window.document, window.place // PASSAGE) for windows in batches for window in windows}


@pytest.mark.parametrize("n_characters", [20_000, 120_000])
def test_the_same_passages_are_judged_whatever_the_vocabulary(n_characters: int) -> None:
    short, long = (drawn(windows_of(length), n_characters=n_characters) for length in (50, 500))
    assert passages(short) == passages(long)
    judged = sum(window.n_characters for windows in short for window in windows)
    assert 0.6 * n_characters < judged < 1.4 * n_characters
    assert len({document for document, _ in passages(short)}) > 10
    assert drawn(windows_of(50), n_characters=n_characters) != drawn(windows_of(50), n_characters=2 * n_characters)


def test_all_is_judged_where_there_is_little() -> None:
    batches = windows_of(500)
    assert [[id(window) for window in windows] for windows in drawn(batches, n_characters=N_DOCUMENTS * DOCUMENT)] == [
        [id(window) for window in windows] for windows in batches
    ]
