import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from elmos import random_words, tensors, tiny_config, tiny_elmo, tiny_elmo_start, tiny_tokenizer

from model.architectures.elmo import ElmoLanguageModel, ProjectedLstm, reversed_order
from model.errors import BadInput
from model.tokenization.words import UNKNOWN
from model.types import Text


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_elmo_start(tmp_path_factory.mktemp("elmo"))


def test_the_lstm_is_torchs_lstm_with_projections() -> None:
    torch.manual_seed(0)
    lstm = ProjectedLstm(size=6, cell_size=10)
    x = torch.randn(3, 7, 6, requires_grad=True)
    ours = lstm(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no fast kernel
        reference = lstm.lstm(x)[0]
    torch.testing.assert_close(ours, reference)
    gradients = [torch.autograd.grad(states.square().sum(), [x, *lstm.parameters()]) for states in (ours, reference)]
    for mine, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(mine, expected)


def test_there_are_2l_plus_1_representations() -> None:
    inputs = tensors(random_words((7, 4)))
    states = tiny_elmo(n_layers=3).encoder(**inputs)
    each = [states.token, *states.forward, *states.backward]
    assert len(each) == 2 * 3 + 1
    assert {tuple(one.shape) for one in each} == {(2, 7, 12)}
    token, *_, top = states.layers()
    assert torch.equal(token, torch.cat([states.token, states.token], -1))
    assert torch.equal(top, torch.cat([states.forward[-1], states.backward[-1]], -1))


def test_a_later_word_changes_no_forward_state_and_an_earlier_one_no_backward_state() -> None:
    model = tiny_elmo()
    model.encoder.precompute()  # so that the other words' vectors are the same to the last bit
    inputs = random_words((9,), unknown=0.0)
    place = 4
    changed = {name: value.copy() for name, value in inputs.items()}
    changed["word_ids"][0, place] = UNKNOWN
    changed["char_ids"][0, place] = tiny_tokenizer().encode_words(["喵好"]).characters[0]
    with torch.inference_mode():
        before, after = model.encoder(**tensors(inputs)), model.encoder(**tensors(changed))
    for old, new in zip(before.forward, after.forward, strict=True):
        assert torch.equal(old[:, :place], new[:, :place])
        assert ((old - new)[0, place:].abs().amax(1) > 1e-6).all()
    for old, new in zip(before.backward, after.backward, strict=True):
        assert torch.equal(old[:, place + 1 :], new[:, place + 1 :])
        assert ((old - new)[0, : place + 1].abs().amax(1) > 1e-6).all()


def test_the_backward_side_mirrors_the_forward_side() -> None:
    model = tiny_elmo()
    model.encoder.backward_layers.load_state_dict(model.encoder.forward_layers.state_dict())
    inputs = tensors(random_words((8, 5)))
    order = reversed_order(inputs["attention_mask"])
    turned = {
        "word_ids": inputs["word_ids"].gather(1, order),
        "char_ids": inputs["char_ids"].gather(1, order.unsqueeze(-1).expand_as(inputs["char_ids"])),
        "attention_mask": inputs["attention_mask"],
    }
    real = inputs["attention_mask"].bool()
    with torch.inference_mode():
        backward = model.encoder(**inputs).backward[-1]
        forward = model.encoder(**turned).forward[-1].gather(1, order.unsqueeze(-1).expand_as(backward))
    torch.testing.assert_close(forward[real], backward[real])


def test_two_calls_on_one_sentence_give_the_same_vectors() -> None:
    model = tiny_elmo()
    inputs, other = tensors(random_words((6, 8))), tensors(random_words((9, 3), seed=1))
    with torch.inference_mode():
        first = model.encoder(**inputs).layers()
        model.encoder(**other)
        again = model.encoder(**inputs).layers()
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))


def test_padding_changes_nothing() -> None:
    model = tiny_elmo()
    narrow, wide = tensors(random_words((5,))), tensors(random_words((5,)))
    for name, value in wide.items():
        wide[name] = torch.cat([value, torch.zeros_like(value[:, :3])], 1)
    with torch.inference_mode():
        for one, two in zip(model.encoder(**narrow).layers(), model.encoder(**wide).layers(), strict=True):
            torch.testing.assert_close(one, two[:, :5])
        one, two = model.loss(**narrow), model.loss(**wide)
    torch.testing.assert_close((one.forward, one.backward), (two.forward, two.backward))
    assert one.count == two.count == 4


def test_texts_of_a_batch_add_up() -> None:
    model = tiny_elmo()
    batch = random_words((7, 3, 5))
    alone = [{name: value[row : row + 1] for name, value in batch.items()} for row in range(3)]
    with torch.inference_mode():
        together, each = model.loss(**tensors(batch)), [model.loss(**tensors(one)) for one in alone]
    assert together.count == sum(one.count for one in each) == 6 + 2 + 4
    torch.testing.assert_close(together.total, torch.stack([one.total for one in each]).sum())


def test_the_loss_is_that_of_each_word_from_one_side() -> None:
    model = tiny_elmo()
    inputs = tensors(random_words((6, 4)))
    forward = backward = 0.0
    with torch.inference_mode():
        loss = model.loss(**inputs)
        states = model.encoder(**inputs)
        table, bias = model.softmax.all_vectors(), model.softmax.bias
        for row, length in enumerate((6, 4)):
            for place in range(length - 1):
                here, there = inputs["word_ids"][row, place], inputs["word_ids"][row, place + 1]
                forward -= (table @ states.forward[-1][row, place] + bias).log_softmax(0)[there].item()
                backward -= (table @ states.backward[-1][row, place + 1] + bias).log_softmax(0)[here].item()
    assert loss.forward.item() == pytest.approx(forward, rel=1e-5)
    assert loss.backward.item() == pytest.approx(backward, rel=1e-5)


def test_mixed_precision_gives_the_same_loss_but_for_rounding() -> None:
    model = tiny_elmo(n_layers=1, n_highways=1, filters=((2, 8),))
    inputs = tensors(random_words((4,), unknown=0.0))
    exact = model.loss(**inputs).total
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model.loss(**inputs).total
    assert rounded.dtype is torch.float32
    assert rounded.item() != exact.item()
    torch.testing.assert_close(rounded, exact, atol=0, rtol=0.01)
    rounded.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


def test_the_table_of_word_vectors_is_what_the_cnn_says_and_training_drops_it() -> None:
    model = tiny_elmo()
    encoder = model.encoder
    inputs = tensors(random_words((9, 6)))
    with torch.inference_mode():
        spelled = encoder.character_cnn(inputs["char_ids"].flatten(0, 1)).view(2, 9, -1)
        without = encoder.token_vectors(inputs["word_ids"], inputs["char_ids"])
        encoder.precompute()
        by_table = encoder.token_vectors(inputs["word_ids"], inputs["char_ids"])
    assert encoder.word_vectors is not None
    real = inputs["attention_mask"].bool()
    torch.testing.assert_close(without[real], spelled[real])
    torch.testing.assert_close(by_table[real], spelled[real])
    assert encoder.train().word_vectors is None


def test_an_unknown_word_is_read_by_its_characters() -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_elmo()
    vectors = []
    for word in ("喵好", "坏喵"):
        encoded = tokenizer.encode_words(["<s>", word, "</s>"])
        assert encoded.ids[1] == UNKNOWN
        ids, characters = torch.from_numpy(encoded.ids)[None], torch.from_numpy(encoded.characters)[None]
        vectors.append(model.encoder.token_vectors(ids, characters)[0, 1])
    assert (vectors[0] - vectors[1]).abs().max() > 1e-3


def test_layers_are_residual() -> None:
    model = tiny_elmo()
    for layers in (model.encoder.forward_layers, model.encoder.backward_layers):
        torch.nn.init.zeros_(layers[1].lstm.weight_hr_l0)  # a second layer that says nothing
    states = model.encoder(**tensors(random_words((6, 4))))
    assert torch.equal(states.forward[1], states.forward[0])
    assert torch.equal(states.backward[1], states.backward[0])
    assert not torch.equal(states.forward[0], states.token)


def test_directions_share_the_cnn_and_the_softmax_and_nothing_else() -> None:
    model = tiny_elmo()
    names = [name for name, _ in model.named_parameters()]
    loss = model.loss(**tensors(random_words((8, 6))))
    reached = []
    for direction in (loss.forward, loss.backward):
        gradients = torch.autograd.grad(direction, list(model.parameters()), retain_graph=True, allow_unused=True)
        reached.append({n for n, g in zip(names, gradients, strict=True) if g is not None and g.abs().max() > 0})
    shared = reached[0] & reached[1]
    assert shared == {name for name in names if "_layers." not in name}
    assert all("forward_layers" in name for name in reached[0] - shared)
    assert all("backward_layers" in name for name in reached[1] - shared)
    assert reached[0] | reached[1] == set(names)


@pytest.mark.parametrize("softmax", ["cnn", "plain"])
def test_the_loss_falls(softmax: str) -> None:
    tokenizer = tiny_tokenizer()
    texts = [Text(f"{time}{place}很{word}。") for time, place, word in zip(
        ("上次", "中午", "有时", "来时"), ("房间", "酒店", "早餐", "价格"), ("干净", "吵闹", "便宜", "贵"), strict=True
    )]  # fmt: skip
    encoded = tokenizer.encode(texts)
    batch = {name: torch.from_numpy(np.stack([one.inputs[name] for one in encoded])) for name in tokenizer.padding}
    model = tiny_elmo(softmax=softmax, sampled_words=60, dropout=0.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
    with torch.no_grad():
        before = model.eval().loss(**batch)
    for _ in range(25):
        loss = model.train().loss(**batch)
        (loss.total / loss.count).backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        after = model.eval().loss(**batch)
    assert before.count == after.count
    assert after.total < 0.35 * before.total


def test_a_language_model_that_was_saved_goes_on_where_it_was(start: Path) -> None:
    model, again = tiny_elmo(), ElmoLanguageModel.load(start, dropout=0.25).eval()
    assert again.config == tiny_config(dropout=0.25)
    inputs = tensors(random_words((6, 4)))
    with torch.no_grad():
        torch.testing.assert_close(again.loss(**inputs).total, model.loss(**inputs).total)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"filters": ((7, 4),)}, "don't fit words of 6 characters"),
        ({"projection_size": 20}, "projection_size 20 is not smaller than cell_size 20"),
        ({"n_layers": 0}, "n_layers 0"),
        ({"softmax": "big"}, "softmax big"),
    ],
)
def test_a_configuration_that_makes_no_elmo_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        tiny_config(**change)


@pytest.mark.parametrize("change", ["fewer words", "longer words", "other characters"])
def test_words_of_another_tokenizer_are_refused(change: str) -> None:
    characters = torch.from_numpy(tiny_tokenizer().characters_of_words)
    if change == "fewer words":
        characters = characters[:-1]
    elif change == "longer words":
        characters = torch.nn.functional.pad(characters, (0, 1))
    else:
        characters[-1, 1] = tiny_tokenizer().n_characters
    with pytest.raises(BadInput, match="make both of one tokenizer"):
        ElmoLanguageModel(tiny_config(), characters)
