"""Samples, as commands print them and HTTP answers them."""

from typing_extensions import TypedDict

from app.library.browsing import SamplePage
from app.store.listing import ListedSample


class SampleShape(TypedDict):
    """A sample of a list. number: grows in the order of arrival. labels: those of now; None without any.

    source, line: the file that it came from.
    """

    id: str
    number: int
    text: str
    pair: str | None
    labels: list[str] | None
    conflict: bool
    source: str
    line: int


class SamplesShape(TypedDict):
    """Some of the samples that were asked for, in order.

    total: how many there are in all, at least so many unless `total_is_exact`; None where `after` was given.
    next: the `after` of those that follow; None where none do.
    """

    total: int | None
    total_is_exact: bool
    next: str | None
    samples: list[SampleShape]


def samples_shape(page: SamplePage) -> SamplesShape:
    """A page of samples."""
    return {
        "total": page.total,
        "total_is_exact": page.total_is_exact,
        "next": page.next,
        "samples": [_sample(sample) for sample in page.samples],
    }


def _sample(sample: ListedSample) -> SampleShape:
    return {
        "id": sample.id,
        "number": sample.number,
        "text": sample.text,
        "pair": sample.pair,
        "labels": list(sample.labels) or None,
        "conflict": sample.conflict,
        "source": sample.source,
        "line": sample.line,
    }
