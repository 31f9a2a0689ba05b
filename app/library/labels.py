"""The current label of a sample: what follows from everything that was ever said about it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from app.store.samples import LabelEvent


class CurrentLabels(NamedTuple):
    """`conflict`: imports disagree and no person has decided."""

    labels: tuple[str, ...]
    conflict: bool


def current_labels(events: Sequence[LabelEvent], positions: Mapping[str, int]) -> CurrentLabels | None:
    """A person's newest word, else what the imports say; where they differ, what comes first in the taxonomy.

    `events`: oldest first. `positions`: label → position in the taxonomy. Proposals of rules and models do not
    count; with nothing else there is no current label.
    """
    spoken = [event.labels for event in events if event.actor_kind == "person"]
    if spoken:
        return CurrentLabels(spoken[-1], conflict=False)
    imported = {event.labels for event in events if event.actor_kind == "import"}
    if not imported:
        return None
    first = min(imported, key=lambda labels: sorted(positions[label] for label in labels))
    return CurrentLabels(first, conflict=len(imported) > 1)
