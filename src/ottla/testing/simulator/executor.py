"""The threads of a simulated process: their work takes effect at one moment, later.

A job runs some time after it was submitted, and its completion is reported some time after that; a
crash can come before, between or after the two. Jobs overtake each other, as threads do.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from ottla.storage.faulty_filesystem import PowerLoss

if TYPE_CHECKING:
    from ottla.testing.simulator.process import Process

P = ParamSpec("P")
T = TypeVar("T")


class SimulatedExecutor(Executor):
    def __init__(self, process: "Process") -> None:
        self._process = process
        self._stopped = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        if self._stopped:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[T] = Future()
        host = self._process.host

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            asyncio._set_running_loop(None)  # As in a thread.
            try:
                result = fn(*args, **kwargs)
            except PowerLoss:
                raise
            except BaseException as error:
                self._process.call_later(host.disk_delay(), future.set_exception, error)
            else:
                self._process.call_later(host.disk_delay(), future.set_result, result)
            finally:
                asyncio._set_running_loop(self._process)

        self._process.call_later(host.disk_delay(), run)
        return future

    def shutdown(self, *_: bool, **_options: bool) -> None:
        """Whoever stops a process has waited for its jobs."""
        self._stopped = True


class OneThread(Executor):
    """For work that a job divides among threads and waits for: done at once."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except PowerLoss:
            raise
        except BaseException as error:
            future.set_exception(error)
        return future
