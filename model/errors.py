"""Every error that wenlei raises on purpose.

A message names the bad value, the place and the way out. The command line prints it and exits with 2;
`app/errors.py` maps each class to an HTTP status.
"""


class WenleiError(Exception):
    """The root: whoever catches it can show its message to a person."""


class BadInput(WenleiError):
    """Something a caller gave can't be used: a file, a column, an option, a text."""


class BadText(BadInput):
    """A text is empty, too long, or not text."""


class UnknownLabel(BadInput):
    """A label is not in the taxonomy."""


class BadTaxonomy(BadInput):
    """A taxonomy contradicts itself or the library's task."""


class UnknownLibrary(BadInput):
    """There is no library of that name."""


class UnknownSample(BadInput):
    """A library has no sample of that id or text, or several whose ids begin so."""


class UnknownEvent(BadInput):
    """There is no label event of that number."""


class UnknownSweep(BadInput):
    """A library has no sweep of that number."""


class UnknownReview(BadInput):
    """There is no review item of that number, or none that is open."""


class ItemTaken(WenleiError):
    """Somebody else has a review item, or the time that it was claimed for is over."""


class DatabaseUnavailable(WenleiError):
    """The database can't be reached, is locked or full, or was written by a newer wenlei."""


class BadSnapshot(WenleiError):
    """A snapshot is missing, incomplete, or not what its name says."""


class BadRun(WenleiError):
    """A run folder is missing, incomplete, or was made from something else."""


class BadBundle(WenleiError):
    """A bundle is missing, incomplete, or a byte of it has changed."""


class BadLogits(WenleiError):
    """Logits have the wrong width or hold a value that is not a number."""


class ParityFailed(WenleiError):
    """An exported model does not answer as the trained one does."""


class RuntimeUnavailable(WenleiError):
    """The inference engine or the device that was asked for is not there."""


class MissingExtra(WenleiError):
    """An optional part of wenlei is not installed; the message says how to install it."""


class UnknownModel(WenleiError):
    """A request names a model that is not being served."""


class Overloaded(WenleiError):
    """The queue is full; `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after
