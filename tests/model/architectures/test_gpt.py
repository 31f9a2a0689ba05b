from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import functional
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    BertConfig,
    GPT2Config,
    GPT2LMHeadModel,
    OpenAIGPTConfig,
    OpenAIGPTLMHeadModel,
    PreTrainedConfig,
)

from model.architectures.gpt import (
    GptClassifier,
    GptLanguageModel,
    GptMultipleChoice,
    build_decoder,
    hidden_states,
    load_decoder,
)
from model.errors import BadInput
from tests.parity import random_inputs, spread_weights

CONFIGS = {"openai-gpt": OpenAIGPTConfig, "gpt2": GPT2Config}
REFERENCES = {"openai-gpt": OpenAIGPTLMHeadModel, "gpt2": GPT2LMHeadModel}
both_bodies = pytest.mark.parametrize("body", CONFIGS)
N_TOKENS = 40


def tiny_config(body: str, **changes: Any) -> PreTrainedConfig:
    settings = {"vocab_size": N_TOKENS, "n_positions": 64, "n_embd": 16, "n_layer": 3, "n_head": 2}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return CONFIGS[body](bos_token_id=None, eos_token_id=None, **{**settings, **dropout, **changes})


def tiny_decoder(folder: Path, body: str, **changes: Any) -> Path:
    """A start of one of the two bodies, whose weights all show."""
    decoder = build_decoder(tiny_config(body, **changes))
    spread_weights(decoder, std=0.2)
    decoder.save_pretrained(folder)
    return folder


def batch(rows: int, length: int, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    inputs = random_inputs(rows, length, n_tokens=N_TOKENS, seed=seed)
    return torch.from_numpy(inputs["input_ids"]), torch.from_numpy(inputs["attention_mask"])


@both_bodies
@pytest.mark.parametrize(("rows", "length"), [(1, 2), (3, 7), (5, 64)])
def test_the_language_models_loss_is_that_of_transformers(body: str, rows: int, length: int, tmp_path: Path) -> None:
    reference = REFERENCES[body](tiny_config(body)).eval()
    spread_weights(reference, std=0.2)
    reference.save_pretrained(tmp_path)
    ids, mask = batch(rows, length)
    expected = reference(input_ids=ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100))
    ours = GptLanguageModel.load(tmp_path).eval()(ids, mask)
    torch.testing.assert_close(ours.mean, expected.loss)
    assert ours.count == mask.sum() - rows


@both_bodies
def test_hidden_states_are_those_of_transformers(body: str, tmp_path: Path) -> None:
    tiny_decoder(tmp_path, body)
    ids, mask = batch(5, 33)
    expected = AutoModel.from_pretrained(tmp_path).eval()(input_ids=ids, attention_mask=mask).last_hidden_state
    states = hidden_states(load_decoder(tmp_path).eval(), ids)
    torch.testing.assert_close(states[mask.bool()], expected[mask.bool()])


@both_bodies
@pytest.mark.parametrize("length", [2, 9, 64])
def test_no_state_knows_a_later_token(body: str, length: int) -> None:
    decoder = build_decoder(tiny_config(body)).eval()
    spread_weights(decoder)
    ids, _ = batch(1, length)
    for position in {1, length // 2, length - 1}:
        changed = ids.clone()
        changed[0, position] = (changed[0, position] + 1) % N_TOKENS
        before, after = hidden_states(decoder, ids)[0], hidden_states(decoder, changed)[0]
        assert torch.equal(before[:position], after[:position])
        assert (before[position:] != after[position:]).any(-1).all(), "and every later state does"


@both_bodies
def test_padding_changes_no_loss(body: str) -> None:
    model = GptLanguageModel(build_decoder(tiny_config(body))).eval()
    spread_weights(model)
    ids, mask = batch(4, 20)
    together = model(ids, mask)
    alone = [model(row[None, :length], row_mask[None, :length])
             for row, row_mask, length in zip(ids, mask, mask.sum(1), strict=True)]  # fmt: skip
    torch.testing.assert_close(together.total, sum(one.total for one in alone))
    assert together.count == sum(one.count for one in alone)


def test_a_text_of_one_token_has_nothing_to_foretell() -> None:
    model = GptLanguageModel(build_decoder(tiny_config("gpt2")))
    nothing = model(torch.tensor([[5]]), torch.tensor([[1]]))
    assert (nothing.count, nothing.mean) == (0, 0)


@both_bodies
def test_the_loss_of_a_made_language_falls(body: str) -> None:
    torch.manual_seed(0)
    model = GptLanguageModel(build_decoder(tiny_config(body, n_layer=1)))
    # every token is followed by the one seven numbers on
    ids = (torch.randint(0, N_TOKENS, (16, 1)) + 7 * torch.arange(12)) % N_TOKENS
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        loss = model(ids, torch.ones_like(ids)).mean
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.5, f"chance is {torch.tensor(N_TOKENS).log():.1f}"


@both_bodies
def test_transformers_loads_what_the_language_model_saves(body: str, tmp_path: Path) -> None:
    model = GptLanguageModel(build_decoder(tiny_config(body))).eval()
    model.save(tmp_path)
    ids, mask = batch(2, 9)
    output = AutoModelForCausalLM.from_pretrained(tmp_path).eval()(ids, labels=ids)
    torch.testing.assert_close(model(ids, torch.ones_like(mask)).mean, output.loss)


@both_bodies
def test_the_classifier_reads_the_last_real_state(body: str, tmp_path: Path) -> None:
    start = tiny_decoder(tmp_path, body)
    classifier = GptClassifier.start(start, n_labels=3, vocabulary_size=N_TOKENS).eval()
    spread_weights(classifier)
    ids, mask = batch(4, 17)
    logits = classifier(ids, mask)
    for row, length in enumerate(mask.sum(1)):
        state = hidden_states(classifier.encoder, ids[row : row + 1, :length])[0, -1]
        torch.testing.assert_close(logits[row], classifier.head(state))


@both_bodies
@pytest.mark.parametrize("similarity", [False, True])
def test_the_joint_objectives_gradient_is_the_sum_of_both(body: str, similarity: bool, tmp_path: Path) -> None:
    classifier = GptClassifier.start(tiny_decoder(tmp_path, body), n_labels=3, vocabulary_size=N_TOKENS, dropout=0.0)
    ids, mask = batch(4, 11)
    orders = [ids, batch(4, 11, seed=1)[0]] if similarity else [ids]
    inputs = {"input_ids": ids, "attention_mask": mask, **({"swapped_ids": orders[1]} if similarity else {})}
    gold = torch.tensor([0, 2, 1, 2])

    def gradients(loss: Tensor) -> list[Tensor]:
        found = torch.autograd.grad(loss, list(classifier.parameters()), allow_unused=True)
        return [torch.zeros_like(weight) if grad is None else grad
                for weight, grad in zip(classifier.parameters(), found, strict=True)]  # fmt: skip

    passes = []
    hook = classifier.encoder.register_forward_hook(lambda *_: passes.append(1))
    joint = classifier.joint(**inputs)
    hook.remove()
    assert len(passes) == 1
    both = gradients(functional.cross_entropy(joint.logits, gold) + 0.7 * joint.language_model_loss)
    labels = gradients(functional.cross_entropy(classifier(**inputs), gold))
    language_model = GptLanguageModel(classifier.encoder)
    parts = [language_model(order, mask) for order in orders]
    language = gradients(sum(part.total for part in parts) / sum(part.count for part in parts))
    for weight, of_labels, of_language in zip(both, labels, language, strict=True):
        torch.testing.assert_close(weight, of_labels + 0.7 * of_language, atol=1e-6, rtol=1e-4)
    assert all(grad.any() for grad in labels), "every weight learns from the labels"


def test_similarity_does_not_depend_on_the_order_of_its_texts(tmp_path: Path) -> None:
    classifier = GptClassifier.start(tiny_decoder(tmp_path, "openai-gpt"), n_labels=2, vocabulary_size=N_TOKENS).eval()
    ids, mask = batch(4, 11)
    swapped, _ = batch(4, 11, seed=1)
    logits = classifier(ids, mask, swapped_ids=swapped)
    torch.testing.assert_close(classifier(swapped, mask, swapped_ids=ids), logits)
    assert not torch.allclose(classifier(ids, mask), classifier(swapped, mask)), "one order alone does"
    one, other = (hidden_states(classifier.encoder, order[:, : mask.shape[1]])[0, -1] for order in (ids, swapped))
    torch.testing.assert_close(logits[0], classifier.head(one + other))


@both_bodies
def test_new_tokens_get_random_embeddings_and_old_ones_keep_theirs(body: str, tmp_path: Path) -> None:
    start = tiny_decoder(tmp_path, body)
    embeddings = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        classifier = GptClassifier.start(start, n_labels=2, vocabulary_size=N_TOKENS + 3)
        embeddings.append(classifier.encoder.get_input_embeddings().weight)
    old = load_decoder(start).get_input_embeddings().weight
    assert [len(table) for table in embeddings] == [N_TOKENS + 3] * 2
    for table in embeddings:
        assert torch.equal(table[:N_TOKENS], old)
    assert (embeddings[0][N_TOKENS:] != embeddings[1][N_TOKENS:]).all()
    assert embeddings[0][N_TOKENS:].std() < 0.05, "as small as the config's initializer_range"


@both_bodies
@pytest.mark.parametrize("kind", [GptClassifier, GptMultipleChoice])
def test_what_is_saved_answers_as_before(
    body: str, kind: type[GptClassifier] | type[GptMultipleChoice], tmp_path: Path
) -> None:
    start = tiny_decoder(tmp_path / "start", body)
    shape = {"n_labels": 3} if kind is GptClassifier else {}
    trained = kind.start(start, vocabulary_size=N_TOKENS + 3, **shape).eval()
    trained.save(tmp_path / "trained")
    ids, mask = batch(4, 9)
    if kind is GptMultipleChoice:
        ids, mask = ids.view(2, 2, 9), mask.view(2, 2, 9)
    assert torch.equal(kind.load(tmp_path / "trained")(ids, mask), trained(ids, mask))
    assert {*load_file(tmp_path / "trained" / "head.safetensors")} == {"head.weight", "head.bias"}
    decoder = AutoModel.from_pretrained(tmp_path / "trained").eval()
    assert torch.equal(decoder.get_input_embeddings().weight, trained.encoder.get_input_embeddings().weight)


def test_a_frozen_decoder_leaves_the_head_to_train(tmp_path: Path) -> None:
    classifier = GptClassifier.start(tiny_decoder(tmp_path, "gpt2"), n_labels=2, vocabulary_size=N_TOKENS)
    classifier.freeze_encoder()
    learning = {name for name, weight in classifier.named_parameters() if weight.requires_grad}
    assert learning == {"head.weight", "head.bias"}


@both_bodies
def test_choices_are_scored_one_by_one(body: str, tmp_path: Path) -> None:
    chooser = GptMultipleChoice.start(tiny_decoder(tmp_path, body), vocabulary_size=N_TOKENS).eval()
    ids, mask = batch(6, 9)
    logits = chooser(ids.view(2, 3, 9), mask.view(2, 3, 9))
    assert logits.shape == (2, 3)
    for number, length in enumerate(mask.sum(1)):
        state = hidden_states(chooser.encoder, ids[number : number + 1, :length])[0, -1]
        torch.testing.assert_close(logits.flatten()[number], chooser.head(state)[0])


def test_multiple_choice_learns_which_answer_repeats_the_context(tmp_path: Path) -> None:
    torch.manual_seed(0)
    start, delimiter, extract = N_TOKENS, N_TOKENS + 1, N_TOKENS + 2
    chooser = GptMultipleChoice.start(
        tiny_decoder(tmp_path, "gpt2", n_layer=1), vocabulary_size=N_TOKENS + 3, dropout=0.0
    )
    optimizer = torch.optim.AdamW(chooser.parameters(), lr=1e-2)

    def made(n_texts: int) -> tuple[Tensor, Tensor]:
        context = torch.randint(0, 8, (n_texts, 1))
        answers = (context + torch.stack([torch.randperm(3) for _ in range(n_texts)])) % 8
        gold = (answers == context).long().argmax(1)
        frame = [torch.full_like(answers, token) for token in (start, delimiter, extract)]
        ids = torch.stack([frame[0], context.expand_as(answers), frame[1], answers, frame[2]], dim=-1)
        return ids, gold

    for _ in range(80):
        ids, gold = made(64)
        joint = chooser.joint(ids, torch.ones_like(ids))
        loss = functional.cross_entropy(joint.logits, gold) + 0.1 * joint.language_model_loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ids, gold = made(200)
    right = chooser.eval()(ids, torch.ones_like(ids)).argmax(1) == gold
    assert right.float().mean() > 0.9, "a third by chance"


def test_a_text_longer_than_the_positions_is_refused() -> None:
    decoder = build_decoder(tiny_config("openai-gpt"))
    with pytest.raises(BadInput, match="65 tokens, but the decoder has 64 positions"):
        hidden_states(decoder, torch.zeros(1, 65, dtype=torch.long))


def test_a_start_that_lacks_a_weight_is_refused(tmp_path: Path) -> None:
    weights = load_file(tiny_decoder(tmp_path, "gpt2") / "model.safetensors")
    del weights["h.1.mlp.c_fc.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"lacks h\.1\.mlp\.c_fc\.weight"):
        load_decoder(tmp_path)


def test_a_start_of_another_architecture_is_refused(tmp_path: Path) -> None:
    BertConfig().save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="model_type is 'bert'"):
        load_decoder(tmp_path)
