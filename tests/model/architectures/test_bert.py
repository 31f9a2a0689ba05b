from pathlib import Path

import pytest
import torch
from checkpoints import ENCODERS, N_TOKENS, published, save_as_is
from parity import random_inputs, spread_weights, to_tensors
from safetensors.torch import load_file

from model.architectures.bert import BertClassifier, Pooling


def classifier_of(model_type: str, pooling: Pooling, folder: Path) -> BertClassifier:
    save_as_is(published(model_type), folder)
    return BertClassifier.start(folder, n_labels=3, pooling=pooling)


@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("model_type", ENCODERS)
def test_a_classifier_is_read_back_as_it_was_saved(model_type: str, pooling: Pooling, tmp_path: Path) -> None:
    classifier = classifier_of(model_type, pooling, tmp_path)
    spread_weights(classifier)
    classifier.save(tmp_path / "saved")
    again = BertClassifier.load(tmp_path / "saved", pooling=pooling)
    inputs = to_tensors(random_inputs(3, 7, n_tokens=N_TOKENS, with_types=True))
    with torch.inference_mode():
        assert torch.equal(again(**inputs), classifier.eval()(**inputs))
    assert not any("encoder" in name for name in load_file(tmp_path / "saved" / "head.safetensors"))


@pytest.mark.parametrize("pooling", Pooling)
@pytest.mark.parametrize("model_type", ENCODERS)
def test_padding_changes_nothing(model_type: str, pooling: Pooling, tmp_path: Path) -> None:
    classifier = classifier_of(model_type, pooling, tmp_path).eval()
    spread_weights(classifier)
    inputs = to_tensors(random_inputs(4, 11, n_tokens=N_TOKENS))
    with torch.inference_mode():
        together = classifier(**inputs)
        for row, length in enumerate(inputs["attention_mask"].sum(1)):
            alone = classifier(**{name: value[row : row + 1, :length] for name, value in inputs.items()})
            torch.testing.assert_close(together[row], alone[0], atol=1e-5, rtol=1e-5)


def test_a_bilstm_s_backward_direction_begins_at_the_text_s_own_end(tmp_path: Path) -> None:
    classifier = classifier_of("bert", Pooling.BILSTM, tmp_path).eval()
    states = torch.randn(2, 6, 32, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]])
    with torch.inference_mode():
        read = classifier.read_both_ways(states, mask)
        expected, _ = classifier.lstm(states[:1, :4])
    torch.testing.assert_close(read[:1, :4], expected)
    assert not read[0, 4:].any()


def test_bert_as_features_trains_the_mix_the_bilstm_and_the_head_alone(tmp_path: Path) -> None:
    classifier = classifier_of("bert", Pooling.BILSTM, tmp_path)
    classifier.freeze_encoder()
    inputs = to_tensors(random_inputs(3, 7, n_tokens=N_TOKENS))
    classifier(**inputs).square().sum().backward()
    learning = {name for name, weight in classifier.named_parameters() if weight.grad is not None}
    assert learning == {name for name in classifier.state_dict() if not name.startswith("encoder.")}
    assert {name.split(".")[0] for name in learning} == {"layer_mix", "lstm", "head"}
    assert classifier.layer_mix.grad is not None
    assert classifier.layer_mix.grad.abs().min() > 0  # every layer has a say


def test_dropout_is_that_of_hidden_states_and_none_of_attention(tmp_path: Path) -> None:
    save_as_is(published("nezha"), tmp_path)
    encoder = BertClassifier.start(tmp_path, n_labels=2, pooling=Pooling.MEAN, dropout=0.25).encoder
    rates = {name: module.p for name, module in encoder.named_modules() if isinstance(module, torch.nn.Dropout)}
    assert {rate for name, rate in rates.items() if name.endswith("self.dropout")} == {0.0}
    assert {rate for name, rate in rates.items() if not name.endswith("self.dropout")} == {0.25}
