"""The time that a node takes to stop: one budget for all waits, with a log line for long ones.

Nothing is lost by ending a wait: what was acknowledged is on the disks of its replicas. Only the
last step, closing the logs, is never cut short.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

logger = logging.getLogger(__name__)

PATIENCE_S: Final = 1.0  # After this the wait is logged.

T = TypeVar("T")


class Stopping:
    def __init__(self, budget_s: float, time: Callable[[], float]) -> None:
        self._time = time
        self._end = time() + budget_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._end - self._time())

    async def wait(self, what: str, work: Awaitable[T]) -> T:
        """For work that ends by itself; it may wait for others up to `left_s`."""
        task = asyncio.ensure_future(work)
        try:
            done, _ = await asyncio.wait([task], timeout=PATIENCE_S)
            if not done:
                logger.info("stopping: waiting for %s", what)
            return await task
        except asyncio.CancelledError:
            task.cancel()
            raise
