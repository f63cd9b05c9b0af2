"""Produce requests that wait until their appends are acknowledged."""

from collections.abc import Callable
from typing import Protocol


class DelayedProduce(Protocol):
    deadline_ms: float

    def expire(self) -> None:
        """Answer now, with the results so far, and stop waiting."""


class DelayedProduces:
    """The waiting produces. A sweep ends the late ones: producer timeouts are coarse enough."""

    __slots__ = ("_on_waiting", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[DelayedProduce, None] = {}  # In order of arrival.
        self._on_waiting: Callable[[], object] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, produce: DelayedProduce) -> None:
        self._waiting[produce] = None
        if self._on_waiting is not None:
            notify, self._on_waiting = self._on_waiting, None
            notify()

    def notify(self, on_waiting: Callable[[], object]) -> None:
        """Call `on_waiting` once, when a produce waits: until then there is nothing to sweep."""
        if self._waiting:
            on_waiting()
        else:
            self._on_waiting = on_waiting

    def discard(self, produce: DelayedProduce) -> None:
        self._waiting.pop(produce, None)

    def expire(self, now_ms: float) -> None:
        for produce in [late for late in self._waiting if late.deadline_ms <= now_ms]:
            produce.expire()
