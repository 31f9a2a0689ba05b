"""The current label of a sample: what follows from everything that was ever said about it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.store.samples import LabelEvent


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
    spoken = words_of_persons(events)
    if spoken:
        newest = max(spoken.values())  # events compare by their numbers
        return CurrentLabels(newest.labels, any(word.labels != newest.labels for word in spoken.values()), newest.id)
    imported = [event for event in standing(events) if event.actor_kind == "import"]
    if not imported:
        return None
    first = min(imported, key=lambda event: sorted(positions[label] for label in event.labels))
    return CurrentLabels(first.labels, any(event.labels != first.labels for event in imported), first.id)


def words_of_persons(events: Sequence[LabelEvent]) -> dict[str, LabelEvent]:
    """Each person's newest word, by name: what a person said before, the person has taken back.

    `events`: oldest first.
    """
    return {event.actor: event for event in standing(events) if event.actor_kind == "person"}


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
