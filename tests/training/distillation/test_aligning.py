from pathlib import Path

import numpy as np
import pytest
import torch
from starts import tiny_start

import training.distillation.aligning as aligning_module
import training.distillation.cache as cache_module
from model.architectures.foreign_weights import load_encoder
from model.tokenization import subwords
from model.types import Text
from training.data import EncodedTexts
from training.device import to_tensors
from training.distillation.aligning import AlignedTexts, Aligning, Alignment, ask_layers
from training.distillation.cache import Cache
from training.distillation.states import read_states
from training.distillation.student import StudentSize, new_student

TEXTS = [Text("房间很干净"[: 1 + number % 5], "早餐好" if number % 3 == 0 else None) for number in range(11)]
LAYERS = (1, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_start(tmp_path / "teacher", "房间很干净早餐好。服务员")


@pytest.fixture
def aligned(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AlignedTexts:
    """Texts in three parts."""
    for module in (aligning_module, cache_module):
        monkeypatch.setattr(module, "TEXTS_A_PART", 4)
    encoded = EncodedTexts.of(TEXTS, subwords.load(folder, max_length=16))
    return ask_layers(TEXTS, encoded, load_encoder(folder), LAYERS, Cache(tmp_path / "cache", ["teacher"]))


def test_a_batch_holds_what_the_teacher_says_of_each_of_its_texts(folder: Path, aligned: AlignedTexts) -> None:
    assert len(aligned.parts) == 3
    encoder = load_encoder(folder).eval()
    rows = [10, 0, 3, 4, 7]
    batch = aligned.batch(rows)
    for place, row in enumerate(rows):
        n = aligned.encoded[row].length
        inputs = {name: torch.from_numpy(values)[None] for name, values in aligned.encoded[row].inputs.items()}
        with torch.inference_mode():
            states = read_states(encoder, LAYERS, inputs)
        np.testing.assert_allclose(batch["teacher_hidden"][:, place, :n], states.hidden[:, 0], atol=3e-3)
        np.testing.assert_allclose(batch["teacher_scores"][:, place, :, :n, :n], states.scores[:, 0], atol=3e-3)
        assert not batch["teacher_hidden"][:, place, n:].any()


def test_a_student_that_is_its_teacher_has_nothing_to_learn(folder: Path, aligned: AlignedTexts) -> None:
    network = Aligning(load_encoder(folder).eval(), teacher_width=32).eval()
    losses = network(**to_tensors(aligned.batch(range(11)), torch.device("cpu")))
    assert losses.max() < 1e-5
    assert sum(weight.numel() for weight in network.projections.parameters()) == 0


def test_a_student_that_says_nothing_loses_one_of_each(folder: Path, aligned: AlignedTexts) -> None:
    size = StudentSize(layers=2, hidden_size=24, heads=4, inner_size=48)
    network = Aligning(new_student(folder, size, LAYERS, dropout=0.0), teacher_width=32).eval()
    with torch.no_grad():
        for projection in network.projections.parameters():
            projection.zero_()
        for layer in network.encoder.encoder.layer:
            layer.attention.self.query.weight.zero_()
            layer.attention.self.query.bias.zero_()
    losses = network(**to_tensors(aligned.batch(range(11)), torch.device("cpu")))
    assert losses.tolist() == pytest.approx([1, 1, 1])
    figures = Alignment().figures(network, aligned, precision=aligning_module.NumberFormat.FP32)
    assert figures == pytest.approx({"likeness": 0.25, "embeddings": 1, "hidden": 1, "attention": 1})
