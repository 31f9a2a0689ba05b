"""Texts without labels: the pool that a student learns from beside the snapshot.

No text of dev or test is ever among them, nor a near duplicate of one: the figures would say what was learned by heart.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model.console import progress, say
from model.errors import BadInput
from model.files import sha256_file
from model.near import near_groups
from model.snapshot import Snapshot, open_snapshot
from model.text import sample_id
from model.types import Sample, Split, Text
from training.pretrain.text_files import lines


def read_pool(
    paths: Sequence[Path], snapshot: Snapshot, *, held_out: Sequence[Sample], labelled: Sequence[Text]
) -> list[Text]:
    """The different texts of `paths`, files of a text a line or snapshots, whose train split is taken; normalised.

    held_out: the dev and test samples. Near duplicates of them are left out, and told. labelled: the texts of train,
    which are no part of a pool.

    Raises:
        BadInput: a text of them is in the pool itself, or a file can't be read.
    """
    pool = {sample_id(*text): text for path in paths for text in _texts_of(path, snapshot)}
    if known := pool.keys() & {sample.id for sample in held_out}:
        example = pool[min(known)].text[:20]
        raise BadInput(
            f"--unlabelled: {len(known):,} of the {len(pool):,} texts stand in dev or test of snapshot "
            f"{snapshot.hash} ({example!r} for one), and a student that has read them can't be judged by them; "
            "take them out of the file"
        )
    of_train = set(labelled)
    texts = [text for text in pool.values() if text not in of_train]
    near = near_held_out(texts, held_out)
    if near.any():
        say(
            f"池中 {near.sum():,} 条与开发集或测试集近重复，已略去 | {near.sum():,} texts of the pool are near "
            "duplicates of dev or test, and left out"
        )
    return [text for text, is_near in zip(texts, near, strict=True) if not is_near]


def source(path: Path) -> dict[str, str]:
    """What a run says of a part of its pool: where it was, and what it was.

    Raises:
        BadInput: there is nothing.
    """
    try:
        return {"path": str(path), "sha256": open_snapshot(path).hash if path.is_dir() else sha256_file(path)}
    except OSError as error:
        raise BadInput(f"--unlabelled {path} can't be read: {error}; give a text file or a snapshot") from None


def _texts_of(path: Path, snapshot: Snapshot) -> Iterator[Text]:
    if path.is_dir():
        for sample in open_snapshot(path).samples(Split.TRAIN):
            yield Text(sample.text, sample.pair)
        return
    for line in lines(path):
        if text := snapshot.normaliser(line):
            yield Text(text)


def near_held_out(texts: Sequence[Text], held_out: Sequence[Sample]) -> NDArray[np.bool_]:
    """Which of `texts` are near a held-out sample: (n_texts,)."""
    if not texts:
        return np.zeros(0, np.bool_)
    together = [*((sample.text, sample.pair) for sample in held_out), *texts]
    with progress("近重复 near duplicates", len(together)) as advance:
        groups = near_groups(together, on_texts=advance).groups
    near: NDArray[np.bool_] = np.isin(groups[len(held_out) :], groups[: len(held_out)])
    return near
