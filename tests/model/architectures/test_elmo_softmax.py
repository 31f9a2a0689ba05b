import pytest
import torch
from elmos import tiny_elmo
from torch import Tensor, nn

from model.architectures.character_cnn import CharacterCnn
from model.architectures.elmo_softmax import CnnSoftmax, WordSoftmax, draw_words, log_inclusion

KINDS = ("cnn", "plain")


def softmax_of(kind: str) -> WordSoftmax:
    softmax = tiny_elmo(softmax=kind).softmax
    nn.init.normal_(softmax.bias, std=0.5)
    return softmax


def predictions(n: int = 9) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(n, 12, generator=generator), torch.randint(25, (n,), generator=generator)


def explicit_vectors(softmax: CnnSoftmax) -> Tensor:
    """Every word by itself: its CNN's answer and its lifted correction."""
    rows = []
    for word, characters in enumerate(softmax.characters):
        spelled = softmax.cnn(characters[None])[0]
        rows.append(spelled + softmax.correction_projection.weight @ softmax.correction.weight[word])
    return torch.stack(rows)


def test_the_cnn_softmax_is_a_softmax_over_the_cnns_vectors() -> None:
    softmax = softmax_of("cnn")
    assert isinstance(softmax, CnnSoftmax)
    hidden, targets = predictions()
    scores = hidden @ explicit_vectors(softmax).T + softmax.bias
    expected = -(scores.exp() / scores.exp().sum(1, keepdim=True)).log()[torch.arange(9), targets]
    torch.testing.assert_close(softmax.full(hidden, targets), expected)


def test_words_that_are_spelled_alike_differ_by_their_correction_alone() -> None:
    softmax = softmax_of("cnn")
    assert isinstance(softmax, CnnSoftmax)
    softmax.characters[7] = softmax.characters[6]
    one, two = softmax.vectors(torch.tensor([6, 7]))
    assert (one - two).abs().max() > 1e-3
    nn.init.zeros_(softmax.correction_projection.weight)
    one, two = softmax.vectors(torch.tensor([6, 7]))
    torch.testing.assert_close(one, two)


def test_the_softmax_has_a_cnn_of_its_own() -> None:
    model = tiny_elmo()
    assert isinstance(model.softmax, CnnSoftmax)
    own = {id(weight) for weight in model.softmax.parameters()}
    assert own.isdisjoint(id(weight) for weight in model.encoder.parameters())
    assert not torch.equal(model.softmax.cnn.projection.weight, model.encoder.character_cnn.projection.weight)


@pytest.mark.parametrize("kind", KINDS)
def test_sampling_every_word_is_exact_with_its_gradients(kind: str) -> None:
    softmax = softmax_of(kind)
    hidden, targets = predictions()
    hidden.requires_grad_()
    losses = softmax.full(hidden, targets), softmax.sampled(hidden, targets, n_draws=5000)
    torch.testing.assert_close(*losses)
    full, sampled = (torch.autograd.grad(loss.sum(), [hidden, *softmax.parameters()]) for loss in losses)
    for one, two in zip(full, sampled, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_sampled_sum_is_right_on_average(kind: str) -> None:
    softmax = softmax_of(kind)
    hidden, targets = predictions()
    torch.manual_seed(0)
    with torch.no_grad():
        scores = hidden @ softmax.all_vectors().T + softmax.bias
        own = scores.gather(1, targets[:, None])[:, 0]
        # the loss is log(sum) - own, so the estimated sum over all words is exp(loss + own)
        sums = torch.stack([(softmax.sampled(hidden, targets, n_draws=20) + own).exp() for _ in range(600)])
    error = (sums.mean(0) - scores.exp().sum(1)) / (sums.std(0) / len(sums) ** 0.5)
    assert error.abs().max() < 4


def test_a_target_is_no_negative_of_its_own_row() -> None:
    softmax = softmax_of("plain")
    with torch.no_grad():
        softmax.bias.fill_(-30.0)
        softmax.bias[3] = 30.0  # likely by far; were it a negative too, its loss would be log 2 or more
    hidden = torch.zeros(1, 12)
    assert softmax.sampled(hidden, torch.tensor([3]), n_draws=200).item() == pytest.approx(0, abs=1e-6)
    assert softmax.sampled(hidden, torch.tensor([4]), n_draws=5000).item() == pytest.approx(60, abs=1e-3)


def test_words_come_up_as_often_as_is_corrected_for() -> None:
    torch.manual_seed(0)
    n_draws, tries = 8, 4000
    seen = torch.zeros(20)
    for _ in range(tries):
        seen[draw_words(20, n_draws, device=torch.device("cpu")).unique()] += 1
    expected = log_inclusion(torch.arange(20), 20, n_draws).exp()
    deviation = (expected * (1 - expected) / tries).sqrt()
    assert ((seen / tries - expected) / deviation).abs().max() < 4


def test_in_bf16_the_sum_is_taken_in_float32() -> None:
    softmax = softmax_of("cnn")
    hidden, targets = predictions()
    with torch.autocast("cpu", torch.bfloat16):
        losses = softmax.full(hidden, targets), softmax.sampled(hidden, targets, n_draws=5000)
    assert all(loss.dtype is torch.float32 for loss in losses)
    for loss in losses:
        torch.testing.assert_close(loss, softmax.full(hidden, targets), atol=0.1, rtol=0.02)


def test_vectors_that_were_kept_for_evaluation_are_not_those_of_old_weights() -> None:
    softmax = softmax_of("cnn")
    hidden, targets = predictions()
    with torch.no_grad():
        before = softmax.eval().full(hidden, targets)
        assert softmax.all_vectors() is softmax.all_vectors()
        softmax.train()
        nn.init.normal_(softmax.get_parameter("correction.weight"))
        after = softmax.eval().full(hidden, targets)
    assert (before - after).abs().max() > 1e-3
    torch.testing.assert_close(after, softmax.full(hidden, targets.clone()))
    assert softmax.full(hidden, targets).requires_grad  # nothing kept stands in the way of gradients


def test_zipfs_law_is_the_first_guess() -> None:
    model = tiny_elmo(softmax="plain")
    shares = model.softmax.bias.softmax(0)
    torch.testing.assert_close(shares[0] / shares[9], torch.tensor(10.0))


def cnn(filters: tuple[tuple[int, int], ...] = ((1, 4), (3, 5))) -> CharacterCnn:
    torch.manual_seed(0)
    return CharacterCnn(n_characters=20, character_size=6, filters=filters, n_highways=1, output_size=7)


def test_padding_behind_a_word_changes_nothing() -> None:
    network = cnn()
    words = torch.tensor([[2, 9, 3, 0, 0, 0], [2, 9, 10, 11, 12, 3]])
    together = network(words)
    torch.testing.assert_close(together[:1], network(words[:1, :3]))
    torch.testing.assert_close(together[:1], network(torch.nn.functional.pad(words[:1], (0, 4))))


def test_short_and_long_words_of_a_batch_are_read_as_each_alone() -> None:
    network = cnn()
    words = torch.zeros(7, 12, dtype=torch.long)
    for row, length in enumerate((3, 12, 7, 6, 1, 9, 0)):
        words[row, :length] = torch.arange(2, 2 + length)
    alone = torch.cat([network(word[None, : max(int(word.count_nonzero()), 3)]) for word in words])
    torch.testing.assert_close(network(words), alone)
    torch.testing.assert_close(network(words[1:3]), alone[1:3])  # no short one among them


def test_the_cnn_is_a_maximum_over_places_then_highways_then_a_projection() -> None:
    network = cnn()
    word = torch.tensor([2, 9, 10, 11, 3])
    embedded = network.embedding.weight[word]
    pooled = []
    for convolution, width in zip(network.convolutions, (1, 3), strict=True):
        weight, bias = convolution.get_parameter("weight"), convolution.get_parameter("bias")
        windows = [embedded[at : at + width].T for at in range(len(word) - width + 1)]
        answers = torch.stack([(weight * window).sum((1, 2)) + bias for window in windows])
        pooled.append(answers.amax(0).relu())
    x = torch.cat(pooled)
    highway = network.highways[0]
    gate = torch.sigmoid(highway.gate(x))
    x = gate * highway.transform(x).relu() + (1 - gate) * x
    torch.testing.assert_close(network(word[None])[0], network.projection(x))


def test_the_order_of_characters_counts_and_no_word_has_no_vector() -> None:
    network = cnn()
    one, two = network(torch.tensor([[2, 9, 10, 3], [2, 10, 9, 3]]))
    assert (one - two).abs().max() > 1e-4
    assert network(torch.zeros(0, 6, dtype=torch.long)).shape == (0, 7)
