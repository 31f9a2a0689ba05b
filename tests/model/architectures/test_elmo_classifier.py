from pathlib import Path

import numpy as np
import pytest
import torch
from elmos import random_words, tensors, tiny_elmo_start
from safetensors.torch import load_file, save_file

from model.architectures.elmo import ElmoLanguageModel
from model.architectures.elmo_classifier import ElmoClassifier, ElmoPooling, ScalarMix
from model.errors import BadInput
from model.files import read_json, write_json


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_elmo_start(tmp_path_factory.mktemp("elmo"))


def test_the_mix_is_gamma_times_the_softmax_weighted_sum_of_normalised_layers() -> None:
    mix = ScalarMix(3)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.0, 1.0, -1.0]))
        mix.gamma.fill_(2.5)
    layers = list(torch.randn(3, 2, 4, 5))
    normal = [(layer - layer.mean(-1, keepdim=True)) / layer.std(-1, correction=0, keepdim=True) for layer in layers]
    shares = np.exp([0.0, 1.0, -1.0]) / np.exp([0.0, 1.0, -1.0]).sum()
    expected = 2.5 * sum(share * layer for share, layer in zip(shares.tolist(), normal, strict=True))
    torch.testing.assert_close(mix(layers), expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("pooling", ElmoPooling)
def test_a_saved_classifier_answers_the_same(pooling: ElmoPooling, start: Path, tmp_path: Path) -> None:
    torch.manual_seed(1)
    classifier = ElmoClassifier.start(start, n_labels=3, pooling=pooling, dropout=0.5)
    torch.nn.init.normal_(classifier.mix.weights)
    torch.nn.init.constant_(classifier.mix.gamma, 1.5)
    classifier.eval().save(tmp_path)
    again = ElmoClassifier.load(tmp_path, pooling=pooling)
    assert not again.training
    assert again.encoder.word_vectors is not None
    inputs = tensors(random_words((7, 4)))
    with torch.inference_mode():
        torch.testing.assert_close(again(**inputs), classifier(**inputs))
    assert all(name.startswith("encoder.") or name[:5] in ("mix.w", "mix.g", "head.") for name in again.state_dict())


@pytest.mark.parametrize("pooling", ElmoPooling)
def test_padding_changes_no_logits(pooling: ElmoPooling, start: Path) -> None:
    classifier = ElmoClassifier.start(start, n_labels=3, pooling=pooling).eval()
    inputs = random_words((6, 4))
    alone = tensors({name: value[1:, :4] for name, value in inputs.items()})
    with torch.inference_mode():
        torch.testing.assert_close(classifier(**tensors(inputs))[1:], classifier(**alone))


def test_a_frozen_bilm_stays_as_it_is_and_answers_as_in_inference(start: Path) -> None:
    classifier = ElmoClassifier.start(start, n_labels=2, dropout=0.0)
    classifier.encoder.dropout.p = 0.5
    classifier.freeze_encoder()
    inputs = tensors(random_words((6, 4)))
    trained = classifier.train()(**inputs)
    assert classifier.training
    assert classifier.head.training
    assert classifier.encoder.word_vectors is not None
    torch.testing.assert_close(trained, classifier.eval()(**inputs))
    classifier.train()(**inputs).sum().backward()
    learned = {name for name, weight in classifier.named_parameters() if weight.grad is not None}
    assert learned == {"mix.weights", "mix.gamma", "head.weight", "head.bias"}


def test_fine_tuning_reaches_every_weight_of_the_bilm(start: Path) -> None:
    classifier = ElmoClassifier.start(start, n_labels=2)
    torch.nn.init.normal_(classifier.head.weight)
    classifier.train()(**tensors(random_words((8, 6)))).square().sum().backward()
    assert [name for name, weight in classifier.named_parameters() if weight.grad is None] == []


def spoilt(start: Path, folder: Path, change: str) -> None:
    """A copy of `start` that is wrong in one way."""
    weights, config = load_file(start / "model.safetensors"), read_json(start / "config.json")
    name = "forward_layers.0.lstm.weight_hr_l0"
    if change == "missing":
        del weights[name]
    elif change == "unexpected":
        weights["pooler.weight"] = weights[name].clone()
    elif change == "shape":
        weights[name] = weights[name][:5].clone()
    elif change == "nan":
        weights[name][2, 3] = torch.nan
    elif change == "characters":
        del weights["word_characters"]
    elif change == "softmax":
        del weights["softmax.bias"]
    elif change == "type":
        config["model_type"] = "bert"
    elif change == "key":
        config["colour"] = "red"
    save_file(weights, folder / "model.safetensors")
    write_json(folder / "config.json", config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("missing", r"lacks the weights forward_layers\.0\.lstm\.weight_hr_l0"),
        ("unexpected", r"weights that no ELMo of its config\.json has: pooler\.weight"),
        ("shape", r"weight_hr_l0 is \(5, 20\), its config\.json says \(12, 20\)"),
        ("nan", r"1 of 240 values of forward_layers\.0\.lstm\.weight_hr_l0 are NaN or infinite"),
        ("characters", "lacks word_characters"),
        ("type", "is of type bert, not wenlei-elmo"),
        ("key", "colour"),
    ],
)
def test_a_start_that_is_not_whole_is_refused(change: str, message: str, start: Path, tmp_path: Path) -> None:
    spoilt(start, tmp_path, change)
    with pytest.raises(BadInput, match=message):
        ElmoClassifier.start(tmp_path, n_labels=2)
    with pytest.raises(BadInput, match=message):
        ElmoLanguageModel.load(tmp_path)


def test_half_a_softmax_is_refused_for_pretraining_alone(start: Path, tmp_path: Path) -> None:
    spoilt(start, tmp_path, "softmax")
    ElmoClassifier.start(tmp_path, n_labels=2)
    with pytest.raises(BadInput, match="lacks the weights bias"):
        ElmoLanguageModel.load(tmp_path)


def test_a_folder_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"has no model\.safetensors"):
        ElmoClassifier.start(tmp_path, n_labels=2)
    with pytest.raises(BadInput, match=r"config\.json can't be read as that of an ELMo"):
        ElmoLanguageModel.load(tmp_path)


def test_a_trained_classifier_without_its_head_is_refused(start: Path, tmp_path: Path) -> None:
    classifier = ElmoClassifier.start(start, n_labels=2)
    classifier.save(tmp_path)
    save_file({"mix.gamma": classifier.mix.gamma}, tmp_path / "head.safetensors")
    with pytest.raises(BadInput, match=r"lacks the weights head\.bias, head\.weight, mix\.weights"):
        ElmoClassifier.load(tmp_path, pooling=ElmoPooling.MEAN)


def test_a_folder_without_softmax_starts_one_anew(start: Path, tmp_path: Path) -> None:
    ElmoClassifier.start(start, n_labels=2).save(tmp_path)
    model = ElmoLanguageModel.load(tmp_path)
    torch.testing.assert_close(model.encoder.state_dict(), ElmoLanguageModel.load(start).encoder.state_dict())
    assert model.loss(**tensors(random_words((6, 4)))).total.isfinite()
