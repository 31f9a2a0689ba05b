import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import pytest

from app.serving.scheduler import Scheduler
from model.errors import BadInput, BadLogits, BadText, Overloaded
from model.runtime.base import Classifier, classify
from model.runtime.double import DoubleClassifier
from model.tokenization.base import Encoded
from model.types import Text


@asynccontextmanager
async def running(
    classifier: Classifier, *, workers: int = 1, queue_size: int = 100, batch_tokens: int = 4096
) -> AsyncIterator[Scheduler]:
    scheduler = Scheduler(classifier, workers=workers, queue_size=queue_size, batch_tokens=batch_tokens)
    try:
        yield scheduler
    finally:
        await asyncio.wait_for(scheduler.close(), 10)
        assert scheduler.depth == 0


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def texts(*lengths: int) -> list[Text]:
    return [Text("好" * length) for length in lengths]


def test_one_text_on_an_idle_engine_runs_at_once_and_alone() -> None:
    async def scenario() -> None:
        double = DoubleClassifier()
        async with running(double) as scheduler:
            (prediction,) = await scheduler.submit(texts(7))
        assert double.batches == [[7]]
        assert [prediction] == classify(double, texts(7))

    asyncio.run(scenario())


def test_requests_that_wait_are_run_together_when_their_lengths_are_alike() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        double = DoubleClassifier(gate=gate)
        async with running(double) as scheduler:
            first = scheduler.submit(texts(5))
            await until(lambda: scheduler.depth == 1 and not scheduler._arrived)
            rest = [scheduler.submit(texts(length)) for length in (20, 100, 22, 101, 18)]
            gate.set()
            await asyncio.gather(first, *rest)
        assert double.batches == [[5], [20, 22, 18], [100, 101]]

    asyncio.run(scenario())


def test_the_oldest_text_is_never_overtaken_by_a_batch_without_it() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        double = DoubleClassifier(gate=gate)
        async with running(double) as scheduler:
            first = scheduler.submit(texts(5))
            await until(lambda: not scheduler._arrived)
            odd = scheduler.submit(texts(300))
            crowd = [scheduler.submit(texts(10, 10, 10)) for _ in range(20)]
            gate.set()
            await asyncio.gather(first, odd, *crowd)
        assert double.batches[1] == [300]

    asyncio.run(scenario())


def test_batches_stay_within_their_tokens() -> None:
    async def scenario() -> None:
        double = DoubleClassifier()
        async with running(double, batch_tokens=64) as scheduler:
            await scheduler.submit(texts(*[15, 16, 17, 18] * 10, 500))
        assert all(len(batch) == 1 or len(batch) * max(batch) <= 64 for batch in double.batches)
        assert sorted(length for batch in double.batches for length in batch) == sorted([15, 16, 17, 18] * 10 + [500])

    asyncio.run(scenario())


def test_idle_workers_get_their_share_of_a_large_request() -> None:
    async def scenario() -> None:
        threads = set()
        started = threading.Barrier(2, timeout=10)

        def meet(_: Sequence[Encoded]) -> None:
            if len(threads) < 2:
                threads.add(threading.get_ident())
                started.wait()

        async with running(DoubleClassifier(on_batch=meet), workers=2) as scheduler:
            await until(lambda: scheduler._idle == 2)
            await scheduler.submit(texts(*[10] * 8))
        assert len(threads) == 2

    asyncio.run(scenario())


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_many_callers_each_get_their_own_answers_in_order(workers: int) -> None:
    async def scenario() -> None:
        double = DoubleClassifier()
        requests = [
            [Text("好坏快慢"[(number + row) % 4] * ((number * 7 + row * 13) % 60 + 1)) for row in range(number % 5 + 1)]
            for number in range(200)
        ]
        async with running(double, workers=workers, queue_size=1000, batch_tokens=256) as scheduler:
            answers = await asyncio.gather(
                *(scheduler.submit(request, top_k=number % 2 + 1) for number, request in enumerate(requests))
            )
        for number, (request, answer) in enumerate(zip(requests, answers, strict=True)):
            assert answer == classify(double, request, top_k=number % 2 + 1)

    asyncio.run(scenario())


def test_a_full_queue_refuses_at_once_and_says_when_to_come_back() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        async with running(DoubleClassifier(gate=gate), queue_size=3) as scheduler:
            held = scheduler.submit(texts(5, 6))
            started = time.perf_counter()
            with pytest.raises(Overloaded, match="2 texts are queued already, 2 more don't fit into 3") as refused:
                scheduler.submit(texts(5, 6))
            assert time.perf_counter() - started < 0.1
            assert refused.value.retry_after > 0
            fits = scheduler.submit(texts(7))
            gate.set()
            await asyncio.gather(held, fits)
            await scheduler.submit(texts(5, 6, 7))

    asyncio.run(scenario())


def test_the_time_to_come_back_follows_from_the_measured_speed() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        gate.set()
        async with running(DoubleClassifier(gate=gate, delay=0.1), queue_size=20, batch_tokens=1) as scheduler:
            await scheduler.submit(texts(5, 5, 5, 5, 5, 5, 5, 5))
            gate.clear()
            held = scheduler.submit(texts(*[5] * 20))
            with pytest.raises(Overloaded) as refused:
                scheduler.submit(texts(5))
            assert 1 < refused.value.retry_after < 5  # 20 texts at a little under 10 a second
            held.cancel()
            gate.set()

    asyncio.run(scenario())


@pytest.mark.parametrize("count", [0, 4])
def test_a_request_that_can_never_fit_is_bad_input(count: int) -> None:
    async def scenario() -> None:
        async with running(DoubleClassifier(), queue_size=3) as scheduler:
            with pytest.raises(BadInput, match="send 1 to 3"):
                scheduler.submit(texts(*[5] * count))

    asyncio.run(scenario())


def test_giving_up_frees_the_places_of_what_has_not_begun() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        double = DoubleClassifier(gate=gate)
        async with running(double, queue_size=10) as scheduler:
            first = scheduler.submit(texts(5))
            await until(lambda: not scheduler._arrived)
            given_up = scheduler.submit(texts(*[8] * 9))
            with pytest.raises(Overloaded):
                scheduler.submit(texts(5))
            given_up.cancel()
            await until(lambda: scheduler.depth == 1)
            second = scheduler.submit(texts(*[6] * 9))
            gate.set()
            await asyncio.gather(first, second)
        assert 8 not in [length for batch in double.batches for length in batch]

    asyncio.run(scenario())


def test_giving_up_while_running_frees_the_places_when_the_batch_ends() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        async with running(DoubleClassifier(gate=gate), queue_size=4, batch_tokens=10) as scheduler:
            given_up = scheduler.submit(texts(5, 5, 5, 5))  # two run, two wait
            await until(lambda: scheduler._waiting)
            given_up.cancel()
            await until(lambda: scheduler.depth == 2)
            gate.set()
            await until(lambda: scheduler.depth == 0)

    asyncio.run(scenario())


def test_an_engine_that_fails_fails_only_that_batch_and_works_on() -> None:
    async def scenario() -> None:
        gate = threading.Event()

        def fail_on_forty(batch: Sequence[Encoded]) -> None:
            gate.wait()
            if any(item.length == 40 for item in batch):
                raise RuntimeError("the engine broke")

        async with running(DoubleClassifier(on_batch=fail_on_forty)) as scheduler:
            first = scheduler.submit(texts(5))
            await until(lambda: not scheduler._arrived)
            same_batch, other_batch = scheduler.submit(texts(41)), scheduler.submit(texts(90))
            failing = scheduler.submit(texts(40, 200, 200))
            gate.set()
            for broken in (failing, same_batch):
                with pytest.raises(RuntimeError, match="the engine broke"):
                    await broken
            await asyncio.gather(first, other_batch)
            await scheduler.submit(texts(5))

    asyncio.run(scenario())


def test_a_text_that_can_not_be_read_fails_its_own_request_only() -> None:
    async def scenario() -> None:
        gate = threading.Event()
        async with running(DoubleClassifier(gate=gate)) as scheduler:
            first = scheduler.submit(texts(5))
            bad, good = scheduler.submit([*texts(5, 5), Text("\u200b")]), scheduler.submit(texts(5))
            gate.set()
            with pytest.raises(BadText, match=r"texts\[2\]"):
                await bad
            await asyncio.gather(first, good)

    asyncio.run(scenario())


def test_an_answer_that_is_no_number_fails_the_request() -> None:
    class Broken(DoubleClassifier):
        def logits(self, batch: Sequence[Encoded]) -> object:  # type: ignore[override]
            return super().logits(batch) * float("nan")

    async def scenario() -> None:
        async with running(Broken()) as scheduler:
            with pytest.raises(BadLogits):
                await scheduler.submit(texts(5))

    asyncio.run(scenario())


def test_closing_finishes_what_is_under_way_and_refuses_what_comes_later() -> None:
    async def scenario() -> None:
        double = DoubleClassifier(delay=0.02)
        scheduler = Scheduler(double, workers=2, queue_size=100, batch_tokens=20)
        before = threading.active_count()
        answers = [scheduler.submit(texts(*[10] * 5)) for _ in range(8)]
        await scheduler.close()
        await asyncio.sleep(0)  # the answers are on their way through the event loop
        assert [len(answer.result()) for answer in answers] == [5] * 8
        with pytest.raises(Overloaded, match="shutting down"):
            scheduler.submit(texts(5))
        assert len(double.batches) == 20
        assert threading.active_count() <= before

    asyncio.run(scenario())


def test_nothing_of_a_request_is_kept_when_it_is_over() -> None:
    async def scenario() -> None:
        async with running(DoubleClassifier(), queue_size=1000) as scheduler:
            for _ in range(50):
                futures = [scheduler.submit(texts(5, 9)) for _ in range(10)]
                futures[3].cancel()
                await asyncio.gather(*futures, return_exceptions=True)
            await until(lambda: scheduler.depth == 0)
            del futures
            gc.collect()
            assert not scheduler._waiting
            assert not scheduler._arrived
            assert sum(type(item).__name__ == "_Request" for item in gc.get_objects()) <= 2

    asyncio.run(scenario())
