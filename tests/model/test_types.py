"""A taxonomy never contradicts itself, and a label's position is its index."""

import pytest

from model.errors import BadTaxonomy, UnknownLabel
from model.types import Activation, LabelScore, Prediction, Task, Taxonomy, preview


@pytest.mark.parametrize(
    ("task", "options", "reason"),
    [
        (Task.SINGLE, {"labels": ("甲", "乙", "甲")}, "stand twice in the taxonomy: 甲"),
        (Task.SINGLE, {"labels": ("甲", " ")}, "a label of the taxonomy is empty"),
        (Task.SINGLE, {"multiple": True}, "task single can't have multiple=True"),
        (Task.MULTI, {"multiple": False}, "task multi can't have multiple=False"),
        (Task.HIERARCHICAL, {}, "needs a level separator"),
        (Task.SINGLE, {"level_sep": "-"}, "needs a level separator"),
    ],
)
def test_a_contradiction_is_refused(task, options, reason):
    with pytest.raises(BadTaxonomy, match=reason):
        Taxonomy(task, **{"labels": ("甲", "乙"), **options})


@pytest.mark.parametrize(
    ("taxonomy", "activation"),
    [
        (Taxonomy(Task.SINGLE, ("甲",)), Activation.SOFTMAX),
        (Taxonomy(Task.SINGLE, tuple("甲乙丙丁")), Activation.SOFTMAX),
        (Taxonomy(Task.MULTI, ("甲",), multiple=True), Activation.SIGMOID),
        (Taxonomy(Task.HIERARCHICAL, ("甲-乙",), level_sep="-"), Activation.SOFTMAX),
        (Taxonomy(Task.HIERARCHICAL, ("甲-乙",), level_sep="-", multiple=True), Activation.SIGMOID),
    ],
)
def test_the_activation_follows_from_the_task_and_survives_json(taxonomy, activation):
    assert taxonomy.activation is activation
    assert Taxonomy.from_json(taxonomy.to_json()) == taxonomy


def test_labels_have_the_positions_of_their_order():
    taxonomy = Taxonomy(Task.SINGLE, ("丙", "甲", "乙"))
    assert len(taxonomy) == 3
    assert taxonomy.indices(["乙", "丙", "乙"]) == [2, 0, 2]
    with pytest.raises(UnknownLabel, match=r"label '丁' is not in the taxonomy \(丙, 甲, 乙\)"):
        taxonomy.indices(["甲", "丁"])


def test_levels_come_from_the_separator_and_only_in_a_hierarchy():
    assert Taxonomy(Task.HIERARCHICAL, ("a-b",), level_sep="-").levels("组织-裁员") == ("组织", "裁员")
    assert Taxonomy(Task.SINGLE, ("a-b",)).levels("组织-裁员") == ("组织-裁员",)


def test_a_prediction_leads_with_its_best_label():
    prediction = Prediction((LabelScore("好评", 0.9), LabelScore("差评", 0.1)))
    assert (prediction.label, prediction.score) == ("好评", 0.9)


def test_a_preview_says_how_many_there_are():
    assert preview("甲乙丙") == "甲, 乙, 丙"
    assert preview(map(str, range(100)), limit=2) == "0, 1, … 100 in all"
