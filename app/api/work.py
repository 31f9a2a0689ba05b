"""Work that takes long: only so much of it at a time, so that short requests keep their threads and connections."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Depends, Request

from model.errors import Overloaded

# Each holds a thread, and one or two of the database's 15 connections.
IMPORTS = 3
TASKS = 3
EXPORTS = 4
RETRY_SECONDS = 15.0  # long work takes its time
# A word about a sample takes milliseconds, unless an import has the library: then a few wait, and others are told to.
WORDS = 4
WORD_SECONDS = 2.0


class Slots:
    """`most` at a time, of which one user may take all but one; whoever comes beyond that is told to come back."""

    def __init__(self, what: str, most: int) -> None:
        self._what, self._most = what, most
        self._taken: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def one(self, user: str) -> Iterator[None]:
        """Hold one during the block.

        Raises:
            Overloaded: there is none left, for this user or for all.
        """
        with self._lock:
            if self._taken.total() >= self._most or self._taken[user] >= self._most - 1:
                raise Overloaded(
                    f"{self._taken[user]} {self._what} of yours are under way, of {self._taken.total()} in all, and no "
                    "more are taken on; try again later",
                    retry_after=RETRY_SECONDS,
                )
            self._taken[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._taken[user] -= 1


class Turns:
    """`most` at a time; whoever comes beyond that waits for a turn, but not for long."""

    def __init__(self, what: str, most: int, *, patience: float) -> None:
        self._what, self._patience = what, patience  # seconds
        self._free = threading.BoundedSemaphore(most)

    @contextmanager
    def one(self) -> Iterator[None]:
        """Hold one during the block.

        Raises:
            Overloaded: none came free in time.
        """
        if not self._free.acquire(timeout=self._patience):
            raise Overloaded(
                f"{self._what} wait for others who write to the library, maybe an import; try again later",
                retry_after=RETRY_SECONDS,
            )
        try:
            yield
        finally:
            self._free.release()


class LongWork:
    """What of it one server does at a time. `tasks`: freezing, comparing, verifying, rebuilding, rolling back, changing
    a taxonomy. `words`: about samples.
    """

    def __init__(self) -> None:
        self.words = Turns("words about samples", WORDS, patience=WORD_SECONDS)
        self.imports = Slots("imports", IMPORTS)
        self.exports = Slots("exports", EXPORTS)
        self.tasks = Slots("long tasks", TASKS)


def _long_work(request: Request) -> LongWork:
    work: LongWork = request.app.state.long_work
    return work


Work = Annotated[LongWork, Depends(_long_work)]
