"""The consumers that wait for records of one queue, and who of them gets how many.

Pure bookkeeping: whoever fetches asks for the demand, and deals what came to those who wait.
"""

from asyncio import Future
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Waiter(Generic[T]):
    count: int  # The most that it takes at once.
    lock_ms: int
    arrived_s: float
    deadline_s: float
    future: "Future[list[T]]"


class WaitingLine(Generic[T]):
    def __init__(self) -> None:
        self._waiters: dict[Waiter[T], None] = {}  # In order of arrival.
        self.demand = 0  # Records that all of them together would take.
        self.last_deadline_s = 0.0  # The latest deadline of any waiter.

    def __len__(self) -> int:
        return len(self._waiters)

    def join(self, waiter: Waiter[T]) -> None:
        self._waiters[waiter] = None
        self.demand += waiter.count
        self.last_deadline_s = max(self.last_deadline_s, waiter.deadline_s)

    def first(self) -> Waiter[T] | None:
        return next(iter(self._waiters), None)

    def __iter__(self) -> Iterator[Waiter[T]]:
        return iter(tuple(self._waiters))

    def leave(self, waiter: Waiter[T]) -> bool:
        """False if it was already served or had left."""
        if waiter not in self._waiters:
            return False
        del self._waiters[waiter]
        self.demand -= waiter.count
        return True

    def deal(self, items: Sequence[T], *, more_follows: bool = False) -> Sequence[T]:
        """Serve those who wait, the first first; what nobody wants is left.

        When there is less than they want, as many of them as possible get something, in parts as
        even as can be. If more follows at once they get all that they want, one after the other:
        a few records each would cost more calls.
        """
        position = 0
        parts = self._whole_parts if more_follows else self._parts
        for waiter, count in parts(len(items)):
            self.leave(waiter)
            waiter.future.set_result(list(items[position : position + count]))
            position += count
        return items[position:]

    def _whole_parts(self, available: int) -> list[tuple[Waiter[T], int]]:
        parts: list[tuple[Waiter[T], int]] = []
        for waiter in self._waiters:
            if available <= 0:
                break
            if not waiter.future.done():
                parts.append((waiter, min(waiter.count, available)))
                available -= waiter.count
        return parts

    def _parts(self, available: int) -> list[tuple[Waiter[T], int]]:
        waiting = (waiter for waiter in self._waiters if not waiter.future.done())
        served = list(islice(waiting, available))
        if available >= self.demand:
            return [(waiter, waiter.count) for waiter in served]
        parts: dict[Waiter[T], int] = dict.fromkeys(served, 0)
        wanting = served
        while available and wanting:
            share, extra = divmod(available, len(wanting))
            for index, waiter in enumerate(wanting):
                part = min(waiter.count - parts[waiter], share + (index < extra))
                parts[waiter] += part
                available -= part
            wanting = [waiter for waiter in wanting if parts[waiter] < waiter.count]
        return list(parts.items())
