"""Label events, and what they come to, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.agreement import Agreement
from app.library.disputes import Dispute, DisputePage
from app.library.history import History
from app.library.labelling import Spoken
from app.store.events import RecordedEvent


class EventShape(TypedDict):
    """What somebody said about a sample, or took back; then `undoes` has the event's number, and nothing is said.

    at: ISO 8601. kind: import, person, rule or model. labels: in the terms of today's taxonomy; said: in those of their
    time. confidence: 0 to 1. source, line: the file that it came from.
    """

    event: int
    at: str
    kind: str
    who: str
    labels: list[str] | None
    said: list[str] | None
    undoes: int | None
    confidence: float | None
    source: str | None
    line: int | None
    note: str | None


class HistoryEventShape(EventShape):
    """An event among the others of its sample. current: the label comes from it."""

    undone_by: int | None
    rolled_back: bool
    current: bool


class HistoryShape(TypedDict):
    """A sample with its events, oldest first, and its labels now; None without any."""

    sample: str
    text: str
    pair: str | None
    labels: list[str] | None
    conflict: bool
    events: list[HistoryEventShape]


class SpokenShape(TypedDict):
    """The event that was written, and what the sample's labels are now."""

    event: int
    library: str
    sample: str
    text: str
    labels: list[str] | None
    conflict: bool


class UndoneShape(SpokenShape):
    """An event that withdraws another one."""

    undoes: int


class DisputeShape(TypedDict):
    """A sample on which persons or imports disagree, its labels for the time being, and what each says."""

    sample: str
    text: str
    pair: str | None
    labels: list[str]
    candidates: list[EventShape]


class DisputesShape(TypedDict):
    """Some of the samples in conflict. total: how many there are."""

    total: int
    conflicts: list[DisputeShape]


class PairAgreementShape(TypedDict):
    """How far two persons agree; `kappa` is None where it is undefined."""

    persons: list[str]
    samples: int
    observed: float
    kappa: float | None


class AgreementShape(TypedDict):
    """How far all persons agree. persons: → how many of the samples each labelled. alpha: None where undefined."""

    samples: int
    persons: dict[str, int]
    observed: float
    alpha: float | None
    pairs: list[PairAgreementShape]


def event_shape(recorded: RecordedEvent) -> EventShape:
    """One event."""
    event = recorded.event
    return {
        "event": event.id,
        "at": event.at,
        "kind": event.actor_kind,
        "who": event.actor,
        "labels": None if event.undoes else list(event.labels),
        "said": None if event.undoes else list(recorded.said),
        "undoes": event.undoes,
        "confidence": recorded.confidence,
        "source": recorded.source,
        "line": recorded.line,
        "note": recorded.note,
    }


def history_shape(found: History) -> HistoryShape:
    """A sample with everything that was said about it."""
    current = found.current
    return {
        "sample": found.sample.id,
        "text": found.sample.text,
        "pair": found.sample.pair,
        "labels": list(current.labels) if current else None,
        "conflict": bool(current and current.conflict),
        "events": [
            {
                **event_shape(recorded),
                "undone_by": found.undone_by.get(recorded.event.id),
                "rolled_back": recorded.rolled_back,
                "current": current is not None and recorded.event.id == current.event,
            }
            for recorded in found.sample.recorded
        ],
    }


def spoken_shape(spoken: Spoken) -> SpokenShape:
    """What became of a sample by a person's word."""
    current = spoken.current
    return {
        "event": spoken.event,
        "library": spoken.library,
        "sample": spoken.sample,
        "text": spoken.text,
        "labels": list(current.labels) if current else None,
        "conflict": bool(current and current.conflict),
    }


def undone_shape(spoken: Spoken, undoes: int) -> UndoneShape:
    """What became of a sample when event `undoes` was withdrawn."""
    return {**spoken_shape(spoken), "undoes": undoes}


def disputes_shape(page: DisputePage) -> DisputesShape:
    """A page of disputes."""
    return {"total": page.total, "conflicts": [_dispute(dispute) for dispute in page.disputes]}


def agreement_shape(measured: Agreement) -> AgreementShape:
    """How far persons agree."""
    return {
        "samples": measured.samples,
        "persons": measured.persons,
        "observed": measured.observed,
        "alpha": measured.alpha,
        "pairs": [
            {"persons": list(pair.persons), "samples": pair.samples, "observed": pair.observed, "kappa": pair.kappa}
            for pair in measured.pairs
        ],
    }


def _dispute(dispute: Dispute) -> DisputeShape:
    return {
        "sample": dispute.sample.id,
        "text": dispute.sample.text,
        "pair": dispute.sample.pair,
        "labels": list(dispute.current.labels),
        "candidates": [event_shape(recorded) for recorded in dispute.candidates],
    }
