"""What the gate takes as a model's prediction: a set of labels that can go together, as libraries keep them."""

from pathlib import Path

import numpy as np
import pytest

from app.library.gate.predicting import Predicted, Predictor
from app.library.scoring import check_labels
from app.store.texts import SampleText
from model.errors import BadTaxonomy
from model.runtime.decode import Decoder
from model.runtime.onnx import OnnxClassifier
from model.types import Choice, Task, Taxonomy, Text
from tests.gating import keyword_bundle

WORDS = {"服务": "好", "服务-前台": "差", "服务-餐厅": "净", "房间": "贵"}
BRANCHES = Taxonomy(
    Task.HIERARCHICAL, tuple(WORDS), level_sep="-", multiple=True, choices=(Choice.MULTI, Choice.SINGLE)
)


def predict(classifier: OnnxClassifier, *texts: str) -> tuple[Predicted, list[tuple[str, ...]]]:
    predictor = Predictor(classifier)
    found = predictor.predict(SampleText(f"{number:032x}", text, None) for number, text in enumerate(texts))
    return found, [predictor.sets[number] for number in found.sets]


@pytest.fixture
def levels(tmp_path: Path) -> OnnxClassifier:
    return OnnxClassifier.load(keyword_bundle(tmp_path / "b", taxonomy=BRANCHES, words=WORDS, snapshot="0" * 32))


def test_what_a_path_implies_is_left_out_and_what_cannot_go_together_is_never_accepted(levels: OnnxClassifier) -> None:
    found, sets = predict(levels, "好的差的", "好的", "差的净的", "差的贵的", "中午来时")
    assert sets == [("服务-前台",), ("服务",), ("服务-前台", "服务-餐厅"), ("房间", "服务-前台"), ()]
    assert found.able.tolist() == [True, True, False, True, False]
    assert found.lengths.tolist() == [4, 2, 4, 4, 4]
    assert ((found.sure >= 0) & (found.sure <= 1)).all()


def test_a_set_is_as_sure_as_all_its_labels_together(levels: OnnxClassifier) -> None:
    found, _ = predict(levels, "好的差的")
    encoded = levels.encode([Text("好的差的")])
    scores = levels.decoder.scores(levels.logits(encoded))[0]
    assert found.sure[0] == pytest.approx(np.prod(np.where(scores >= 0.5, scores, 1 - scores)), rel=1e-5)


def test_what_the_model_abstains_from_is_never_accepted(tmp_path: Path) -> None:
    taxonomy = Taxonomy(Task.SINGLE, ("好评", "差评"))
    bundle = keyword_bundle(tmp_path / "b", taxonomy=taxonomy, words={"好评": "好", "差评": "差"}, snapshot="0" * 32)
    classifier = OnnxClassifier.load(bundle)
    classifier.decoder = Decoder(taxonomy, abstain_below=0.8)
    found, _ = predict(classifier, "房间好", "房间好差")
    assert found.able.tolist() == [True, False]


def test_a_snapshot_of_other_levels_is_refused(levels: OnnxClassifier) -> None:
    flat = Taxonomy(Task.MULTI, tuple(WORDS), multiple=True)
    with pytest.raises(BadTaxonomy, match="the model's task is hierarchical, there it is multi"):
        check_labels(levels, flat, "snapshot 1a2b")
