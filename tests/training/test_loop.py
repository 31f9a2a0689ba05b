from pathlib import Path

import numpy as np
import pytest
import torch

import training.loop
from model.architectures.bert import BertClassifier, Pooling
from model.errors import BadInput
from model.snapshot import Snapshot
from model.tokenization import load_tokenizer
from model.types import Split
from training.classifying import Classifying
from training.data import Dataset, load
from training.device import NumberFormat, pick_precision
from training.loop import Diverged, Options, Training, predict

OPTIONS = Options(
    epochs=3, batch_size=16, learning_rate=2e-3, head_learning_rate=2e-3, checkpoint_every=4, patience=9,
    precision=NumberFormat.FP32,
)  # fmt: skip


class Killed(Exception):
    """Stands for a process that ends in mid-training."""


@pytest.fixture(scope="module")
def datasets(snapshot: Snapshot, tiny_bert: Path) -> dict[Split, Dataset]:
    tokenizer = load_tokenizer(tiny_bert, max_length=32)
    return {split: load(snapshot, split, tokenizer) for split in Split}


def train_tiny(
    tiny_bert: Path, snapshot: Snapshot, datasets: dict[Split, Dataset], checkpoint: Path, options: Options = OPTIONS
) -> BertClassifier:
    torch.manual_seed(5)
    classifier = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN)
    Training(
        classifier=classifier,
        train_set=datasets[Split.TRAIN],
        dev_set=datasets[Split.DEV],
        objective=Classifying(snapshot.taxonomy),
        options=options,
        seed=5,
        checkpoint=checkpoint,
    ).run()
    return classifier


def test_it_learns(tmp_path: Path, tiny_bert: Path, snapshot: Snapshot, datasets: dict[Split, Dataset]) -> None:
    classifier = train_tiny(tiny_bert, snapshot, datasets, tmp_path)
    test = datasets[Split.TEST]
    accuracy = (predict(classifier, test).argmax(1) == test.gold.argmax(1)).mean()
    assert accuracy > 0.9


@pytest.mark.parametrize("killed_at", [3, 9, 17])
def test_a_broken_off_training_ends_with_the_same_weights(
    killed_at: int,
    tmp_path: Path,
    tiny_bert: Path,
    snapshot: Snapshot,
    datasets: dict[Split, Dataset],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undisturbed = train_tiny(tiny_bert, snapshot, datasets, tmp_path / "undisturbed").state_dict()
    update, steps = training.loop.Training.update, iter(range(1000))

    def update_until_killed(loop: training.loop.Training, rows: list[int]) -> None:
        if next(steps) == killed_at:
            raise Killed
        update(loop, rows)

    with monkeypatch.context() as patch:
        patch.setattr(training.loop.Training, "update", update_until_killed)
        with pytest.raises(Killed):
            train_tiny(tiny_bert, snapshot, datasets, tmp_path / "killed")
    torch.rand(7)  # whatever the generator was used for in between
    resumed = train_tiny(tiny_bert, snapshot, datasets, tmp_path / "killed").state_dict()
    for name, weight in undisturbed.items():
        assert torch.equal(weight, resumed[name]), name


def test_it_stops_when_dev_no_longer_gets_better(
    tmp_path: Path, tiny_bert: Path, snapshot: Snapshot, datasets: dict[Split, Dataset]
) -> None:
    torch.manual_seed(5)
    classifier = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.MEAN)
    options = Options(epochs=50, learning_rate=0.0, head_learning_rate=0.0, patience=3, precision=NumberFormat.FP32)
    progress = Training(
        classifier=classifier,
        train_set=datasets[Split.TRAIN],
        dev_set=datasets[Split.DEV],
        objective=Classifying(snapshot.taxonomy),
        options=options,
        seed=5,
        checkpoint=tmp_path,
    ).run()
    assert len(progress.history) == 4
    assert progress.best_step == progress.history[0]["step"]


def test_a_loss_that_is_no_number_is_told_with_its_step(
    tmp_path: Path, tiny_bert: Path, snapshot: Snapshot, datasets: dict[Split, Dataset]
) -> None:
    options = Options(learning_rate=1e18, head_learning_rate=1e18, clip_norm=1e18, precision=NumberFormat.FP32)
    with pytest.raises(Diverged, match=r"at step \d+; lower --learning-rate"):
        train_tiny(tiny_bert, snapshot, datasets, tmp_path, options)


def test_logits_come_back_in_the_order_of_the_samples(tiny_bert: Path, datasets: dict[Split, Dataset]) -> None:
    torch.manual_seed(1)
    classifier = BertClassifier.start(tiny_bert, n_labels=2, pooling=Pooling.CLS).eval()
    dataset = datasets[Split.TEST]
    together = predict(classifier, dataset)
    for row in (0, len(dataset) // 2, len(dataset) - 1):
        alone = Dataset(
            samples=[dataset.samples[row]],
            encoded=[dataset.encoded[row]],
            gold=dataset.gold[[row]],
            padding=dataset.padding,
        )
        np.testing.assert_allclose(together[row], predict(classifier, alone)[0], atol=1e-5)


def test_options_out_of_range_are_named() -> None:
    with pytest.raises(BadInput, match="epochs is 0"):
        Options(epochs=0)


def test_bf16_is_chosen_only_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = torch.device("cpu")
    for has_it, expected in ((True, NumberFormat.BF16), (False, NumberFormat.FP32)):
        monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda has_it=has_it: has_it)
        assert pick_precision(NumberFormat.AUTO, cpu) is expected
    assert pick_precision(NumberFormat.FP32, cpu) is NumberFormat.FP32
