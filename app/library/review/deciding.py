"""Decide review items: each decision is on record with its person, and becomes a label event when enough agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import sqlalchemy as sa

from app.library.labelling import Spoken, check_labels, person_name, remark_text, speak, withdraw
from app.library.labels import CurrentLabels, standing
from app.library.review.claiming import check_free, check_undecided, open_item
from app.library.review.queueing import Reason
from app.library.review.viewing import Review, iso, persons_needed, view_reviews
from app.store.database import connect, writing
from app.store.events import NO_LABELS, events_of_sample, lock_sample
from app.store.libraries import Library, get_library, share_library
from app.store.review_items import (
    ACCEPT,
    AGREED,
    CHANGE,
    DONE,
    NONE,
    SKIP,
    UNDO,
    Decision,
    close,
    let_go,
    newest_decisions,
    record_decision,
    reopen,
)
from app.store.reviews import ReviewItem, lock_queue, newest_event, read_item
from app.store.taxonomies import load_translation
from model.errors import BadInput, ItemTaken, UnknownReview
from model.files import canonical_json
from model.types import preview


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person did with an item, and what came of it.

    decided: the labels, empty where no class fits; None for a skip or an undo. event: the label event that was written,
    if any. waits: another person has to decide the same before a label changes. current: the labels of the sample now.
    """

    item: ReviewItem
    action: str
    decided: tuple[str, ...] | None
    event: int | None
    waits: bool
    current: CurrentLabels | None


def accept(engine: sa.Engine, item: int, *, by: str, note: str | None = None, now: datetime | None = None) -> Decided:
    """Decide what is proposed, or the label that the sample has where nothing is.

    Raises:
        As `change`; BadInput: nothing is proposed, and the sample has no label, or what was proposed is gone from the
        taxonomy. ItemTaken: nothing is proposed, and the
        label is another one than when the person claimed the item.
    """
    return _decide(engine, item, ACCEPT, None, by=by, note=note, now=now)


def change(
    engine: sa.Engine,
    item: int,
    labels: Sequence[str],
    *,
    by: str,
    note: str | None = None,
    now: datetime | None = None,
) -> Decided:
    """Decide other labels, by name, code or alias. now: the moment, for those who do not go by the clock.

    Raises:
        UnknownReview: there is no such item, or it is closed. ItemTaken: somebody else has it, or the person has not,
        or not any more. UnknownLabel: a label is not in the taxonomy. BadInput: there are none, or they can't stand
        together, or the person has decided it already. Nothing is written then.
    """
    return _decide(engine, item, CHANGE, labels, by=by, note=note, now=now)


def none_fits(
    engine: sa.Engine, item: int, *, by: str, note: str | None = None, now: datetime | None = None
) -> Decided:
    """Decide that the text belongs to none of the classes: the sample has no label then.

    Raises:
        As `change`.
    """
    return _decide(engine, item, NONE, None, by=by, note=note, now=now)


def skip(engine: sa.Engine, item: int, *, by: str, note: str | None = None, now: datetime | None = None) -> Decided:
    """Leave the item to others; the person is not given it again unless they ask for just this one.

    Raises:
        As `change`.
    """
    return _decide(engine, item, SKIP, None, by=by, note=note, now=now)


def undo_decision(engine: sa.Engine, item: int, *, by: str, note: str | None = None) -> Decided:
    """Take back what the person has done last with an item: its label event is undone, and it is open again.

    Raises:
        UnknownReview: there is no such item. BadInput: there is nothing of theirs to undo.
    """
    person, remark = person_name(by), remark_text(note)
    with connect(engine) as connection, writing(connection):
        into = _share(connection, item)
        lock_queue(connection, into.id)
        found = _item(connection, item)
        newest = newest_decisions(connection, item).get(person)
        if newest is None or newest.action == UNDO:
            raise BadInput(f"{person} has done nothing with review item {item} that could be undone")
        event = _withdraw(connection, into, found, newest, person, remark)
        record_decision(
            connection,
            item,
            person=person,
            action=UNDO,
            labels=None,
            version=into.version,
            event=event,
            at=iso(None),
            note=remark,
        )
        if found.state == DONE and newest.action != SKIP:
            reopen(connection, item, last_event=newest_event(connection))
        review = view_reviews(connection, into, [_item(connection, item)])[0]
    return Decided(review.item, UNDO, None, event, False, review.current)


def _decide(
    engine: sa.Engine,
    item: int,
    action: str,
    labels: Sequence[str] | None,
    *,
    by: str,
    note: str | None,
    now: datetime | None,
) -> Decided:
    person, remark, at = person_name(by), remark_text(note), iso(now)
    with connect(engine) as connection, writing(connection):
        into = _share(connection, item)
        found = open_item(connection, item)
        decisions = newest_decisions(connection, item)
        check_undecided(decisions, item, person)
        check_held(found, person, at=at)
        lock_sample(connection, into.id, found.sample_id)
        translate = load_translation(connection, into.id)
        review = view_reviews(connection, into, [found], translation=translate)[0]
        stand = _standing(connection, into, found.sample_id)
        others = {  # but for words of which nothing is left, or whose label event was undone by itself, or rolled back
            each: meant
            for name, each in decisions.items()
            if name != person
            and each.action not in (SKIP, UNDO)
            and (each.event_id is None or each.event_id in stand)
            and ((meant := translate(each.labels or NO_LABELS, each.taxonomy_version)) or each.labels == NO_LABELS)
        }
        chosen = _chosen(into, review, action, labels)
        word = _Word(into, review, person, action, chosen, remark, at)
        spoken = None if chosen is None else _settle(connection, word, chosen, others)
        word.record(connection, spoken.event if spoken else None)
        freed = replace(found, claimed_by=None, lease_until=None)
        if spoken is not None:
            close(connection, item, DONE, at=at)
            return Decided(
                replace(freed, state=DONE, closed_at=at), action, chosen, spoken.event, False, spoken.current
            )
        waits = chosen is not None
        reason = Reason.CONFLICT if waits and others else found.reason
        let_go(connection, item, reason=reason)
    return Decided(replace(freed, reason=reason), action, chosen, None, waits, review.current)


def check_held(item: ReviewItem, person: str, *, at: str) -> None:
    """The person has the item.

    Raises:
        ItemTaken: somebody else has, or nobody, or not any more.
    """
    check_free(item, person, at=at)
    if item.holder(at) == person:
        return
    ended = f"the lease of {person} ended at {item.lease_until}" if item.claimed_by == person else "you have to hold it"
    raise ItemTaken(f"review item {item.id}: {ended}; claim it again (wenlei review claim {item.id}) and decide then")


@dataclass(frozen=True, slots=True)
class _Word:
    """What a person is about to say of an item. chosen: the labels, None for a skip."""

    into: Library
    review: Review
    person: str
    action: str
    chosen: tuple[str, ...] | None
    note: str | None
    at: str

    def speak(self, connection: sa.Connection, chosen: tuple[str, ...]) -> Spoken:
        """Write it as a label event."""
        sample = self.review.item.sample_id
        return speak(connection, self.into, sample, labels=chosen, person=self.person, note=self.note)

    def record(self, connection: sa.Connection, event: int | None) -> None:
        """Append it to the decisions of the item."""
        record_decision(
            connection,
            self.review.item.id,
            person=self.person,
            action=self.action,
            labels=None if self.chosen is None else canonical_json(self.chosen).decode(),
            version=self.into.version,
            event=event,
            at=self.at,
            note=self.note,
        )


def _settle(
    connection: sa.Connection, word: _Word, chosen: tuple[str, ...], others: Mapping[Decision, tuple[str, ...]]
) -> Spoken | None:
    """The label event of the decision, or none as it waits for another person who decides the same.

    Where two persons agree, the word of the one before becomes an event, too, each with its own person. others: what
    other persons have decided and not taken back, in the terms of today.
    """
    into, review = word.into, word.review
    agreeing = [decision for decision, labels in others.items() if labels == chosen]
    stakes = (chosen, review.proposed or (), review.labels, *others.values())
    if 1 + len(agreeing) < persons_needed(into.definition, *stakes):
        return None
    for decision in agreeing:
        if decision.event_id is None:
            before = replace(word, person=decision.person, action=AGREED, note=decision.note)
            before.record(connection, before.speak(connection, chosen).event)
    return word.speak(connection, chosen)


def _chosen(into: Library, review: Review, action: str, labels: Sequence[str] | None) -> tuple[str, ...] | None:
    """The labels of a decision, None for a skip. labels: None accepts what there is."""
    if action in (SKIP, NONE):
        return None if action == SKIP else ()
    if labels is None and not (review.proposed or review.labels):
        raise BadInput(
            f"review item {review.item.id}: nothing is proposed, and the sample has no label; give one: "
            f"wenlei review change {review.item.id} LABEL, or where no class fits: wenlei review none {review.item.id}"
        )
    if labels is None and not review.proposed and review.item.proposed is not None:
        raise BadInput(
            f"review item {review.item.id}: what was proposed is gone from the taxonomy; give a label: "
            f"wenlei review change {review.item.id} LABEL"
        )
    if labels is None and not review.proposed and review.changed:  # nobody has said what they have not seen
        raise ItemTaken(
            f"review item {review.item.id}: its label became {preview(review.labels)} since you claimed it; look again "
            f"(wenlei review claim {review.item.id}) and decide then"
        )
    return tuple(check_labels(into.definition, (review.proposed or review.labels) if labels is None else labels))


def _withdraw(
    connection: sa.Connection, into: Library, item: ReviewItem, decision: Decision, person: str, note: str | None
) -> int | None:
    """Undo the event of a decision, unless somebody has done so before; the event that does."""
    if decision.event_id is None:
        return None
    lock_sample(connection, into.id, item.sample_id)
    if decision.event_id not in _standing(connection, into, item.sample_id):  # undone by itself, or rolled back
        return None
    return withdraw(connection, into, item.sample_id, decision.event_id, person=person, note=note).event


def _standing(connection: sa.Connection, into: Library, sample_id: str) -> set[int]:
    """The numbers of the events about the sample that count and were not undone."""
    return {event.id for event in standing(events_of_sample(connection, into.id, sample_id).events)}


def _share(connection: sa.Connection, item: int) -> Library:
    """The library of the item, while nobody has the whole of it locked."""
    library = _item(connection, item, lock=False).library
    share_library(connection, library)
    return get_library(connection, library)


def _item(connection: sa.Connection, item: int, *, lock: bool = True) -> ReviewItem:
    found = read_item(connection, item, lock=lock)
    if found is None:
        raise UnknownReview(f"there is no review item {item}; wenlei review list shows those that are open")
    return found
