"""Group commit: one flush in a thread serves every append that waits for it.

A request follows its append. A log's flush starts once the event loop has run everything that was
ready, so that all appends of that round share it, and it covers every append before its start.
Requests that arrive while it runs wait for the next one; each log has at most one at a time.
"""

from asyncio import AbstractEventLoop
from collections.abc import Callable
from concurrent.futures import Executor, Future
from time import monotonic_ns
from typing import Protocol

from ottla.network.durations import Durations


class Flushable(Protocol):
    def flush(self) -> int:
        """Sync what was appended before this call; safe while another thread appends."""


Callback = Callable[[], object]
OnError = Callable[[Flushable, BaseException], object]


class Flusher:
    """Callbacks run on the loop, in the order of the requests, once the data is on disk.

    If a flush fails, its callbacks and the waiting ones are dropped: the state of the disk after a
    failed sync is unknown, so nothing may be acknowledged. `on_error` is called instead.
    """

    __slots__ = ("_durations", "_executor", "_loop", "_on_error", "_waiting")

    def __init__(
        self,
        loop: AbstractEventLoop,
        executor: Executor,
        on_error: OnError,
        durations: Durations | None = None,
    ) -> None:
        """`durations` records how long flushes take, including the wait for a thread."""
        self._durations = durations or Durations()
        self._loop = loop
        self._executor = executor
        self._on_error = on_error
        # Invariant: a log is a key while a flush of it is due or running.
        self._waiting: dict[Flushable, list[Callback]] = {}

    def request(self, log: Flushable, callback: Callback) -> None:
        """Call `callback` once everything appended to `log` so far is on disk."""
        waiting = self._waiting.get(log)
        if waiting is not None:
            waiting.append(callback)
            return
        self._waiting[log] = [callback]
        self._loop.call_soon(self._start, log)

    def _start(self, log: Flushable) -> None:
        covered = self._waiting[log]
        self._waiting[log] = []
        begun_ns = monotonic_ns()

        def on_done(done: "Future[int]") -> None:
            duration_ns = monotonic_ns() - begun_ns
            self._loop.call_soon_threadsafe(self._on_flushed, log, covered, done, duration_ns)

        self._executor.submit(log.flush).add_done_callback(on_done)

    def _on_flushed(
        self, log: Flushable, covered: list[Callback], flush: "Future[int]", duration_ns: int
    ) -> None:
        self._durations.add(duration_ns)
        error = flush.exception()
        if error is not None:
            del self._waiting[log]
            self._on_error(log, error)
            return
        if self._waiting[log]:
            self._start(log)
        else:
            del self._waiting[log]
        for callback in covered:
            callback()
