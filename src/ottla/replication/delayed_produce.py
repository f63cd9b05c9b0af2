"""Produce requests that wait until their appends are acknowledged."""

from typing import Protocol


class DelayedProduce(Protocol):
    deadline_ms: float

    def expire(self) -> None:
        """Answer now, with what there is, and leave."""


class DelayedProduces:
    """Those that wait now. A sweep ends the late ones; producers' timeouts are coarse enough."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[DelayedProduce, None] = {}  # In the order of their coming.

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, produce: DelayedProduce) -> None:
        self._waiting[produce] = None

    def discard(self, produce: DelayedProduce) -> None:
        self._waiting.pop(produce, None)

    def expire(self, now_ms: float) -> None:
        for produce in [late for late in self._waiting if late.deadline_ms <= now_ms]:
            produce.expire()
