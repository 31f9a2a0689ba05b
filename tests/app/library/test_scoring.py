"""The pool: which samples are in it, and that it is scored as a server would."""

from pathlib import Path

import numpy as np
import pytest
from workshop import Workshop

from app.library.labelling import label_sample, undo_event
from app.library.scoring import library_for, pool_samples, pool_size, score_pool, score_texts
from app.library.sweeping import apply_sweep, undo_sweep
from app.store.sweeps import SweptLabels
from app.store.texts import SampleText
from model.errors import BadTaxonomy, BadText, UnknownLibrary
from model.runtime.base import classify
from model.runtime.onnx import OnnxClassifier
from model.text import sample_id
from model.types import Task, Taxonomy, Text
from tests.bundles import tiny_bundle

UNLABELLED = ("早餐很好", "房间吵闹", "价格贵", "服务员态度好")


@pytest.fixture
def hotel(workshop: Workshop) -> Workshop:
    workshop.load(workshop.write("labelled.csv", "text,label\n房间大,好评\n早餐凉,差评\n"))
    workshop.load(workshop.write("pool.csv", "text\n" + "\n".join(UNLABELLED) + "\n"), label=None)
    return workshop


def pool(workshop: Workshop) -> set[str]:
    return {sample.text for sample in pool_samples(workshop.engine, "default")}


def sweep(workshop: Workshop, text: str, labels: tuple[str, ...]) -> int:
    row = SweptLabels(sample_id(text), labels, 0.9)
    return apply_sweep(
        workshop.engine,
        library="default",
        kind="gate" if labels else "drop",
        actor="tiny@1a2b",
        rows=[row],
        judged=workshop.labels([row.sample_id]),
        asked={},
        outcome={},
        by="标注员甲",
        version=1,
    ).sweep


def test_the_pool_is_what_nobody_has_labelled(hotel: Workshop) -> None:
    assert pool(hotel) == set(UNLABELLED)
    assert pool_size(hotel.engine, "default") == len(UNLABELLED)
    ids = [sample.id for sample in pool_samples(hotel.engine, "default")]
    assert ids == sorted(ids)
    label_sample(hotel.engine, library="default", sample="价格贵", is_text=True, labels=["差评"], by="标注员甲")
    assert pool(hotel) == set(UNLABELLED) - {"价格贵"}


def test_what_a_sweep_dropped_is_not_in_the_pool_and_what_was_undone_is_in_it_again(hotel: Workshop) -> None:
    sweep(hotel, "早餐凉", ())
    assert pool(hotel) == set(UNLABELLED)
    accepted = sweep(hotel, "早餐很好", ("好评",))
    assert pool(hotel) == set(UNLABELLED) - {"早餐很好"}
    undo_sweep(hotel.engine, library="default", sweep=accepted, by="标注员乙")
    assert pool(hotel) == set(UNLABELLED)
    said = label_sample(hotel.engine, library="default", sample="价格贵", is_text=True, labels=["差评"], by="标注员甲")
    undo_event(hotel.engine, said.event, by="标注员甲")
    assert pool(hotel) == set(UNLABELLED)


def test_proposals_of_models_leave_a_sample_in_the_pool(hotel: Workshop) -> None:
    hotel.load(hotel.write("said.csv", "text,label\n价格贵,差评\n"), proposer=("model", "linear"))
    assert pool(hotel) == set(UNLABELLED)


def test_an_unknown_library_is_named(hotel: Workshop) -> None:
    with pytest.raises(UnknownLibrary, match="no library 'other'"):
        list(pool_samples(hotel.engine, "other"))


def test_samples_are_scored_as_the_server_scores_them(hotel: Workshop, tmp_path: Path) -> None:
    classifier = OnnxClassifier.load(tiny_bundle(tmp_path / "tiny", temperature=1.7))
    heard: list[int] = []
    chunks = list(score_pool(classifier, pool_samples(hotel.engine, "default"), on_texts=heard.append))
    samples = [sample for chunk in chunks for sample in chunk.samples]
    scores = np.vstack([chunk.scores for chunk in chunks])
    served = classify(classifier, [Text(sample.text, sample.pair) for sample in samples], top_k=2)
    for row, prediction in zip(scores, served, strict=True):
        for label, score in prediction.labels:
            assert row[classifier.taxonomy.labels.index(label)] == pytest.approx(score, abs=1e-6)
    assert sum(heard) == len(samples) == len(UNLABELLED)


def test_a_text_that_the_model_cannot_read_is_named_by_its_sample(tmp_path: Path) -> None:
    classifier = OnnxClassifier.load(tiny_bundle(tmp_path / "tiny"))
    with pytest.raises(BadText, match="sample second can't be read by model 'tiny'"):
        score_texts(classifier, [SampleText("first", "早餐", None), SampleText("second", "  ", None)])


def test_a_model_of_other_labels_is_refused_with_the_difference(hotel: Workshop, tmp_path: Path) -> None:
    turned = tiny_bundle(tmp_path / "turned", taxonomy=Taxonomy(Task.SINGLE, ("差评", "好评")))
    assert library_for(hotel.engine, "default", OnnxClassifier.load(turned)).version == 1
    three = tiny_bundle(tmp_path / "three", taxonomy=Taxonomy(Task.SINGLE, ("好评", "中评")))
    with pytest.raises(BadTaxonomy, match="only the model has 中评; only library 'default' has 差评"):
        library_for(hotel.engine, "default", OnnxClassifier.load(three))
    several = tiny_bundle(tmp_path / "several", taxonomy=Taxonomy(Task.MULTI, ("好评", "差评"), multiple=True))
    with pytest.raises(BadTaxonomy, match="the model's task is multi, there it is single"):
        library_for(hotel.engine, "default", OnnxClassifier.load(several))
