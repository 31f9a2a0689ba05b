"""What can be added to plain training: losses, rates of layers, adversarial words, the mean of weights."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from model.architectures.bert import BertClassifier, Pooling
from model.errors import BadInput
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import Activation, Split
from training.adversarial import moved_words, word_table
from training.classifying import Classifying, classifying, jointly_classifying
from training.data import Dataset, load
from training.device import NumberFormat, to_tensors
from training.loop import Options, Training, predict
from training.losses import class_weights, classification_loss, divergence
from training.optimizing import Rates, depth_of, make_optimizer, thawed

OPTIONS = Options(
    epochs=6, batch_size=16, learning_rate=3e-3, head_learning_rate=3e-3, checkpoint_every=3, patience=9,
    precision=NumberFormat.FP32,
)  # fmt: skip
RECIPES = {
    "smoothing": {"smoothing": 0.1},
    "focal": {"focal": 2.0},
    "class weights": {"class_weights": True},
    "R-Drop": {"r_drop": 1.0},
    "adversarial": {"adversarial": 0.5},
    "average": {"average": 0.9},
    "layer rates": {"layer_decay": 0.7, "unfreeze": 0.5},
}
LOGITS = torch.tensor([[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]])
GOLD = torch.tensor([[1, 0, 0], [0, 1, 0]])


@pytest.fixture(scope="module")
def datasets(snapshot: Snapshot, tiny_bert: Path) -> dict[Split, Dataset]:
    tokenizer = load_tokenizer(tiny_bert, max_length=32)
    return {split: load(snapshot, split, tokenizer) for split in Split}


def training(
    tiny_bert: Path, snapshot: Snapshot, datasets: dict[Split, Dataset], checkpoint: Path, options: Options
) -> Training[Dataset]:
    torch.manual_seed(5)
    return Training(
        classifier=BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN),
        train_set=datasets[Split.TRAIN],
        dev_set=datasets[Split.DEV],
        objective=classifying(snapshot.taxonomy, options, datasets[Split.TRAIN]),
        options=options,
        seed=5,
        checkpoint=checkpoint,
    )


@pytest.fixture(scope="module")
def plain(
    snapshot: Snapshot, tiny_bert: Path, datasets: dict[Split, Dataset], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Tensor]:
    """The weights that come of training without any recipe."""
    loop = training(tiny_bert, snapshot, datasets, tmp_path_factory.mktemp("plain"), OPTIONS)
    loop.run()
    return loop.classifier.state_dict()


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_learns_and_after_a_break_goes_on_to_the_same_weights(
    recipe: str,
    plain: dict[str, Tensor],
    snapshot: Snapshot,
    tiny_bert: Path,
    datasets: dict[Split, Dataset],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = replace(OPTIONS, **RECIPES[recipe])  # type: ignore[arg-type]
    whole = training(tiny_bert, snapshot, datasets, tmp_path / "whole", options)
    whole.run()
    expected = whole.classifier.state_dict()
    assert any(not torch.equal(weight, expected[name]) for name, weight in plain.items())
    test = datasets[Split.TEST]
    assert (predict(whole.classifier, test).argmax(1) == test.gold.argmax(1)).mean() > 0.7
    update, steps = Training.update, iter(range(1000))

    def update_until_killed(loop: Training[Dataset], rows: list[int]) -> None:
        if next(steps) == 41:
            raise KeyboardInterrupt
        update(loop, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Training, "update", update_until_killed)
        with pytest.raises(KeyboardInterrupt):
            training(tiny_bert, snapshot, datasets, tmp_path / "killed", options).run()
    again = training(tiny_bert, snapshot, datasets, tmp_path / "killed", options)
    again.run()
    for name, weight in again.classifier.state_dict().items():
        assert torch.equal(weight, expected[name]), name


@pytest.mark.parametrize("activation", Activation)
def test_the_focal_loss_counts_what_is_known_less(activation: Activation) -> None:
    scores = LOGITS.softmax(-1) if activation is Activation.SOFTMAX else LOGITS.sigmoid()
    right = torch.where(GOLD > 0, scores, 1 - scores)
    if activation is Activation.SOFTMAX:
        right = right[GOLD > 0]
    expected = (-((1 - right) ** 2) * right.log()).mean()
    torch.testing.assert_close(classification_loss(LOGITS, GOLD, activation, focal=2.0), expected)


def test_class_weights_are_those_of_torch_and_one_in_the_mean_of_texts() -> None:
    gold = np.array([[1, 0, 0]] * 8 + [[0, 1, 0]] * 3 + [[0, 0, 1]], bool)
    weights = class_weights(gold)
    assert weights[0] < weights[1] < weights[2]
    assert float((torch.from_numpy(gold) * weights).sum() / len(gold)) == pytest.approx(1)
    each = functional.cross_entropy(LOGITS, GOLD.argmax(1), weight=weights, reduction="none").mean()
    torch.testing.assert_close(classification_loss(LOGITS, GOLD, Activation.SOFTMAX, weights=weights), each)
    several = functional.binary_cross_entropy_with_logits(LOGITS, GOLD.float(), pos_weight=weights)
    torch.testing.assert_close(classification_loss(LOGITS, GOLD, Activation.SIGMOID, weights=weights), several)


def test_a_handful_of_samples_does_not_drown_all_others() -> None:
    gold = np.array([[1, 0]] * 9999 + [[0, 1]], bool)
    weights = class_weights(gold)
    assert float(weights[1] / weights[0]) == pytest.approx(10 * 2, rel=0.01)  # 10 above the mean, 1 / 2 below it


def test_the_divergence_is_the_mean_of_both_kullback_leiblers() -> None:
    other = torch.tensor([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0]])
    logs = [each.log_softmax(-1) for each in (LOGITS, other)]
    both = [functional.kl_div(logs[one], logs[1 - one], log_target=True, reduction="batchmean") for one in (0, 1)]
    torch.testing.assert_close(divergence(LOGITS, other, Activation.SOFTMAX), sum(both) / 2)
    assert divergence(LOGITS, LOGITS, Activation.SIGMOID) == 0


def test_without_dropout_r_drop_changes_nothing(
    snapshot: Snapshot, tiny_bert: Path, datasets: dict[Split, Dataset]
) -> None:
    network = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN).eval()
    rows = [0, 1, 2, 3]
    inputs = to_tensors(datasets[Split.TRAIN].batch(rows), torch.device("cpu"))
    targets = torch.from_numpy(datasets[Split.TRAIN].targets(rows))
    plain, dropped = (Classifying(snapshot.taxonomy, r_drop=alpha).loss(network, inputs, targets) for alpha in (0, 3))
    torch.testing.assert_close(dropped, plain)


def test_words_are_moved_by_so_much_along_their_gradient_and_back() -> None:
    network = nn.Sequential(nn.Embedding(3, 4), nn.Embedding(10, 4))
    table = word_table(network)
    assert table.shape == (10, 4)
    before = table.detach().clone()
    table.grad = torch.randn_like(before)
    with moved_words(network, 0.5):
        moved: Tensor = table.detach() - before
        assert float(moved.norm()) == pytest.approx(0.5, rel=1e-5)
        torch.testing.assert_close(moved / moved.norm(), table.grad / table.grad.norm())
    assert torch.equal(table, before)


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        ("encoder.embeddings.word_embeddings.weight", 0),
        ("encoder.encoder.layer.0.attention.self.query.weight", 1),
        ("encoder.encoder.layer.11.output.dense.bias", 12),
        ("encoder.h.3.attn.c_attn.weight", 4),
        ("encoder.forward_layers.1.lstm.weight_ih_l0", 2),
        ("head.weight", None),
        ("lstm.weight_ih_l0", None),
    ],
)
def test_how_deep_a_weight_lies(name: str, depth: int | None) -> None:
    assert depth_of(name) == depth


def test_lower_layers_learn_slower_and_later(tiny_bert: Path) -> None:
    network = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN)
    rates = Rates(learning_rate=1.0, head_learning_rate=9.0, weight_decay=0.1, layer_decay=0.5, unfreeze=0.5)
    groups = make_optimizer(network, rates).param_groups
    assert {(group["depth"], group["lr"]) for group in groups} == {(0.0, 0.25), (0.5, 0.5), (1.0, 1.0), (None, 9.0)}
    assert {group["weight_decay"] for group in groups} == {0.0, 0.1}
    assert [thawed(depth, 0.3, 0.5) for depth in (0.0, 0.5, 1.0, None)] == [False, True, True, True]


def test_embeddings_stay_as_they_are_until_their_turn(
    snapshot: Snapshot, tiny_bert: Path, datasets: dict[Split, Dataset], tmp_path: Path
) -> None:
    loop = training(tiny_bert, snapshot, datasets, tmp_path, replace(OPTIONS, unfreeze=0.5))
    before = word_table(loop.classifier).detach().clone()
    changed = []
    for rows in loop.remaining_batches():
        loop.update(rows)
        changed.append(not torch.equal(word_table(loop.classifier), before))
    assert changed.index(True) == pytest.approx(len(changed) / 2, abs=1)


def test_the_mean_of_the_weights_is_judged_and_kept(
    snapshot: Snapshot, tiny_bert: Path, datasets: dict[Split, Dataset], tmp_path: Path
) -> None:
    loop = training(tiny_bert, snapshot, datasets, tmp_path, replace(OPTIONS, average=0.5))
    means: list[Tensor] = []
    for step, rows in enumerate(loop.remaining_batches()):
        if step == 4:
            break
        loop.update(rows)
        now = loop.classifier.state_dict()["head.weight"].clone()
        means.append(now if not means else 0.5 * means[-1] + 0.5 * now)
    torch.testing.assert_close(loop.judged.state_dict()["head.weight"], means[-1])
    loop.judge()
    torch.testing.assert_close(load_file(tmp_path / "best.safetensors")["head.weight"], means[-1])


def test_r_drop_of_a_gpt_is_refused(snapshot: Snapshot, datasets: dict[Split, Dataset]) -> None:
    with pytest.raises(BadInput, match="--r-drop has no meaning with --arch gpt"):
        jointly_classifying(snapshot.taxonomy, Options(r_drop=1.0), datasets[Split.TRAIN], lm_weight=0.5)
