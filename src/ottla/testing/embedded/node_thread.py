"""One run of a real node, in a thread and an event loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.testing.embedded.clock import MovableClock

T = TypeVar("T")


class MovableLoop(asyncio.SelectorEventLoop):
    """Calls at once whatever fell due while its clock skipped ahead, so an hour's wait for a
    session, a delay or retention takes no time.
    """

    def __init__(self, clock: MovableClock) -> None:
        self._movable = clock
        super().__init__()

    def time(self) -> float:
        return self._movable.monotonic_ms() / 1000.0


class NodeThread:
    def __init__(
        self,
        name: str,
        values: Mapping[str, object],
        new_environment: Callable[[], Environment],
        clock: MovableClock,
        *,
        listens_first: bool,
    ) -> None:
        self._listens_first = listens_first
        self._values = values
        self._new_environment = new_environment
        self._loop = MovableLoop(clock)
        self._started: Future[Node] = Future()
        self._stop_asked = asyncio.Event()
        self._silently = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def wait_until_started(self, timeout_s: float) -> None:
        """Raises the error of the start, or TimeoutError; the thread has then ended."""
        try:
            self._started.result(timeout_s)
        except BaseException:
            self.stop()
            raise

    @property
    def node(self) -> Node:
        return self._started.result(0)

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def stop(self, *, silently: bool = False) -> None:
        """Returns once nothing is left of it."""
        self._silently = silently
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop_asked.set)
        self._thread.join()

    def call(self, function: Callable[[], T]) -> T:
        """Call the function in the node's own thread and return its result."""
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(function())
            except BaseException as error:
                result.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return result.result()

    def look_at_clock(self) -> None:
        """Call this after moving the clock, from any thread."""
        self._loop.call_soon_threadsafe(lambda: None)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        node = Node(
            self._values,
            self._new_environment(),
            new_cluster=True,
            listens_first=self._listens_first,
        )
        starting = asyncio.ensure_future(node.start())
        ends = [asyncio.ensure_future(event.wait()) for event in (self._stop_asked, node.failed)]
        await asyncio.wait([starting, *ends], return_when=asyncio.FIRST_COMPLETED)
        try:
            if not starting.done():
                starting.cancel()
                await asyncio.wait([starting])
                self._started.set_exception(TimeoutError("stopped before it has started"))
                return
            await starting
            self._started.set_result(node)
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            await node.stop(silently=self._silently)
        except Exception as error:
            if self._started.done():
                raise
            self._started.set_exception(error)
        finally:
            for end in ends:
                end.cancel()
