import math
from pathlib import Path

import pytest
import torch
from checkpoints import N_TOKENS, assert_same_weights, published
from parity import assert_same_states, random_inputs, spread_weights, to_tensors
from torch import Tensor
from transformers import BertConfig, BertModel
from transformers.utils import ModelOutput

from model.architectures.nezha import (
    NezhaConfig,
    NezhaForPreTraining,
    NezhaModel,
    NezhaSelfAttention,
    relative_positions,
)

TINY = NezhaConfig(
    vocab_size=N_TOKENS,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=16,
    max_relative_position=4,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def vector_of_distance(distance: int, *, furthest: int, width: int) -> list[float]:
    """a_ij as equations 3 and 4 of the paper have it, one number after the other."""
    place = max(-furthest, min(furthest, distance)) + furthest
    vector = []
    for index in range(width):
        angle = place / 10_000 ** (2 * (index // 2) / width)
        vector.append(math.cos(angle) if index % 2 else math.sin(angle))
    return vector


def attention_in_a_loop(attention: NezhaSelfAttention, hidden: Tensor, mask: list[int]) -> list[list[float]]:
    """The attention of one text, hidden (length, hidden_size), over heads, i and j."""
    projected = [project(hidden).tolist() for project in (attention.query, attention.key, attention.value)]
    length, width = len(mask), hidden.shape[1] // attention.n_heads
    output = [[0.0] * hidden.shape[1] for _ in range(length)]
    for head in range(attention.n_heads):
        part = slice(head * width, (head + 1) * width)
        query, key, value = ([row[part] for row in rows] for rows in projected)
        for i in range(length):
            scores, values = [], []
            for j in range(length):
                distance = vector_of_distance(j - i, furthest=TINY.max_relative_position, width=width)
                with_distance = [k + a for k, a in zip(key[j], distance, strict=True)]
                score = sum(q * k for q, k in zip(query[i], with_distance, strict=True)) / math.sqrt(width)
                scores.append(math.exp(score) if mask[j] else 0.0)
                values.append([v + a for v, a in zip(value[j], distance, strict=True)])
            for index in range(width):
                weighted = sum(score * vector[index] for score, vector in zip(scores, values, strict=True))
                output[i][head * width + index] = weighted / sum(scores)
    return output


@pytest.mark.parametrize("mask", [[1] * 11, [1] * 6 + [0] * 5])
def test_attention_equals_a_plain_loop_over_heads_and_pairs_of_positions(mask: list[int]) -> None:
    attention = NezhaSelfAttention(TINY).eval()
    spread_weights(attention)
    hidden = torch.randn(1, len(mask), 12, generator=torch.Generator().manual_seed(1))
    bias = (1 - torch.tensor(mask).float()[None, None, None]) * torch.finfo(torch.float32).min
    relations = relative_positions(len(mask), 4, furthest=TINY.max_relative_position)
    with torch.inference_mode():
        actual = attention(hidden, bias, relations)[0]
        expected = torch.tensor(attention_in_a_loop(attention, hidden[0], mask))
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("width", [4, 5])
def test_vectors_of_distances_are_sines_and_cosines_that_stop_at_the_furthest(width: int) -> None:
    relations = relative_positions(9, width, furthest=3)
    for i in range(9):
        for j in range(9):
            expected = torch.tensor(vector_of_distance(j - i, furthest=3, width=width))
            torch.testing.assert_close(relations[i, j], expected, atol=1e-6, rtol=0)


def test_without_the_vectors_of_distances_it_is_bert_without_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("model.architectures.nezha.relative_positions", lambda length, width, **_: torch.zeros(1, 1, 1))
    nezha = published("nezha").nezha
    settings = {name: value for name, value in nezha.config.to_dict().items() if name != "model_type"}
    bert = BertModel(BertConfig(**settings))
    torch.nn.init.zeros_(bert.embeddings.position_embeddings.weight)
    bert.load_state_dict(nezha.state_dict(), strict=False)
    with pytest.raises(AssertionError):
        assert_same_states(NezhaModel(nezha.config), bert, random_inputs(2, 9, n_tokens=N_TOKENS, with_types=True))
    assert_same_states(nezha, bert, random_inputs(2, 9, n_tokens=N_TOKENS, with_types=True))


def test_order_shows_though_there_are_no_absolute_positions() -> None:
    model = published("nezha").nezha
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.inference_mode():
        forwards, backwards = model(ids).last_hidden_state, model(ids.flip(1)).last_hidden_state.flip(1)
    assert (forwards - backwards).abs().max() > 0.01


def test_padding_changes_nothing_and_no_text_is_too_long() -> None:
    model = published("nezha").nezha
    ids = torch.randint(4, N_TOKENS, (1, 200), generator=torch.Generator().manual_seed(0))  # 64 are named in its config
    padded = torch.cat([ids, torch.zeros(1, 9, dtype=torch.long)], dim=1)
    mask = torch.arange(209).unsqueeze(0) < 200
    with torch.inference_mode():
        alone, among = model(ids).last_hidden_state, model(padded, mask.long()).last_hidden_state
    torch.testing.assert_close(among[:, :200], alone, atol=1e-5, rtol=1e-5)


def losses(model: torch.nn.Module, inputs: dict[str, Tensor]) -> ModelOutput:
    labels = inputs["input_ids"].masked_fill(torch.arange(7) % 3 == 1, -100)
    return model(**inputs, labels=labels, next_sentence_label=torch.tensor([0, 1, 1]))


def test_both_losses_are_those_of_bert_on_the_same_states(monkeypatch: pytest.MonkeyPatch) -> None:
    model = published("nezha")
    inputs = to_tensors(random_inputs(3, 7, n_tokens=N_TOKENS, with_types=True))
    bert = published("bert")
    bert.cls.load_state_dict(model.cls.state_dict())
    monkeypatch.setattr(bert.bert, "forward", lambda *_, **__: model.nezha(**inputs))
    ours, reference = losses(model, inputs), losses(bert, inputs)
    torch.testing.assert_close(ours.loss, reference.loss)
    torch.testing.assert_close(ours.prediction_logits, reference.prediction_logits)


def test_gradients_are_the_same_when_states_are_computed_twice_to_save_memory() -> None:
    inputs = to_tensors(random_inputs(3, 7, n_tokens=N_TOKENS))
    gradients = []
    for twice in (False, True):
        model = NezhaForPreTraining(TINY).train()
        spread_weights(model)
        if twice:
            model.activation_checkpointing_enable()
            assert all(layer.gradient_checkpointing for layer in model.nezha.encoder.layer)
        losses(model, inputs).loss.backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
    for once, again in zip(*gradients, strict=True):
        torch.testing.assert_close(once, again)


def test_it_is_saved_and_loaded_as_transformers_models_are(tmp_path: Path) -> None:
    model = published("nezha")
    model.save_pretrained(tmp_path)
    again = NezhaForPreTraining.from_pretrained(tmp_path)
    assert again.config.max_relative_position == 5
    assert_same_weights(again, model)
    assert again.cls.predictions.decoder.weight is again.nezha.embeddings.word_embeddings.weight
    assert_same_states(NezhaModel.from_pretrained(tmp_path), model, random_inputs(3, 7, n_tokens=N_TOKENS), atol=0)
