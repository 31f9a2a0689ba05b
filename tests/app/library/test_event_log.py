"""The event log under any order of imports, labels and undos: append-only, complete, and its current labels lawful."""

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
from app.store.tables import label_events, libraries
from model.errors import BadInput

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
    """The event log as a plain list, and its laws as the definitions read, however slow."""

    def __init__(self) -> None:
        self.log: list[Said] = []

    def holds(self, said: Said) -> bool:
        """Nobody undid it, or every undo of it was undone."""
        return not any(self.holds(undo) for undo in self.log if undo.undoes == said.number)

    def current(self, text: str) -> tuple[str, bool] | None:
        """The label of a text, and whether it is in conflict."""
        valid = [said for said in self.log if said.text == text and said.label and self.holds(said)]
        newest = {said.actor: said.label for said in valid if said.actor != "import"}
        if newest:
            last = [said.label for said in valid if said.actor != "import"][-1]
            return str(last), len(set(newest.values())) > 1
        imported = {said.label for said in valid}
        return (min(map(str, imported), key=LABELS.index), len(imported) > 1) if imported else None


class EventLog(RuleBasedStateMachine):
    """A library of its own for each run, in one database."""

    def __init__(self, workshop: Workshop, numbers: Iterator[int]) -> None:
        super().__init__()
        self.workshop, self.library, self.numbers = workshop, f"log{next(numbers)}", numbers
        self.reference = Reference()
        self.rows: list[tuple[object, ...]] = []
        rows = "".join(f"{text}\n" for text in TEXTS)
        self.load("text\n" + rows, label=None)

    def load(self, content: str, library: str | None = None, **given: object) -> None:
        path = self.workshop.write(f"{next(self.numbers)}.csv", content)
        self.workshop.load(path, library=library or self.library, names=LABELS, **given)

    @rule(text=texts, label=labels)
    def import_label(self, text: str, label: str) -> None:
        self.load(f"text,label\n{text},{label}\n")
        log = self.reference.log
        if not any((said.text, said.actor, said.label) == (text, "import", label) for said in log):
            log.append(Said(self.stored()[-1].id, text, "import", label))

    @rule(text=texts, label=labels, by=persons)
    def say(self, text: str, label: str, by: str) -> None:
        spoken = label_sample(
            self.workshop.engine, library=self.library, sample=text, is_text=True, labels=[label], by=by
        )
        self.reference.log.append(Said(spoken.event, text, by, label))

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

    def teardown(self) -> None:
        """The same labels by the shortest way, one import of each, are the same snapshot."""
        current = {text: found[0] for text in TEXTS if (found := self.reference.current(text))}
        if current:
            rows = "".join(f"{text},{label}\n" for text, label in current.items())
            self.load("text,label\n" + rows, library=f"{self.library}-plain")
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


def test_the_event_log_keeps_its_laws(workshop: Workshop) -> None:
    numbers = count()
    profile = limits(
        max_examples=10,
        stateful_step_count=20,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(lambda: EventLog(workshop, numbers), settings=profile)
