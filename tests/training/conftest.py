"""Small real things to train on: a snapshot of made-up reviews, and a tiny BERT that knows their characters."""

from dataclasses import replace
from itertools import product

import pytest

from model.snapshot import Snapshot, write_snapshot
from model.text import Normaliser, sample_id
from model.types import Sample, Split, Task, Taxonomy

PLACES = ("房间", "酒店", "早餐", "服务员", "价格")
TIMES = ("上次", "中午", "来时", "这年", "有时", "他在时", "我来时", "人在时")
GOOD = ("干净", "便宜", "好", "快", "喜欢")
BAD = ("吵闹", "贵", "坏", "差", "慢")


def reviews(taxonomy: Taxonomy) -> list[Sample]:
    """Two hundred texts of two kinds, of which a fifth each is dev and test, by their hash."""
    samples = []
    for place, time, words in product(PLACES, TIMES, zip(GOOD, BAD, strict=True)):
        for label, word in zip(("好评", "差评"), words, strict=True):
            text = f"{time}{place}{word}。"
            identity = sample_id(text)
            split = (Split.TEST, Split.DEV, Split.TRAIN, Split.TRAIN, Split.TRAIN)[int(identity, 16) % 5]
            labels = (label,) if taxonomy.task is Task.SINGLE else (label, place)
            samples.append(Sample(identity, text, None, labels, split))
    return sorted(samples, key=lambda sample: sample.id)


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """Reviews with one of two labels."""
    taxonomy = Taxonomy(Task.SINGLE, ("好评", "差评"))
    folder = tmp_path_factory.mktemp("snapshots")
    return write_snapshot(reviews(taxonomy), taxonomy=taxonomy, normaliser=Normaliser(), folder=folder)


@pytest.fixture(scope="session")
def multi_snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """The same reviews with two of seven labels: what they praise, and whether they do."""
    taxonomy = Taxonomy(Task.MULTI, ("好评", "差评", *PLACES), multiple=True)
    folder = tmp_path_factory.mktemp("snapshots")
    return write_snapshot(reviews(taxonomy), taxonomy=taxonomy, normaliser=Normaliser(), folder=folder)


def hierarchical(samples: list[Sample]) -> tuple[list[Sample], Taxonomy]:
    """The reviews under paths of two levels: what they are about, and whether they praise it."""
    filed = []
    for sample in samples:
        place = next(place for place in PLACES if place in sample.text)
        filed.append(replace(sample, labels=(f"{place}-{sample.labels[0]}",)))
    paths = sorted({sample.labels[0] for sample in filed})
    return filed, Taxonomy(Task.HIERARCHICAL, tuple(paths), level_sep="-")


def pairs(samples: list[Sample]) -> tuple[list[Sample], Taxonomy]:
    """Questions about a place, with a review that answers them or is about another place."""
    asked = []
    for number, sample in enumerate(samples):
        place = next(place for place in PLACES if place in sample.text)
        other = PLACES[(PLACES.index(place) + 1) % len(PLACES)]
        question = f"{other if number % 2 else place}好？"
        identity = sample_id(question, sample.text)
        labels = ("无关" if number % 2 else "相关",)
        asked.append(Sample(identity, question, sample.text, labels, sample.split))
    return sorted(asked, key=lambda sample: sample.id), Taxonomy(Task.SINGLE, ("相关", "无关"))


@pytest.fixture(scope="session", params=["single", "multi", "hierarchical", "pair"])
def any_snapshot(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    snapshot: Snapshot,
    multi_snapshot: Snapshot,
) -> Snapshot:
    """One snapshot of every kind of task."""
    if request.param in ("single", "multi"):
        return snapshot if request.param == "single" else multi_snapshot
    make = hierarchical if request.param == "hierarchical" else pairs
    samples, taxonomy = make(list(snapshot.samples()))
    folder = tmp_path_factory.mktemp("snapshots")
    return write_snapshot(samples, taxonomy=taxonomy, normaliser=Normaliser(), folder=folder)
