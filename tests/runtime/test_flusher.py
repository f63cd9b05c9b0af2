import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from ottla.runtime.flusher import Flusher


class ManualExecutor(Executor):
    """Runs submitted work when the test says so."""

    def __init__(self) -> None:
        self.submitted: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.submitted.append((future, function))
        return future

    def run_next(self) -> None:
        future, function = self.submitted.pop(0)
        try:
            future.set_result(function())
        except OSError as error:
            future.set_exception(error)


class Log:
    def __init__(self) -> None:
        self.appended = 0
        self.flushed = 0
        self.error: OSError | None = None

    def flush(self) -> int:
        if self.error:
            raise self.error
        self.flushed = self.appended
        return self.flushed


class Bench:
    """A flusher on an event loop that runs one round at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.executor = ManualExecutor()
        self.errors: list[tuple[object, BaseException]] = []
        self.flusher = Flusher(
            self.loop, self.executor, lambda log, error: self.errors.append((log, error))
        )
        self.answered: list[tuple[str, int]] = []

    def produce(self, log: Log, name: str) -> None:
        log.appended += 1
        self.flusher.request(log, lambda: self.answered.append((name, log.flushed)))

    def round(self) -> None:
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.loop.close()


def test_appends_of_one_round_share_a_flush(bench: Bench) -> None:
    log = Log()
    bench.produce(log, "a")
    bench.produce(log, "b")
    bench.round()
    assert len(bench.executor.submitted) == 1
    assert bench.answered == []
    bench.executor.run_next()
    bench.round()
    assert bench.answered == [("a", 2), ("b", 2)]
    assert bench.executor.submitted == []


def test_an_append_during_a_flush_waits_for_the_next(bench: Bench) -> None:
    log = Log()
    bench.produce(log, "a")
    bench.round()
    bench.executor.run_next()
    bench.produce(log, "late")
    bench.round()
    assert bench.answered == [("a", 1)]
    assert len(bench.executor.submitted) == 1
    bench.executor.run_next()
    bench.round()
    assert bench.answered == [("a", 1), ("late", 2)]


def test_logs_are_flushed_independently(bench: Bench) -> None:
    first, second = Log(), Log()
    bench.produce(first, "first")
    bench.produce(second, "second")
    bench.round()
    assert len(bench.executor.submitted) == 2
    bench.executor.submitted.reverse()
    bench.executor.run_next()
    bench.round()
    assert bench.answered == [("second", 1)]


def test_a_failed_flush_answers_nobody(bench: Bench) -> None:
    log = Log()
    bench.produce(log, "a")
    bench.round()
    bench.produce(log, "b")
    log.error = OSError("disk gone")
    bench.executor.run_next()
    bench.round()
    assert bench.answered == []
    assert bench.errors == [(log, log.error)]
    assert bench.executor.submitted == []


def test_a_log_can_be_flushed_again_after_all_were_answered(bench: Bench) -> None:
    log = Log()
    for name in ("a", "b"):
        bench.produce(log, name)
        bench.round()
        bench.executor.run_next()
        bench.round()
    assert bench.answered == [("a", 1), ("b", 2)]


def test_callbacks_run_on_the_loop_with_a_real_thread() -> None:
    from concurrent.futures import ThreadPoolExecutor

    async def run() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        with ThreadPoolExecutor(1) as executor:
            flusher = Flusher(loop, executor, lambda log, error: done.set_exception(error))
            flusher.request(Log(), lambda: done.set_result(threading.current_thread()))
            assert await done is threading.current_thread()

    asyncio.run(run())
