"""The current label of a sample: what follows from everything that was ever said about it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.store.events import SampleEvents
from app.store.samples import LabelEvent
from model.types import Taxonomy


class CurrentLabels(NamedTuple):
    """`event`: the one that says so. `conflict`: persons disagree, or imports do and no person has decided."""

    labels: tuple[str, ...]
    conflict: bool
    event: int


def current_labels(events: Sequence[LabelEvent], positions: Mapping[str, int]) -> CurrentLabels | None:
    """The newest word of a person, else what the last sweep decided, else what the imports say; where they differ, what
    comes first in the taxonomy.

    `events`: oldest first. `positions`: label → position in the taxonomy. Events that were undone do not count, nor
    do proposals of rules and models; with nothing else there is no current label. Nor is there one where the newest
    word names a class that is gone from the taxonomy: what to say instead is for a person to decide; or where it says
    that the sample belongs to none of the classes, or a sweep took the label away.
    """
    words = candidates(events)
    if not words:
        return None
    if len(words) == 1:  # most samples by far: a snapshot need not compare and sort for them
        chosen = words[0]
    elif words[0].actor_kind == "person":
        chosen = max(words, key=_said)
    else:
        chosen = min(words, key=lambda word: sorted(positions[label] for label in word.labels))
    if not chosen.labels:
        return None
    return CurrentLabels(chosen.labels, any(word.labels != chosen.labels for word in words), chosen.id)


def label_positions(taxonomy: Taxonomy) -> dict[str, int]:
    """The position of every label, by which `current_labels` decides between imports."""
    return {label: position for position, label in enumerate(taxonomy.labels)}


def candidates(events: Sequence[LabelEvent]) -> list[LabelEvent]:
    """The events that the current label is chosen from: each person's newest word, else all that the imports say.

    `events`: oldest first. What a person said before, the person has taken back; the time that it was said at counts,
    so that an old annotation, imported late, does not override what the person has said since. A sweep decides about
    the imports before it; those that come later count again, and against it.
    """
    valid = standing(events)
    words: dict[str, LabelEvent] = {}
    for event in valid:
        if event.actor_kind == "person" and (event.actor not in words or _said(event) >= _said(words[event.actor])):
            words[event.actor] = event
    if words:
        return list(words.values())
    decided = next((event for event in reversed(valid) if event.sweep is not None), None)
    imports = [event for event in valid if event.actor_kind == "import" and event.labels]
    if decided is None:
        return imports
    return [event for event in imports if event.id > decided.id] or [decided]


def fits_none(sample: SampleEvents) -> bool:
    """Whether the newest word of a person says that the sample belongs to none of the classes."""
    words = [word for word in candidates(sample.events) if word.actor_kind == "person"]
    newest = max(words, key=_said, default=None)
    return any(recorded.event is newest and not recorded.said for recorded in sample.recorded)


def _said(event: LabelEvent) -> tuple[str, int]:
    """When it was said; of what was said at the same time, the later event is the newer."""
    return event.at, event.id


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
