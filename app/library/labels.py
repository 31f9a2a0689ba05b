"""The current label of a sample: what follows from everything that was ever said about it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.store.samples import LabelEvent
from model.types import Taxonomy


class CurrentLabels(NamedTuple):
    """`event`: the one that says so. `conflict`: persons disagree, or imports do and no person has decided."""

    labels: tuple[str, ...]
    conflict: bool
    event: int


def current_labels(events: Sequence[LabelEvent], positions: Mapping[str, int]) -> CurrentLabels | None:
    """The newest word of a person, else what the imports say; where they differ, what comes first in the taxonomy.

    `events`: oldest first. `positions`: label → position in the taxonomy. Events that were undone do not count, nor
    do proposals of rules and models; with nothing else there is no current label.
    """
    words = candidates(events)
    if not words:
        return None
    if len(words) == 1:  # most samples by far: a snapshot need not compare and sort for them
        return CurrentLabels(words[0].labels, conflict=False, event=words[0].id)
    if words[0].actor_kind == "person":
        chosen = max(words)  # events compare by their numbers
    else:
        chosen = min(words, key=lambda word: sorted(positions[label] for label in word.labels))
    return CurrentLabels(chosen.labels, any(word.labels != chosen.labels for word in words), chosen.id)


def label_positions(taxonomy: Taxonomy) -> dict[str, int]:
    """The position of every label, by which `current_labels` decides between imports."""
    return {label: position for position, label in enumerate(taxonomy.labels)}


def candidates(events: Sequence[LabelEvent]) -> list[LabelEvent]:
    """The events that the current label is chosen from: each person's newest word, else all that the imports say.

    `events`: oldest first. What a person said before, the person has taken back.
    """
    valid = standing(events)
    words = {event.actor: event for event in valid if event.actor_kind == "person"}
    return list(words.values()) or [event for event in valid if event.actor_kind == "import"]


def standing(events: Sequence[LabelEvent]) -> list[LabelEvent]:
    """The events that label the sample and were not undone. `events`: oldest first."""
    withdrawn = withdrawn_by(events)
    return [event for event in events if event.undoes is None and event.id not in withdrawn]


def withdrawn_by(events: Sequence[LabelEvent]) -> dict[int, int]:
    """The numbers of the events that were undone → that of the undo that holds. `events`: oldest first.

    An undo that was itself undone withdraws nothing. As it can only be undone by a later event, the newest come first.
    """
    withdrawn: dict[int, int] = {}
    for event in reversed(events):
        if event.undoes is not None and event.id not in withdrawn:
            withdrawn[event.undoes] = event.id
    return withdrawn
