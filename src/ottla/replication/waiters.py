"""Callbacks that wait for a log offset to be reached."""

from collections import deque
from collections.abc import Callable

from ottla.protocol.errors import ApiError

Waiter = Callable[[ApiError | None], None]  # Called once: with None when the offset is reached.


class OffsetWaiters:
    """Waiters sorted by offset, in the order of appends."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Waiter]] = deque()  # Invariant: offsets never decrease.

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, offset: int, waiter: Waiter) -> None:
        """A retry that waits for an older offset queues behind the newest: safe, slightly late."""
        if self._waiting and self._waiting[-1][0] > offset:
            offset = self._waiting[-1][0]
        self._waiting.append((offset, waiter))

    def advance(self, offset: int) -> None:
        """Release all waiters for `offset` or less."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= offset:
            waiting.popleft()[1](None)

    def fail(self, error: ApiError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, waiter in waiting:
            waiter(error)
