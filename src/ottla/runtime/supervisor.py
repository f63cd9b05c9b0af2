"""Supervised tasks.

A task that ends with an exception is a bug in this process: the supervisor logs it and notifies the
node, which stops rather than continue with wrong state.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger(__name__)

OnFailure = Callable[[BaseException], object]


class Supervisor:
    def __init__(self, loop: asyncio.AbstractEventLoop, on_failure: OnFailure) -> None:
        self.loop = loop
        self._on_failure = on_failure
        self._tasks: dict[asyncio.Task[Any], None] = {}  # In start order.
        self._stopped = False

    @property
    def stopped(self) -> bool:
        return self._stopped

    def start(self, name: str, coroutine: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        if self._stopped:
            coroutine.close()
            raise RuntimeError(f"{name} was started while the node stops")
        task = self.loop.create_task(coroutine, name=name)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    async def stop(self) -> None:
        """Cancel every task and wait until the last one has ended."""
        self._stopped = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)
            self._on_failure(error)
