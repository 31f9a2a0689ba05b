"""Verifying, rebuilding and rolling back, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.rolling import RolledBack
from app.library.verifying import Problem

MOST_PROBLEMS = 1000  # told whole; all of them are counted


class ProblemShape(TypedDict):
    """Something that must not be, and where it was found."""

    place: str
    what: str


class VerifiedShape(TypedDict):
    """`problems`: how many there are; `first_problems`: the first `MOST_PROBLEMS` of them."""

    clean: bool
    problems: int
    first_problems: list[ProblemShape]


class ReindexedShape(TypedDict):
    """A library whose catalogue was made anew, of so many samples."""

    library: str
    samples: int


class RolledBackShape(TypedDict):
    """A rollback, or the undoing of one, before or after it is done.

    events: how many do not count any more, or do again; samples: those that they are about.
    """

    applied: bool
    undo: bool
    snapshot: str
    events: int
    samples: int
    classes_gone: list[str]
    classes_back: list[str]


def verified_shape(count: int, first: list[Problem]) -> VerifiedShape:
    """What a check has found; `count`: problems in all."""
    shown: list[ProblemShape] = [{"place": problem.place, "what": problem.what} for problem in first]
    return {"clean": not count, "problems": count, "first_problems": shown[:MOST_PROBLEMS]}


def rolled_back_shape(done: RolledBack, *, undo: bool, applied: bool) -> RolledBackShape:
    """A rollback, before or after it is done."""
    before, after = done.before.labels, done.after.labels
    return {
        "applied": applied,
        "undo": undo,
        "snapshot": done.snapshot,
        "events": done.events,
        "samples": done.samples,
        "classes_gone": [label for label in before if label not in after],
        "classes_back": [label for label in after if label not in before],
    }
