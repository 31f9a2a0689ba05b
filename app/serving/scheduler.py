"""The queue in front of a classifier: many callers on the event loop, a few threads that run the model.

A free worker takes the oldest text that waits, together with others of like length, as long as the engine is
busy anyway; an idle engine runs a text at once. Whoever does not fit into the queue is told so at once.
"""

import asyncio
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from model.errors import BadInput, Overloaded, WenleiError
from model.runtime.base import Classifier
from model.tokenization.base import Encoded
from model.types import FloatArray, Prediction, Text

log = logging.getLogger(__name__)

SMOOTHING = 0.2  # weight of the newest batch in the measured speed
LONGEST_WAIT = 60.0  # seconds; nobody is told to come back later than that


@dataclass(slots=True, eq=False)
class _Request:
    """Texts that came together. `held`: places in the queue not given back yet. `over`: failed or given up."""

    texts: Sequence[Text]
    top_k: int
    answer: asyncio.Future[list[Prediction]]
    held: int
    encoded: list[Encoded] = field(default_factory=list)
    logits: list[FloatArray] = field(default_factory=list)
    over: bool = False


class _Waiting(NamedTuple):
    request: _Request
    row: int
    length: int


class Scheduler:
    """Starts its threads at once. `workers`: batches that run at a time. `queue_size`: texts that may be under way.

    `batch_tokens`: padded tokens of a batch. `on_batch` is told the number of texts of each batch that ran.
    """

    def __init__(
        self,
        classifier: Classifier,
        *,
        workers: int,
        queue_size: int,
        batch_tokens: int,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self.classifier = classifier
        self._queue_size = queue_size
        self._batch_tokens = batch_tokens
        self._on_batch = on_batch
        self._changed = threading.Condition()  # guards everything below
        self._arrived: deque[_Request] = deque()
        self._waiting: list[_Waiting] = []  # encoded texts, oldest first
        self._held = 0
        self._idle = 0
        self._closing = False
        self._texts_per_second = 0.0  # of one worker
        self._threads = [
            threading.Thread(target=self._work, name=f"{classifier.name}-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def depth(self) -> int:
        """Texts that wait or run."""
        return self._held

    def submit(self, texts: Sequence[Text], *, top_k: int = 1) -> asyncio.Future[list[Prediction]]:
        """Queue `texts`; the future holds one prediction each, in order. Cancel it to give their places back.

        Raises:
            Overloaded: the queue has no room for them now.
            BadInput: it never will have, or there are none.
        """
        if not 0 < len(texts) <= self._queue_size:
            raise BadInput(f"{len(texts)} texts in one request; send 1 to {self._queue_size}")
        answer: asyncio.Future[list[Prediction]] = asyncio.get_running_loop().create_future()
        request = _Request(texts, top_k, answer, held=len(texts))
        with self._changed:
            if self._closing:
                raise Overloaded("the server is shutting down; ask another one", retry_after=1.0)
            if self._held + len(texts) > self._queue_size:
                raise Overloaded(
                    f"{self._held} texts are queued already, {len(texts)} more don't fit into {self._queue_size}; "
                    "try again later",
                    retry_after=self._wait_estimate(),
                )
            self._held += len(texts)
            self._arrived.append(request)
            self._changed.notify()
        answer.add_done_callback(lambda future: self._give_up([request]) if future.cancelled() else None)
        return answer

    async def close(self) -> None:
        """Refuse new texts, finish those that are under way, end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _wait_estimate(self) -> float:
        speed = self._texts_per_second * len(self._threads)
        return min(LONGEST_WAIT, self._held / speed) if speed else 1.0

    # What the workers do.

    def _work(self) -> None:
        while self._do_next_step():
            pass

    def _do_next_step(self) -> bool:
        step = self._next_step()  # kept no longer than it takes: it holds the callers' texts
        if step:
            step()
        return step is not None

    def _next_step(self) -> Callable[[], None] | None:
        """Encode what has arrived, so that all lengths are known; then run a batch; None: the work is over."""
        with self._changed:
            while True:
                if self._arrived:
                    request = self._arrived.popleft()
                    return lambda: self._encode(request)
                if self._waiting:
                    batch = self._take_batch()
                    return lambda: self._run(batch)
                if self._closing:
                    return None
                self._idle += 1
                self._changed.wait()
                self._idle -= 1

    def _encode(self, request: _Request) -> None:
        try:
            request.encoded = self.classifier.encode(request.texts)
        except Exception as error:
            self._fail({request: len(request.texts)}, error)
            return
        request.logits = [np.empty(0, np.float32)] * len(request.texts)
        with self._changed:
            if request.over:
                self._release({request: len(request.texts)})
                return
            self._waiting += [_Waiting(request, row, item.length) for row, item in enumerate(request.encoded)]
            self._changed.notify(len(self._waiting) - 1)  # this worker takes a share itself

    def _take_batch(self) -> list[_Waiting]:
        """The oldest text and others of like length, leaving their share to workers that are idle."""
        oldest = self._waiting[0]
        share = math.ceil(len(self._waiting) / (1 + self._idle))
        tolerance = max(4, oldest.length // 4)  # bounds what is spent on padding
        batch, rest, longest = [oldest], [], oldest.length
        for item in self._waiting[1:]:
            widest = max(longest, item.length)
            fits = (len(batch) + 1) * widest <= self._batch_tokens and len(batch) < share
            if fits and abs(item.length - oldest.length) <= tolerance:
                batch.append(item)
                longest = widest
            else:
                rest.append(item)
        self._waiting = rest
        return batch

    def _run(self, batch: list[_Waiting]) -> None:
        places = Counter(item.request for item in batch)
        started = time.perf_counter()
        try:
            logits = self.classifier.logits([item.request.encoded[item.row] for item in batch])
            for item, row in zip(batch, logits, strict=True):
                item.request.logits[item.row] = row
        except Exception as error:
            self._fail(places, error)
            return
        speed = len(batch) / (time.perf_counter() - started)
        with self._changed:
            self._texts_per_second += SMOOTHING * (speed - self._texts_per_second)
            self._release(places)
            finished = [request for request in places if not request.held and not request.over]
        for request in finished:
            self._answer(request)
        if self._on_batch:
            self._on_batch(len(batch))

    def _answer(self, request: _Request) -> None:
        try:
            predictions = self.classifier.decoder.decode(
                np.stack(request.logits),
                top_k=request.top_k,
                truncated=[item.truncated for item in request.encoded],
            )
        except Exception as error:
            self._fail({request: 0}, error)
            return
        _tell(request.answer, request.answer.set_result, predictions)

    def _fail(self, places: Mapping[_Request, int], error: Exception) -> None:
        """Answer the requests with `error`, and give back the places of their texts that were running."""
        if not isinstance(error, WenleiError):
            log.error("the engine failed", exc_info=error)
        with self._changed:
            self._release(places)
        for request in places:
            _tell(request.answer, request.answer.set_exception, error)
        self._give_up(places)

    def _give_up(self, requests: Iterable[_Request]) -> None:
        """Nobody waits for `requests` any more: take what has not begun out of the queue."""
        with self._changed:
            for request in requests:
                request.over = True
                if request in self._arrived:
                    self._arrived.remove(request)
                    self._release({request: request.held})
            self._release(Counter(item.request for item in self._waiting if item.request.over))
            self._waiting = [item for item in self._waiting if not item.request.over]

    def _release(self, places: Mapping[_Request, int]) -> None:
        """Give back so many places of each; the caller holds the lock."""
        for request, number in places.items():
            self._held -= number
            request.held -= number


def _tell(answer: asyncio.Future[Any], setter: Callable[[Any], None], value: object) -> None:
    """Set the result from a worker's thread; the caller, or even its event loop, may be gone by now."""

    def settle() -> None:
        if not answer.done():
            setter(value)

    with suppress(RuntimeError):  # the loop is closed
        answer.get_loop().call_soon_threadsafe(settle)
