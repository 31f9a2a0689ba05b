"""The history of a sample: every event, what became of it, and the one that its current label comes from."""

from dataclasses import dataclass
from functools import cached_property

import sqlalchemy as sa

from app.library.finding import find_sample
from app.library.labels import CurrentLabels, current_labels, label_positions, withdrawn_by
from app.store.database import connect, reading
from app.store.events import RecordedEvent, SampleEvents, events_of_sample
from app.store.libraries import get_library
from model.errors import BadInput


@dataclass(frozen=True)
class History:
    """A sample with its events, oldest first, and its label now, if it has one."""

    sample: SampleEvents
    current: CurrentLabels | None

    @cached_property
    def undone_by(self) -> dict[int, int]:
        """The numbers of the events that do not count any more → that of the undo that holds."""
        return withdrawn_by(self.sample.events)

    def blame(self) -> RecordedEvent:
        """The event that the current label comes from.

        Raises:
            BadInput: the sample has no label.
        """
        for recorded in self.sample.recorded:
            if self.current and recorded.event.id == self.current.event:
                return recorded
        raise BadInput(
            f"sample {self.sample.id} has no label: nobody gave it one, all was undone, or no class fits; "
            f"see wenlei library history {self.sample.id}"
        )


def history(engine: sa.Engine, *, library: str, sample: str, is_text: bool = False) -> History:
    """The history of a sample, found by its id, the beginning of its id, or its text.

    Raises:
        UnknownLibrary, UnknownSample: there is none.
    """
    with connect(engine) as connection, reading(connection):
        source = get_library(connection, library)
        found = events_of_sample(connection, source.id, find_sample(connection, source, sample, is_text=is_text))
    return History(found, current_labels(found.events, label_positions(source.definition.taxonomy)))
