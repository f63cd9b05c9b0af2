"""Keeps a producer's writes in order while one of them waits for the coordinator.

The first write to a partition in a transaction may have to wait until the partition is part of the
transaction (KIP-890). The same producer's later writes must not overtake it.
"""

from asyncio import AbstractEventLoop, Future


class PendingWrites:
    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._last: dict[int, Future[None]] = {}  # By producer id: done when its newest write ends.

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._last

    def queue(self, producer_id: int) -> "Turn":
        """Queue behind this producer's earlier writes."""
        before = self._last.get(producer_id)
        done = self._last[producer_id] = self._loop.create_future()
        return Turn(self, producer_id, before, done)

    def end(self, producer_id: int, done: "Future[None]") -> None:
        if not done.done():
            done.set_result(None)
        if self._last.get(producer_id) is done:
            del self._last[producer_id]


class Turn:
    """Entered when the previous write is done; leaving it lets the next one proceed."""

    __slots__ = ("_before", "_done", "_producer_id", "_writes")

    def __init__(
        self,
        writes: PendingWrites,
        producer_id: int,
        before: "Future[None] | None",
        done: "Future[None]",
    ) -> None:
        self._writes = writes
        self._producer_id = producer_id
        self._before = before
        self._done = done

    async def __aenter__(self) -> None:
        if self._before is not None:
            await self._before

    async def __aexit__(self, *_: object) -> None:
        self._writes.end(self._producer_id, self._done)
