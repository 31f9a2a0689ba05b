import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, OpenAIGPTConfig, PreTrainedConfig

from model.architectures.gpt import GptLanguageModel, build_decoder, hidden_states, load_decoder
from model.architectures.tdmca import CompressedAttention, LocalAttention
from model.errors import BadInput
from tests.parity import random_inputs, spread_weights

CONFIGS = {"openai-gpt": OpenAIGPTConfig, "gpt2": GPT2Config}
both_bodies = pytest.mark.parametrize("body", CONFIGS)
N_TOKENS = 40


def tiny_config(body: str, **changes: Any) -> PreTrainedConfig:
    settings = {"vocab_size": N_TOKENS, "n_positions": 128, "n_embd": 16, "n_layer": 3, "n_head": 2}
    memory = {"attention": "memory-compressed", "block_length": 8, "compression": 3}
    return CONFIGS[body](bos_token_id=None, eos_token_id=None, **{**settings, **memory, **changes})


def tiny_decoder(body: str, **changes: Any) -> nn.Module:
    decoder = build_decoder(tiny_config(body, **changes)).eval()
    spread_weights(decoder)
    return decoder


def position_by_position(attention: LocalAttention | CompressedAttention, hidden: Tensor) -> Tensor:
    """What Liu 2018 says, one position and one head after the other: (length, hidden_size) to the same."""
    length, width = hidden.shape
    query, key, value = (hidden @ attention.c_attn.weight + attention.c_attn.bias).split(width, dim=1)
    outputs = []
    for position in range(length):
        if isinstance(attention, LocalAttention):
            first = position // attention.block_length * attention.block_length
            seen = range(first, position + 1)
            keys, values = key[seen.start : seen.stop], value[seen.start : seen.stop]
        else:
            step = attention.compression
            memory = [(key[0], value[0])]
            for start in range(0, length - step + 1, step):
                if start + step - 1 <= position:
                    mixed = []
                    for convolution, of in ((attention.compress_key, key), (attention.compress_value, value)):
                        parts = [convolution.weight[:, :, tap] @ of[start + tap] for tap in range(step)]
                        mixed.append(sum(parts) + convolution.bias)
                    memory.append((mixed[0], mixed[1]))
            keys, values = (torch.stack(column) for column in zip(*memory, strict=True))
        heads = []
        for part in torch.arange(width).chunk(attention.n_heads):
            scores = torch.stack([key @ query[position, part] for key in keys[:, part]]) / math.sqrt(len(part))
            heads.append(scores.softmax(0) @ values[:, part])
        outputs.append(torch.cat(heads) @ attention.c_proj.weight + attention.c_proj.bias)
    return torch.stack(outputs)


@both_bodies
@pytest.mark.parametrize("length", [1, 2, 3, 8, 9, 29])
@pytest.mark.parametrize("layer", [0, 1])
def test_attention_is_that_of_a_plain_loop_over_positions(body: str, layer: int, length: int) -> None:
    attention = tiny_decoder(body).h[layer].attn
    assert isinstance(attention, (LocalAttention, CompressedAttention)[layer])
    hidden = torch.randn(2, length, 16, generator=torch.Generator().manual_seed(length))
    output, _ = attention(hidden)
    for row in range(2):
        torch.testing.assert_close(output[row], position_by_position(attention, hidden[row]), atol=1e-5, rtol=1e-4)


def test_layers_take_turns_and_the_first_is_local() -> None:
    kinds = [type(layer.attn).__name__[0] for layer in build_decoder(tiny_config("gpt2", n_layer=5)).h]
    assert "".join(kinds) == "LCLCL"


@both_bodies
@pytest.mark.parametrize(("block_length", "compression"), [(8, 3), (5, 4), (200, 1)])
@pytest.mark.parametrize("length", [2, 9, 37])
def test_no_state_knows_a_later_token(body: str, length: int, block_length: int, compression: int) -> None:
    decoder = tiny_decoder(body, block_length=block_length, compression=compression)
    ids = torch.from_numpy(random_inputs(1, length, n_tokens=N_TOKENS)["input_ids"])
    for position in range(length):
        changed = ids.clone()
        changed[0, position] = (changed[0, position] + 1) % N_TOKENS
        before, after = hidden_states(decoder, ids)[0], hidden_states(decoder, changed)[0]
        assert torch.equal(before[:position], after[:position])
        assert (before[position] != after[position]).any()


@both_bodies
def test_a_state_knows_tokens_of_earlier_blocks(body: str) -> None:
    decoder = tiny_decoder(body)
    ids = torch.from_numpy(random_inputs(1, 41, n_tokens=N_TOKENS)["input_ids"])
    for position in range(38):  # the mixture of the last three is read by position 38
        changed = ids.clone()
        changed[0, position] = (changed[0, position] + 1) % N_TOKENS
        assert (hidden_states(decoder, ids)[0, -1] != hidden_states(decoder, changed)[0, -1]).any(), position


@both_bodies
def test_padding_changes_no_loss(body: str) -> None:
    model = GptLanguageModel(tiny_decoder(body))
    inputs = random_inputs(4, 29, n_tokens=N_TOKENS)
    ids, mask = (torch.from_numpy(inputs[name]) for name in ("input_ids", "attention_mask"))
    alone = [model(row[None, :length], row_mask[None, :length]).total
             for row, row_mask, length in zip(ids, mask, mask.sum(1), strict=True)]  # fmt: skip
    torch.testing.assert_close(model(ids, mask).total, sum(alone))


@both_bodies
def test_one_local_block_over_all_is_full_attention(body: str) -> None:
    local = tiny_decoder(body, n_layer=1, block_length=64)
    full = build_decoder(tiny_config(body, n_layer=1, attention="full")).eval()
    full.load_state_dict(local.state_dict())
    ids = torch.from_numpy(random_inputs(2, 37, n_tokens=N_TOKENS)["input_ids"])
    torch.testing.assert_close(hidden_states(local, ids), hidden_states(full, ids), atol=1e-5, rtol=1e-4)


def test_local_attention_costs_in_proportion_to_the_length_and_compressed_a_third_of_full() -> None:
    def multiplications(attention: LocalAttention | CompressedAttention, length: int) -> int:
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            attention.mix(torch.randn(1, length, 48))
        return int(counter.get_total_flops()) // 2

    local, compressed = (layer.attn for layer in tiny_decoder("gpt2", n_layer=2).h)
    full = 2 * 192 * 192 * 16  # scores, and the values' mixture by them
    assert multiplications(local, 192) == 2 * multiplications(local, 96) == full * 8 // 192
    convolutions = 2 * 64 * (3 * 16) * 16
    assert multiplications(compressed, 192) == full * (64 + 1) // 192 + convolutions


@both_bodies
def test_what_is_saved_is_loaded(body: str, tmp_path: Path) -> None:
    decoder = tiny_decoder(body)
    decoder.save_pretrained(tmp_path)
    loaded = load_decoder(tmp_path).eval()
    assert (loaded.config.attention, loaded.config.block_length, loaded.config.compression) == (
        "memory-compressed", 8, 3
    )  # fmt: skip
    ids = torch.from_numpy(random_inputs(2, 37, n_tokens=N_TOKENS)["input_ids"])
    assert torch.equal(hidden_states(loaded, ids), hidden_states(decoder, ids))


@both_bodies
def test_full_attentions_weights_start_it_with_the_mean_of_what_it_compresses(body: str, tmp_path: Path) -> None:
    full = build_decoder(tiny_config(body, attention="full"))
    spread_weights(full)
    full.save_pretrained(tmp_path)
    decoder = load_decoder(tmp_path, attention="memory-compressed", block_length=8, compression=3)
    assert torch.equal(decoder.h[1].attn.c_attn.weight, full.h[1].attn.c_attn.weight)
    memory = torch.randn(2, 10, 16)
    compressed = decoder.h[1].attn.compress_value(memory)
    expected = torch.stack([memory[:, 0], *(memory[:, start : start + 3].mean(1) for start in (0, 3, 6))], dim=1)
    torch.testing.assert_close(compressed[:, :-1], expected)


def test_a_saved_one_that_lacks_its_convolutions_is_refused(tmp_path: Path) -> None:
    tiny_decoder("gpt2").save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["h.1.attn.compress_key.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"lacks h\.1\.attn\.compress_key\.weight"):
        load_decoder(tmp_path)


def test_its_weights_are_refused_where_attention_is_full(tmp_path: Path) -> None:
    tiny_decoder("gpt2").save_pretrained(tmp_path)
    with pytest.raises(BadInput, match=r"has h\.1\.attn\.compress_key\.bias, .* which is no part of a gpt2"):
        load_decoder(tmp_path, attention="full")


@pytest.mark.parametrize("wrong", [{"attention": "sparse"}, {"block_length": 0}, {"compression": 0}])
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"config\.json"):
        build_decoder(tiny_config("gpt2", **wrong))


@both_bodies
def test_the_loss_of_a_made_language_falls(body: str) -> None:
    torch.manual_seed(0)
    model = GptLanguageModel(build_decoder(tiny_config(body, n_layer=2)))
    ids = (torch.randint(0, N_TOKENS, (16, 1)) + 7 * torch.arange(20)) % N_TOKENS
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(50):
        loss = model(ids, torch.ones_like(ids)).mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 1.0, f"chance is {math.log(N_TOKENS):.1f}"


@both_bodies
def test_what_it_shares_with_full_attention_starts_alike(body: str) -> None:
    decoders = []
    for attention in ("memory-compressed", "full"):
        torch.manual_seed(0)
        decoders.append(build_decoder(tiny_config(body, attention=attention)).state_dict())
    compressed, full = decoders
    assert {name for name in compressed if name not in full} == {
        f"h.1.attn.compress_{of}.{kind}" for of in ("key", "value") for kind in ("weight", "bias")
    }
    assert all(torch.equal(compressed[name], value) for name, value in full.items())
