"""Batches items for other brokers into requests, one in flight per broker.

Items that arrive while a request is in flight go into the next one, so that the number of requests
does not grow with that of the items.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ottla.runtime.supervisor import Supervisor

T = TypeVar("T")

# Sends the items for a broker; reports a broker's error to each item's waiter.
Send = Callable[[int, list[T]], Awaitable[None]]


class BrokerQueues(Generic[T]):
    def __init__(self, name: str, send: Send[T], supervisor: Supervisor) -> None:
        self._name = name
        self._send = send
        self._supervisor = supervisor
        self._waiting: dict[int, list[T]] = {}  # By broker.
        self._sending: set[int] = set()  # Brokers that have a task.

    def add(self, broker_id: int, item: T) -> None:
        self._waiting.setdefault(broker_id, []).append(item)
        if broker_id not in self._sending and not self._supervisor.stopped:
            self._sending.add(broker_id)
            self._supervisor.start(f"{self._name} to broker {broker_id}", self._run(broker_id))

    async def _run(self, broker_id: int) -> None:
        """Nothing can arrive between the last check of the queue and the end of the task."""
        try:
            while waiting := self._waiting.pop(broker_id, None):
                await self._send(broker_id, waiting)
        finally:
            self._sending.discard(broker_id)
