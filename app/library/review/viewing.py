"""What a person sees of a review item: the text, its labels now, what is proposed in today's terms, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from app.library.labels import CurrentLabels, current_labels, label_positions, standing
from app.store.events import SampleEvents, events_of_samples
from app.store.libraries import Library, LibraryDefinition
from app.store.reviews import ReviewItem
from app.store.taxonomies import ClassDetails, Translation, load_translation


@dataclass(frozen=True, slots=True)
class Review:
    """An item with its sample. proposed: in the terms of today's taxonomy; None where nothing of it is left.

    persons: how many have to decide the same, as far as the labels now and the proposed ones tell. settled: a person
    has labelled it since it was asked for. changed: the labels are not those that they were then, or when it was
    claimed. newest_event: the newest that counts about the sample, 0 before the first.
    """

    item: ReviewItem
    text: str
    pair: str | None
    current: CurrentLabels | None
    proposed: tuple[str, ...] | None
    persons: int
    settled: bool
    changed: bool
    newest_event: int

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels now; maybe none."""
        return self.current.labels if self.current else ()


def view_reviews(
    connection: sa.Connection, library: Library, items: Sequence[ReviewItem], *, translation: Translation | None = None
) -> list[Review]:
    """Some items of the library as people see them, in the order given. translation: that of the library, if known."""
    translate = translation or load_translation(connection, library.id)
    ids = [item.sample_id for item in items]
    found = events_of_samples(connection, library.id, ids, translate=translate)
    samples = {sample.id: sample for sample in found}
    return [_view(library.definition, item, samples[item.sample_id], translate) for item in items]


def persons_needed(definition: LibraryDefinition, *given: Sequence[str]) -> int:
    """How many persons have to decide the same where any of these labels are at stake: two for a class, or one below a
    branch, that asks for two.
    """
    return max((_reviewers(definition, label) for labels in given for label in labels), default=1)


def iso(moment: datetime | None) -> str:
    """A moment, or now, as the database holds it: ISO 8601 in UTC, to the second."""
    return (moment or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds")


def _view(definition: LibraryDefinition, item: ReviewItem, sample: SampleEvents, translate: Translation) -> Review:
    positions = label_positions(definition.taxonomy)
    current = current_labels(sample.events, positions)
    then = current_labels([event for event in sample.events if event.id <= item.last_event], positions)
    proposed = translate(item.proposed, item.taxonomy_version) if item.proposed is not None else ()
    said = [event for event in standing(sample.events) if event.actor_kind == "person"]
    return Review(
        item=item,
        text=sample.text,
        pair=sample.pair,
        current=current,
        proposed=proposed or None,
        persons=persons_needed(definition, proposed, current.labels if current else ()),
        settled=any(event.id > item.last_event for event in said),
        changed=(then and then.labels) != (current and current.labels),
        newest_event=max((event.id for event in sample.events), default=0),
    )


def _reviewers(definition: LibraryDefinition, label: str) -> int:
    levels = definition.taxonomy.levels(label)
    separator = definition.taxonomy.level_sep or ""
    branches = (separator.join(levels[:depth]) for depth in range(1, len(levels) + 1))
    return max(definition.classes.get(branch, ClassDetails()).reviewers for branch in branches)
