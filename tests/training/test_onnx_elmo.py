from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from elmos import random_words, tiny_elmo, tiny_elmo_start, tiny_tokenizer

from model.architectures.elmo_classifier import ElmoClassifier, ElmoPooling
from model.tokenization.base import collate
from model.tokenization.words import UNKNOWN
from model.types import Text
from tests.parity import assert_graph_answers
from training import onnx_elmo, onnx_file


def tiny_classifier(*, pooling: ElmoPooling = ElmoPooling.MEAN, n_layers: int = 2) -> ElmoClassifier:
    """With a mix and a head in which every part shows."""
    classifier = ElmoClassifier(tiny_elmo(n_layers=n_layers).encoder, n_labels=3, pooling=pooling).eval()
    with torch.no_grad():
        classifier.mix.weights.copy_(torch.arange(n_layers + 1) - 1.0)
        classifier.mix.gamma.fill_(1.5)
        classifier.head.weight.normal_()
        classifier.head.bias.normal_()
    return classifier


BATCHES = [
    random_words((2,)),
    random_words((33,)),
    random_words((7, 3, 5)),
    random_words((64, 2, 31, 9, 9)),
    random_words((5, 3), width=8),  # padded for all, as training pads
    random_words((9, 4), unknown=0.0),
    random_words((9, 4), unknown=1.0),
]


@pytest.mark.parametrize("pooling", ElmoPooling)
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_the_graph_answers_as_torch_does(pooling: ElmoPooling, n_layers: int, tmp_path: Path) -> None:
    assert not (BATCHES[-2]["word_ids"] == UNKNOWN).any()
    classifier = tiny_classifier(pooling=pooling, n_layers=n_layers)
    graph = onnx_elmo.build(classifier)
    assert (
        classifier.encoder.word_vectors is None
    )  # left as it was: here torch goes through the CNN, the graph does not
    assert_graph_answers(graph, classifier, BATCHES, folder=tmp_path)


def test_texts_get_the_same_logits_alone_and_in_a_batch(tmp_path: Path) -> None:
    onnx_file.save(onnx_elmo.build(tiny_classifier()), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    tokenizer = tiny_tokenizer()
    encoded = tokenizer.encode([Text("早餐很贵。"), Text("喵"), Text("上次来时房间干净", "价格便宜，喵喵！")])
    (together,) = session.run(None, collate(encoded, tokenizer.padding, multiple=8))
    alone = [session.run(None, collate([one], tokenizer.padding))[0] for one in encoded]
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-5)
    assert np.abs(together[0] - together[1]).max() > 1e-2


def test_a_trained_classifier_is_read_back_and_exported(tmp_path: Path) -> None:
    start = tiny_elmo_start(tmp_path)
    classifier = ElmoClassifier.start(start, n_labels=2)
    classifier.save(tmp_path)
    again = ElmoClassifier.load(tmp_path, pooling=ElmoPooling.MEAN)
    assert_graph_answers(onnx_elmo.build(again), classifier, BATCHES[:3], folder=tmp_path)
    assert again.encoder.word_vectors is not None
