"""The current label follows from the events: persons before imports, the newest word of each, undone ones left out."""

from collections.abc import Sequence

import pytest

from app.library.labels import CurrentLabels, current_labels, withdrawn_by
from app.store.samples import LabelEvent

POSITIONS = {"差评": 0, "中评": 1, "好评": 2}


def numbered(events: Sequence[tuple[str, str] | int]) -> list[LabelEvent]:
    """Events from 1 on: ("王", "好评") of a person, ("import", "好评") of others; 1 undoes event 1."""
    return [
        LabelEvent(number, (), "person", "李", undoes=said)
        if isinstance(said, int)
        else LabelEvent(
            number, (said[1],), said[0] if said[0] in ("import", "rule", "model") else "person", actor=said[0]
        )
        for number, said in enumerate(events, 1)
    ]


@pytest.mark.parametrize(
    ("events", "label", "conflict", "event"),
    [
        ([("import", "好评")], "好评", False, 1),
        ([("import", "好评"), ("import", "差评"), ("import", "中评")], "差评", True, 2),
        ([("王", "中评"), ("import", "好评"), ("王", "好评"), ("model", "差评")], "好评", False, 3),
        ([("import", "好评"), ("import", "差评"), ("王", "中评")], "中评", False, 3),
        ([("王", "中评"), ("李", "好评")], "好评", True, 2),
        ([("王", "中评"), ("李", "好评"), ("王", "好评")], "好评", False, 3),
        ([("王", "中评"), ("李", "好评"), ("王", "差评")], "差评", True, 3),
        ([("王", "中评"), ("王", "好评"), 2], "中评", False, 1),
        ([("王", "中评"), ("王", "好评"), 2, 3], "好评", False, 2),
        ([("王", "中评"), ("王", "好评"), 2, 3, 4], "中评", False, 1),
        ([("import", "好评"), ("王", "差评"), 2], "好评", False, 1),
        ([("import", "好评"), ("import", "差评"), 2], "好评", False, 1),
        ([("王", "中评"), ("李", "好评"), 2], "中评", False, 1),
    ],
)
def test_persons_come_before_imports_and_what_was_undone_does_not_count(
    events: list[tuple[str, str] | int], label: str, conflict: bool, event: int
) -> None:
    assert current_labels(numbered(events), POSITIONS) == CurrentLabels((label,), conflict, event)


@pytest.mark.parametrize("events", [[("model", "好评"), ("rule", "差评")], [("import", "好评"), 1], []])
def test_without_a_person_or_an_import_there_is_no_current_label(events: list[tuple[str, str] | int]) -> None:
    assert current_labels(numbered(events), POSITIONS) is None


def test_an_undo_that_was_undone_withdraws_nothing() -> None:
    assert withdrawn_by(numbered([("王", "好评"), 1])) == {1: 2}
    assert withdrawn_by(numbered([("王", "好评"), 1, 2])) == {2: 3}
    assert withdrawn_by(numbered([("王", "好评"), 1, 2, 3])) == {1: 2, 3: 4}
