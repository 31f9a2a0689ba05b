"""What labels of earlier versions of a taxonomy mean today."""

from app.store.taxonomies import Step, Translation

MERGE = {"好": ("正面",), "很好": ("正面",)}
RENAME = {"正面": ("好评",)}


def test_labels_pass_through_every_change_since_they_were_given() -> None:
    translate = Translation([Step(2, MERGE), Step(3, {}), Step(4, RENAME)])
    assert translate('["好"]', 1) == ("好评",)
    assert translate('["好", "很好", "差"]', 1) == ("好评", "差")
    assert translate('["正面"]', 3) == ("好评",)
    assert translate('["好"]', 2) == ("好",)  # a new class of that name
    assert translate('["好评"]', 4) == ("好评",)


def test_a_class_that_is_gone_means_nothing() -> None:
    translate = Translation([Step(2, {"杂": ()})])
    assert translate('["杂"]', 1) == ()
    assert translate('["好", "杂"]', 1) == ("好",)


def test_an_undo_gives_labels_from_before_their_meaning_back_and_those_since_another() -> None:
    undone = Translation([Step(2, MERGE), Step(3, {"正面": ()}, base=1)])
    assert undone('["好"]', 1) == ("好",)
    assert undone('["正面"]', 2) == ()
    redone = Translation([*undone.steps, Step(4, MERGE, base=2)])
    assert redone('["好"]', 1) == ("正面",)
    assert redone('["正面"]', 2) == ("正面",)
    assert redone('["很好"]', 3) == ("正面",)
    undone_again = Translation([*redone.steps, Step(5, {"正面": ()}, base=3)])
    assert [undone_again('["很好"]', version) for version in (1, 3)] == [("很好",), ("很好",)]
    assert [undone_again('["正面"]', version) for version in (2, 4)] == [(), ()]


def test_undoing_changes_one_after_another_leads_back_step_by_step() -> None:
    steps = [Step(2, MERGE), Step(3, RENAME), Step(4, {"好评": ("正面",)}, base=2)]
    assert Translation(steps)('["好"]', 1) == ("正面",)
    assert Translation(steps)('["好评"]', 3) == ("正面",)
    steps.append(Step(5, {"正面": ()}, base=1))
    translate = Translation(steps)
    assert [translate(labels, version) for labels, version in (('["好"]', 1), ('["正面"]', 2), ('["好评"]', 3))] == [
        ("好",),
        (),
        (),
    ]


def test_a_rollback_skips_what_came_between_unless_it_is_undone() -> None:
    rolled_back = [Step(2, MERGE), Step(3, RENAME), Step(4, {}, base=1)]
    assert Translation(rolled_back)('["好"]', 1) == ("好",)
    undone = Translation([*rolled_back, Step(5, {}, base=3)])
    assert undone('["好"]', 1) == ("好评",)
    assert undone('["正面"]', 2) == ("好评",)
