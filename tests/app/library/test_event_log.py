"""The event log under any order of imports, labels, undos, changed classes and rollbacks.

It is append-only and complete, and current labels, catalogue and snapshots follow from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import sqlalchemy as sa
from hypothesis import HealthCheck
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from workshop import Workshop

from app.library.history import history
from app.library.labelling import label_sample, undo_event
from app.library.revisions import merge, rename
from app.library.rolling import roll_back
from app.library.taxonomies import Change, Undo, change_taxonomy, show_taxonomy
from app.library.verifying import verify
from app.store.tables import label_events, libraries
from model.errors import BadInput, UnknownSample

LABELS = ("差评", "中评", "好评")
TEXTS = ("房间很大", "早餐很凉", "隔音很差")
PERSONS = ("标注员甲", "标注员乙", "标注员丙")
texts, labels, persons = (st.sampled_from(values) for values in (TEXTS, LABELS, PERSONS))


@dataclass(frozen=True)
class Said:
    """What the reference model knows of an event."""

    number: int
    text: str
    actor: str
    label: str | None = None
    undoes: int | None = None


class Reference:
    """The event log as a plain list, and its laws as the definitions read, however slow.

    names: class → what it is called now. merged: class → the one that it has become. changes: how to undo each change.
    """

    def __init__(self) -> None:
        self.log: list[Said] = []
        self.names = {label: label for label in LABELS}
        self.merged: dict[str, str] = {}
        self.changes: list[tuple[str, str]] = []

    def meaning(self, label: str) -> str:
        """The class that `label`, by which it was called at first, is now."""
        while label in self.merged:
            label = self.merged[label]
        return label

    def standing(self) -> list[str]:
        """The classes that there are."""
        return [label for label in LABELS if label not in self.merged]

    def holds(self, said: Said) -> bool:
        """Nobody undid it, or every undo of it was undone."""
        return not any(self.holds(undo) for undo in self.log if undo.undoes == said.number)

    def current(self, text: str) -> tuple[str, bool] | None:
        """The label of a text, and whether it is in conflict."""
        valid = [
            (said.actor, self.meaning(said.label))
            for said in self.log
            if said.text == text and said.label and self.holds(said)
        ]
        newest = {actor: label for actor, label in valid if actor != "import"}
        if newest:
            last = [label for actor, label in valid if actor != "import"][-1]
            return self.names[last], len(set(newest.values())) > 1
        imported = {label for _, label in valid}
        return (self.names[min(imported, key=LABELS.index)], len(imported) > 1) if imported else None


class EventLog(RuleBasedStateMachine):
    """A library of its own for each run, in one database."""

    def __init__(self, workshop: Workshop, numbers: Iterator[int]) -> None:
        super().__init__()
        self.workshop, self.library, self.numbers = workshop, f"log{next(numbers)}", numbers
        self.reference = Reference()
        self.rows: list[tuple[object, ...]] = []
        rows = "".join(f"{text}\n" for text in TEXTS)
        self.load("text\n" + rows, label=None, names=LABELS)

    def load(self, content: str, library: str | None = None, **given: object) -> None:
        path = self.workshop.write(f"{next(self.numbers)}.csv", content)
        self.workshop.load(path, library=library or self.library, **given)

    def change(self, change: Change) -> None:
        change_taxonomy(self.workshop.engine, self.library, change, by="标注员甲")

    @rule(label=labels, data=st.data())
    def rename_class(self, label: str, data: st.DataObject) -> None:
        label, old = self.reference.meaning(label), self.reference.names[self.reference.meaning(label)]
        self.reference.names[label] = f"{label}{next(self.numbers)}"
        self.change(rename(old, self.reference.names[label]))
        self.reference.changes.append((label, old))

    @precondition(lambda self: len(self.reference.standing()) > 1)
    @rule(data=st.data())
    def merge_classes(self, data: st.DataObject) -> None:
        gone, kept = data.draw(st.permutations(self.reference.standing()))[:2]
        self.change(merge([self.reference.names[gone]], into=self.reference.names[kept]))
        self.reference.merged[gone] = kept
        self.reference.changes.append((gone, ""))

    @precondition(lambda self: self.reference.changes)
    @rule()
    def undo_change(self) -> None:
        self.change(Undo())
        label, old = self.reference.changes.pop()
        if old:
            self.reference.names[label] = old
        else:
            del self.reference.merged[label]

    @rule(text=texts, label=labels)
    def import_label(self, text: str, label: str) -> None:
        self.load(f"text,label\n{text},{label}\n")
        log, meaning = self.reference.log, self.reference.meaning
        given = (text, "import", meaning(label))
        if not any(said.label and (said.text, said.actor, meaning(said.label)) == given for said in log):
            log.append(Said(self.stored()[-1].id, text, "import", meaning(label)))

    @rule(text=texts, label=labels, by=persons)
    def say(self, text: str, label: str, by: str) -> None:
        spoken = label_sample(
            self.workshop.engine, library=self.library, sample=text, is_text=True, labels=[label], by=by
        )
        self.reference.log.append(Said(spoken.event, text, by, self.reference.meaning(label)))

    @precondition(lambda self: self.reference.log)
    @rule(data=st.data(), by=persons)
    def undo(self, data: st.DataObject, by: str) -> None:
        said = data.draw(st.sampled_from(self.reference.log))
        if self.reference.holds(said):
            spoken = undo_event(self.workshop.engine, said.number, by=by)
            self.reference.log.append(Said(spoken.event, said.text, by, undoes=said.number))
            return
        try:
            undo_event(self.workshop.engine, said.number, by=by)
        except BadInput:
            return
        raise AssertionError(f"event {said.number} was undone twice")

    @invariant()
    def nothing_was_changed_and_everything_is_there(self) -> None:
        stored = [tuple(row) for row in self.stored()]
        assert stored[: len(self.rows)] == self.rows
        assert [row[0] for row in stored] == [said.number for said in self.reference.log]
        self.rows = stored

    @invariant()
    def current_labels_and_histories_are_those_of_the_reference(self) -> None:
        for text in TEXTS:
            found = history(self.workshop.engine, library=self.library, sample=text, is_text=True)
            told = [(said.event.id, said.event.undoes) for said in found.sample.recorded]
            assert told == [(said.number, said.undoes) for said in self.reference.log if said.text == text]
            current = found.current and (found.current.labels[0], found.current.conflict)
            assert current == self.reference.current(text)

    @invariant()
    def the_catalogue_says_the_same(self) -> None:
        assert list(verify(self.workshop.engine, library=self.library)) == []

    def teardown(self) -> None:
        """The same labels by the shortest way, one import of each, are the same snapshot."""
        current = {text: found[0] for text in TEXTS if (found := self.reference.current(text))}
        if current:
            rows = "".join(f"{text},{label}\n" for text, label in current.items())
            names = tuple(self.reference.names[label] for label in self.reference.standing())
            self.load("text,label\n" + rows, library=f"{self.library}-plain", names=names)
            plain, lived = (self.workshop.freeze(name) for name in (f"{self.library}-plain", self.library))
            assert plain.snapshot.hash == lived.snapshot.hash
            assert lived.conflicts == len([text for text in TEXTS if (self.reference.current(text) or ("", False))[1]])

    def stored(self) -> list[sa.Row]:
        mine = (
            sa.select(label_events)
            .join(libraries, libraries.c.id == label_events.c.library_id)
            .where(libraries.c.name == self.library)
            .order_by(label_events.c.id)
        )
        with self.workshop.engine.connect() as connection:
            return list(connection.execute(mine))


class Rollbacks(RuleBasedStateMachine):
    """Snapshots are the only reference: rolled back to one, a library freezes to it again."""

    def __init__(self, workshop: Workshop, numbers: Iterator[int]) -> None:
        super().__init__()
        self.workshop, self.library, self.numbers = workshop, f"rolled{next(numbers)}", numbers
        self.snapshots: list[str] = []
        self.before: list[str] = []  # the snapshot before each rollback that stands, if nothing was done since
        self.import_label(TEXTS[0], LABELS[0])
        self.freeze()

    def hash(self) -> str:
        return self.workshop.freeze(self.library).snapshot.hash

    def done(self) -> None:
        """Something else was done: undoing an earlier rollback does not lead straight back any more."""
        self.before = []

    @rule(text=texts, label=labels)
    def import_label(self, text: str, label: str) -> None:
        path = self.workshop.write(f"{next(self.numbers)}.csv", f"text,label\n{text},{label}\n")
        self.workshop.load(path, library=self.library)
        self.done()

    @rule(text=texts, by=persons, data=st.data())
    def say(self, text: str, by: str, data: st.DataObject) -> None:
        names = show_taxonomy(self.workshop.engine, self.library)[1]
        given = {"library": self.library, "sample": text, "is_text": True, "by": by}
        try:
            label_sample(self.workshop.engine, labels=[data.draw(st.sampled_from(list(names)))], **given)
        except UnknownSample:
            return
        self.done()

    @rule(data=st.data())
    def rename_class(self, data: st.DataObject) -> None:
        names = list(show_taxonomy(self.workshop.engine, self.library)[1])
        label = data.draw(st.sampled_from(names))
        change_taxonomy(
            self.workshop.engine, self.library, rename(label, f"{label[:2]}{next(self.numbers)}"), by="标注员甲"
        )
        self.done()

    @rule(data=st.data())
    def merge_classes(self, data: st.DataObject) -> None:
        names = list(show_taxonomy(self.workshop.engine, self.library)[1])
        if len(names) > 1:
            gone, kept = data.draw(st.permutations(names))[:2]
            change_taxonomy(self.workshop.engine, self.library, merge([gone], into=kept), by="标注员甲")
            self.done()

    @rule()
    def freeze(self) -> None:
        self.snapshots.append(self.hash())

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        wanted, lived = data.draw(st.sampled_from(self.snapshots)), self.hash()
        try:
            roll_back(self.workshop.engine, self.library, wanted, by="标注员甲")
        except BadInput:  # it is like that already
            assert lived == wanted
            return
        assert self.hash() == wanted
        self.before.append(lived)

    @precondition(lambda self: self.before)
    @rule()
    def undo_rollback(self) -> None:
        roll_back(self.workshop.engine, self.library, None, by="标注员甲")
        assert self.hash() == self.before.pop()

    @invariant()
    def everything_agrees(self) -> None:
        assert list(verify(self.workshop.engine, library=self.library)) == []


def profile(examples: int) -> limits:
    return limits(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def test_the_event_log_keeps_its_laws(workshop: Workshop) -> None:
    numbers = count()
    run_state_machine_as_test(lambda: EventLog(workshop, numbers), settings=profile(5))


def test_rollbacks_lead_to_the_snapshots_that_were_frozen_and_back(workshop: Workshop) -> None:
    numbers = count()
    run_state_machine_as_test(lambda: Rollbacks(workshop, numbers), settings=profile(4))
