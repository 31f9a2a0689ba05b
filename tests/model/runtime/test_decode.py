import numpy as np
import pytest

from model.errors import BadLogits
from model.runtime.decode import Decoder
from model.types import Task, Taxonomy

SINGLE = Taxonomy(Task.SINGLE, ("科技", "体育", "财经"))
PAIR = Taxonomy(Task.SINGLE, ("好评", "差评"))
MULTI = Taxonomy(Task.MULTI, ("便宜", "干净", "安静"), multiple=True)
PATHS = Taxonomy(Task.HIERARCHICAL, ("组织-裁员", "组织-成立"), level_sep="-", multiple=True)


def logits(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float32)


def test_a_single_label_gets_softmax_scores_best_first() -> None:
    (prediction,) = Decoder(SINGLE).decode(logits([0, 2, 1]), top_k=3)
    assert [label for label, _ in prediction.labels] == ["体育", "财经", "科技"]
    expected = np.exp([2, 1, 0]) / np.exp([2, 1, 0]).sum()
    assert [score for _, score in prediction.labels] == pytest.approx(expected, abs=1e-6)


def test_two_labels_get_softmax_when_the_task_is_single_and_sigmoid_when_it_is_not() -> None:
    (single,) = Decoder(PAIR).decode(logits([1, 1]), top_k=2)
    (multiple,) = Decoder(PATHS).decode(logits([1, 1]), top_k=2)
    assert [score for _, score in single.labels] == pytest.approx([0.5, 0.5])
    assert [score for _, score in multiple.labels] == pytest.approx([0.731059, 0.731059], abs=1e-6)


@pytest.mark.parametrize(("top_k", "count"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_top_k_labels_are_given_and_never_more_than_there_are(top_k: int, count: int) -> None:
    (prediction,) = Decoder(SINGLE).decode(logits([0, 2, 1]), top_k=top_k)
    assert len(prediction.labels) == count


def test_equal_scores_keep_the_order_of_the_taxonomy() -> None:
    (prediction,) = Decoder(SINGLE).decode(logits([1, 1, 1]), top_k=3)
    assert [label for label, _ in prediction.labels] == list(SINGLE.labels)


def test_several_labels_are_those_that_reach_their_own_thresholds() -> None:
    decoder = Decoder(MULTI, thresholds={"便宜": 0.9, "安静": 0.2})
    (prediction,) = decoder.decode(logits([1.0, 0.5, -1.0]))  # scores 0.73, 0.62, 0.27
    assert [label for label, _ in prediction.labels] == ["干净", "安静"]
    assert not prediction.abstained


def test_accepted_labels_come_before_better_scores_that_miss_their_thresholds() -> None:
    decoder = Decoder(MULTI, thresholds={"便宜": 0.9, "安静": 0.2})
    (prediction,) = decoder.decode(logits([1.0, 0.5, -1.0]), top_k=3)
    assert [label for label, _ in prediction.labels] == ["干净", "安静", "便宜"]


def test_a_text_that_no_label_is_accepted_for_abstains_and_still_shows_the_best() -> None:
    (prediction,) = Decoder(MULTI).decode(logits([-3, -1, -2]))
    assert prediction.abstained
    assert prediction.label == "干净"


def test_a_best_score_below_the_bar_abstains() -> None:
    sure, unsure = Decoder(PAIR, abstain_below=0.6).decode(logits([2, 0], [0.1, 0]))
    assert (sure.abstained, unsure.abstained) == (False, True)


def test_temperature_divides_the_logits() -> None:
    (cool,) = Decoder(PAIR, temperature=2.0).decode(logits([4, 0]))
    (plain,) = Decoder(PAIR).decode(logits([2, 0]))
    assert cool.score == pytest.approx(plain.score)


def test_truncation_is_passed_on_row_by_row() -> None:
    cut = Decoder(PAIR).decode(logits([1, 0], [0, 1]), truncated=[False, True])
    assert [prediction.truncated for prediction in cut] == [False, True]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (logits([1, 2, 3]), "the taxonomy has 2 labels"),
        (np.zeros(2, np.float32), "the taxonomy has 2 labels"),
        (logits([1, 2], [1, np.nan]), "row 1"),
        (logits([np.inf, 2]), "row 0"),
    ],
)
def test_logits_that_can_not_be_right_are_refused(bad: np.ndarray, message: str) -> None:
    with pytest.raises(BadLogits, match=message):
        Decoder(PAIR).decode(bad)
