"""Sweeps, as commands print them and HTTP answers them."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from app.library.sweeping import Swept
from app.store.sweeps import Sweep


class SweepShape(TypedDict):
    """What a machine decided in one go. kind: drop, relabel, gate or undo; `undoes` is then the sweep's number.

    actor: the machine. by: who had it done. asked: with which settings. outcome: what came of it.
    undone_by: the number of the sweep that withdrew it last, None where nobody did.
    """

    sweep: int
    kind: str
    actor: str
    by: str
    at: str
    asked: Mapping[str, Any]
    outcome: Mapping[str, Any]
    undoes: int | None
    undone_by: int | None
    note: str | None


class SweepList(TypedDict):
    """All sweeps of a library, oldest first."""

    library: str
    sweeps: list[SweepShape]


class UndoneSweepShape(TypedDict):
    """A sweep that was withdrawn. sweep: the number of the undoing. changed: samples that it concerns."""

    sweep: int
    undoes: int
    changed: int


def sweep_list(library: str, found: Sequence[Sweep]) -> SweepList:
    """All sweeps of `library`."""
    undone_by = {sweep.undoes: sweep.id for sweep in found if sweep.undoes is not None}
    return {"library": library, "sweeps": [_shape(sweep, undone_by.get(sweep.id)) for sweep in found]}


def undone_sweep_shape(swept: Swept, undone: int) -> UndoneSweepShape:
    """The undoing of sweep number `undone`."""
    return {"sweep": swept.sweep, "undoes": undone, "changed": swept.changed}


def _shape(sweep: Sweep, undone_by: int | None) -> SweepShape:
    return {
        "sweep": sweep.id,
        "kind": sweep.kind,
        "actor": sweep.actor,
        "by": sweep.by,
        "at": sweep.created_at,
        "asked": sweep.asked,
        "outcome": sweep.outcome,
        "undoes": sweep.undoes,
        "undone_by": undone_by,
        "note": sweep.note,
    }
