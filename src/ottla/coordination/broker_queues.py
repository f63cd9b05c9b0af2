"""Requests to other brokers that carry many things: one at a time to each broker.

What comes while a request is under way goes in the next one, so that their number does not grow
with that of the things.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ottla.runtime.supervisor import Supervisor

T = TypeVar("T")

# Sends what has come for a broker; an error of the broker's is told to whoever waits for it.
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
        """Between the last look at what waits and the end of the task nothing can come in."""
        try:
            while waiting := self._waiting.pop(broker_id, None):
                await self._send(broker_id, waiting)
        finally:
            self._sending.discard(broker_id)
