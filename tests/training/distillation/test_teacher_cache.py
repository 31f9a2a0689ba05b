import resource
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import training.distillation.cache as cache_module
from model.errors import BadRun
from model.types import Text
from training.distillation.cache import Arrays, Cache

TEXTS = [Text(f"第{number}条") for number in range(10)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "TEXTS_A_PART", 4)


def lengths(texts: list[Text], asked: list[slice]) -> Callable[[slice], Arrays]:
    def answer(part: slice) -> Arrays:
        asked.append(part)
        return {"lengths": np.array([len(text.text) for text in texts[part]])}

    return answer


def test_what_was_asked_once_is_not_asked_again(tmp_path: Path) -> None:
    asked: list[slice] = []
    cache = Cache(tmp_path / "teachers", ["one"])
    first = cache.ask(TEXTS, lengths(TEXTS, asked), size=100, what="lengths")
    assert asked == [slice(0, 4), slice(4, 8), slice(8, 12)]
    again = cache.ask(TEXTS, lengths(TEXTS, asked), size=100, what="lengths")
    assert len(asked) == 3
    for parts in (first, again):
        assert np.concatenate([part["lengths"] for part in parts]).tolist() == [len(text.text) for text in TEXTS]
        assert all(isinstance(part["lengths"], np.memmap) for part in parts)


def test_another_teacher_or_another_text_is_asked(tmp_path: Path) -> None:
    asked: list[slice] = []
    Cache(tmp_path, ["one"]).ask(TEXTS, lengths(TEXTS, asked), size=100, what="lengths")
    Cache(tmp_path, ["two"]).ask(TEXTS, lengths(TEXTS, asked), size=100, what="lengths")
    assert len(asked) == 6
    changed = [*TEXTS[:5], Text("另一条"), *TEXTS[6:]]
    Cache(tmp_path, ["one"]).ask(changed, lengths(changed, asked), size=100, what="lengths")
    assert asked[6:] == [slice(4, 8)]


def test_a_killed_run_asks_for_what_is_missing(tmp_path: Path) -> None:
    asked: list[slice] = []
    answer = lengths(TEXTS, asked)

    def killed(part: slice) -> Arrays:
        if part.start == 8:
            raise KeyboardInterrupt
        return answer(part)

    with pytest.raises(KeyboardInterrupt):
        Cache(tmp_path, []).ask(TEXTS, killed, size=100, what="lengths")
    Cache(tmp_path, []).ask(TEXTS, answer, size=100, what="lengths")
    assert asked == [slice(0, 4), slice(4, 8), slice(8, 12)]


def test_a_disk_without_room_is_told_before_hours_are_spent(tmp_path: Path) -> None:
    asked: list[slice] = []
    with pytest.raises(BadRun, match=r"would take 1000000\.0 GB"):
        Cache(tmp_path, []).ask(TEXTS, lengths(TEXTS, asked), size=10**15, what="lengths")
    assert not asked


def test_a_disk_that_fills_is_told_and_what_was_done_is_kept(tmp_path: Path) -> None:
    def answer(part: slice) -> Arrays:
        return {"zeros": np.zeros(10 if part.start == 0 else 1000)}

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # as far as the disk goes
    try:
        with pytest.raises(BadRun, match="make room, and the same command goes on"):
            Cache(tmp_path, []).ask(TEXTS, answer, size=100, what="zeros")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 1


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    cache = Cache(tmp_path, [])
    cache.ask(TEXTS[:4], lengths(TEXTS, []), size=100, what="lengths")
    (damaged,) = tmp_path.glob("*/lengths.npy")
    damaged.write_bytes(b"nothing")
    with pytest.raises(BadRun, match="remove it"):
        cache.ask(TEXTS[:4], lengths(TEXTS, []), size=100, what="lengths")
