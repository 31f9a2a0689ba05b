from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from checkpoints import (
    PUBLISHED,
    SPELLINGS,
    assert_same_weights,
    change_weights,
    published,
    save_as_is,
    save_bare,
    save_half,
    save_sharded,
)
from parity import assert_same_states, random_inputs, spread_weights
from torch import Tensor
from transformers import ElectraForMaskedLM, PreTrainedModel

from model.architectures.foreign_weights import load_encoder, load_for_pretraining, plain
from model.errors import BadInput
from model.files import read_json, write_json

Save = Callable[[PreTrainedModel, Path], None]


def inputs(model_type: str) -> dict[str, object]:
    return random_inputs(3, 7, n_tokens=60, with_types="gpt" not in model_type)


@pytest.mark.parametrize("save", SPELLINGS)
@pytest.mark.parametrize("model_type", PUBLISHED)
def test_an_encoder_computes_what_its_maker_s_does(model_type: str, save: Save, tmp_path: Path) -> None:
    reference = published(model_type)
    save(reference, tmp_path)
    encoder = load_encoder(tmp_path)
    assert {weight.dtype for weight in encoder.parameters()} == {torch.float32}
    assert_same_states(encoder, reference, inputs(model_type), atol=1e-6)


@pytest.mark.parametrize("save", SPELLINGS)
@pytest.mark.parametrize("model_type", [name for name in PUBLISHED if name != "electra"])
def test_pretraining_goes_on_with_the_heads_that_were_published(model_type: str, save: Save, tmp_path: Path) -> None:
    reference = published(model_type)
    save(reference, tmp_path)
    model = load_for_pretraining(tmp_path)
    assert type(model) is type(reference)
    assert len(list(model.parameters())) == len(list(reference.parameters()))  # what is tied stays tied
    if save is save_bare:
        assert_same_weights(model.base_model, reference.base_model)
    else:
        assert_same_weights(model, reference)


def test_heads_that_a_checkpoint_lacks_start_from_the_seed(tmp_path: Path) -> None:
    save_bare(published("bert"), tmp_path)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(load_for_pretraining(tmp_path).cls.seq_relationship.weight)
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_loading_an_encoder_leaves_the_stream_of_chance_alone(tmp_path: Path) -> None:
    save_as_is(published("bert"), tmp_path)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_encoder(tmp_path)
    assert torch.equal(torch.rand(3), expected)


def test_settings_can_be_changed(tmp_path: Path) -> None:
    save_as_is(published("electra"), tmp_path)
    encoder = load_encoder(tmp_path, hidden_dropout_prob=0.37)
    assert encoder.embeddings.dropout.p == 0.37
    encoder.save_pretrained(tmp_path / "saved")
    assert_same_states(load_encoder(tmp_path / "saved"), encoder, inputs("electra"), atol=0)


def test_full_attention_s_weights_start_a_decoder_with_a_compressed_memory(tmp_path: Path) -> None:
    reference = published("openai-gpt")
    save_as_is(reference, tmp_path)
    decoder = load_encoder(tmp_path, attention="memory-compressed", block_length=8)
    for name, value in reference.base_model.state_dict().items():
        assert torch.equal(decoder.state_dict()[name], value), name
    decoder.save_pretrained(tmp_path / "saved")
    again = load_encoder(tmp_path / "saved")
    assert_same_weights(again, decoder)
    assert_same_weights(load_for_pretraining(tmp_path / "saved").base_model, decoder)
    change_weights(tmp_path / "saved", lambda weights: weights.pop("h.1.attn.compress_key.weight"))
    with pytest.raises(BadInput, match=r"lacks h\.1\.attn\.compress_key\.weight"):
        load_encoder(tmp_path / "saved")


def test_an_electra_goes_on_as_a_masked_language_model_under_a_new_head(tmp_path: Path) -> None:
    reference = published("electra")
    save_as_is(reference, tmp_path)
    torch.manual_seed(1)
    model = load_for_pretraining(tmp_path)
    assert isinstance(model, ElectraForMaskedLM)
    assert_same_weights(model.base_model, reference.base_model)
    assert model.generator_lm_head.weight is model.base_model.embeddings.word_embeddings.weight
    spread_weights(model.generator_predictions)
    save_as_is(model, tmp_path / "further")
    assert_same_weights(load_for_pretraining(tmp_path / "further"), model)
    assert_same_weights(load_encoder(tmp_path / "further"), model.base_model)


QUERY = "bert.encoder.layer.1.attention.self.query.weight"


def with_nan(weights: dict[str, Tensor]) -> None:
    weights[QUERY][3, 4] = float("nan")


def of_another_shape(weights: dict[str, Tensor]) -> None:
    weights[QUERY] = torch.zeros(32, 31)


def with_overflow(weights: dict[str, Tensor]) -> None:
    weights["cls.predictions.transform.dense.bias"][0] = float("inf")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop(QUERY), r"lacks encoder\.layer\.1\.attention\.self\.query\.weight; it is not a"),
        (
            lambda weights: weights.update(adapter=torch.ones(2)),
            "has adapter, which is no part of a bert; .* save the bert alone",
        ),
        (of_another_shape, r"query\.weight is of shape \(32, 31\), config\.json makes it \(32, 32\)"),
        (with_nan, r"1 of 1,024 values of bert\.encoder\.layer\.1\.attention\.self\.query\.weight are NaN or infinite"),
        (with_overflow, r"1 of 32 values of cls\.predictions\.transform\.dense\.bias are NaN or infinite"),
        (
            lambda weights: weights.update({QUERY.removeprefix("bert."): torch.zeros(32, 32)}),
            "query.weight twice",
        ),
    ],
)
def test_weights_that_do_not_fit_are_named(
    change: Callable[[dict[str, Tensor]], object], message: str, tmp_path: Path
) -> None:
    save_as_is(published("bert"), tmp_path)
    change_weights(tmp_path, change)
    with pytest.raises(BadInput, match=message):
        load_for_pretraining(tmp_path)


@pytest.mark.parametrize(
    ("named", "held", "found"),
    [
        ("bert", "gpt2", "a gpt2"),
        ("nezha", "openai-gpt", "an openai-gpt"),
        ("gpt2", "bert", "a bert, an ernie, an electra or a nezha"),
    ],
)
def test_a_checkpoint_of_another_architecture_is_told_from_a_broken_one(
    named: str, held: str, found: str, tmp_path: Path
) -> None:
    save_as_is(published(held), tmp_path)
    published(named).config.save_pretrained(tmp_path)
    message = f"config.json is that of a {named}, the weights are those of {found}"
    with pytest.raises(BadInput, match=message):
        load_encoder(tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model_type": "roberta"}, "model_type roberta is not known; bert, ernie"),
        ({"model_type": None}, "names no model_type"),
        ({"hidden_size": "wide"}, "hidden_size.*correct the value"),
        ({"attention": "sparse", "model_type": "gpt2"}, "'sparse'"),
    ],
)
def test_settings_of_no_model_of_ours_are_refused(settings: dict[str, object], message: str, tmp_path: Path) -> None:
    save_as_is(published("bert"), tmp_path)
    write_json(tmp_path / "config.json", {**read_json(tmp_path / "config.json"), **settings})
    with pytest.raises(BadInput, match=message):
        load_encoder(tmp_path)


def test_a_shard_that_is_not_there_is_named(tmp_path: Path) -> None:
    save_sharded(published("bert"), tmp_path)
    lost = sorted(tmp_path.glob("*.safetensors"))[1]
    lost.unlink()
    with pytest.raises(BadInput, match=f"has no {lost.name}"):
        load_encoder(tmp_path)


def test_a_file_cut_short_is_refused(tmp_path: Path) -> None:
    save_half(published("bert"), tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(BadInput, match=r"model\.safetensors can't be read"):
        load_encoder(tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("module.bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"),
        ("electra.encoder.layer.0.output.LayerNorm.beta", "encoder.layer.0.output.LayerNorm.bias"),
        ("transformer.h.0.ln_1.weight", "h.0.ln_1.weight"),
        ("ernie.pooler.dense.bias", "pooler.dense.bias"),
        ("cls.predictions.transform.LayerNorm.gamma", "cls.predictions.transform.LayerNorm.weight"),
    ],
)
def test_every_spelling_of_a_name_is_reduced_to_one(name: str, expected: str) -> None:
    assert plain(name) == expected
