"""The tasks that a process holds in a share group: received from topics, locked while they run,
settled one by one.

A received task is locked for this process, and the lock is renewed until the task is settled,
however long it runs. Locks belong to the broker and expire by themselves: when a process dies, each
of its tasks goes to another worker at most `lock_s` later. Locks survive a broker restart.
"""

import asyncio
import logging
import random
from asyncio import AbstractEventLoop, Task
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.share_wire.settling import PUT_BACK, Settler, Verdict
from ottla.client.share_wire.share_members import ShareMembers, Taken, Untaken
from ottla.client.wire.errors import BrokerError, WireError
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import DeliveryAcknowledgeType

logger = logging.getLogger(__name__)

LOCK_S: Final = 30.0
WAIT_S: Final = 5.0
RENEWALS_PER_LOCK: Final = 3
SETTLE_PATIENCE_S: Final = 600.0  # Without an answer from brokers; the lock is renewed meanwhile.

_PAUSE_S: Final = 0.2
_PAUSE_S_MAX: Final = 5.0

RELEASE: Final = Verdict(DeliveryAcknowledgeType.RELEASE, delay_ms=0)  # Counts as a delivery.


@dataclass(eq=False, repr=False, slots=True)
class Delivery:
    """A task that this process holds. Compared by identity: a redelivery is a different object."""

    taken: Taken

    @property
    def value(self) -> bytes:
        return self.taken.acquired.record.value or b""

    @property
    def delivery_count(self) -> int:
        """1 for the first delivery."""
        return self.taken.acquired.delivery_count

    def __repr__(self) -> str:
        acquired = self.taken.acquired
        return f"{self.taken.key.topic}-{acquired.partition}@{acquired.record.offset}"


class TaskQueue:
    """Bound to the event loop that it is created in. Broker refusals raise WireError."""

    def __init__(
        self, cluster: Cluster, group: str, loop: AbstractEventLoop, *, lock_s: float
    ) -> None:
        self._cluster = cluster
        self._group = group
        self._loop = loop
        self._lock_ms = max(1, round(lock_s * 1000))
        self._members = ShareMembers(cluster, loop, self._return)
        self._settler = Settler(cluster, loop)
        self._held: dict[Delivery, bool] = {}  # Value: is being settled.
        self._settling: set[Task[object]] = set()
        # From any thread, not handled yet.
        self._verdicts: deque[tuple[Delivery, Verdict]] = deque()
        self._is_hearing = False  # `_hear` is scheduled.
        self._renewer = loop.create_task(self._renew(), name="locks of tasks")

    async def receive(
        self, topic: str, count: int = 1, wait_s: float = WAIT_S, *, group: str | None = None
    ) -> list[Delivery]:
        """At most `count`; empty after the timeout."""
        member = await self._members.get(topic, group or self._group)
        if member.locks is not None:
            raise BrokerError(
                ErrorCode.unsupported_version, "these brokers do not hold tasks for their workers"
            )
        taken = await member.receive(count, round(wait_s * 1000), self._lock_ms)
        deliveries = [Delivery(each) for each in taken]
        self._held |= dict.fromkeys(deliveries, False)
        return deliveries

    async def deliveries(self, topics: Sequence[str]) -> AsyncIterator[Delivery]:
        """Yields tasks forever, one per topic fetched in advance; waits out broker outages."""
        found: asyncio.Queue[Delivery] = asyncio.Queue(1)

        async def look(topic: str) -> None:
            async for delivery in self._endlessly(topic):
                await found.put(delivery)

        looking = [self._loop.create_task(look(topic)) for topic in topics]
        try:
            while True:
                yield await found.get()
        finally:
            for task in looking:
                task.cancel()
            await asyncio.gather(*looking, return_exceptions=True)

    async def _endlessly(self, topic: str) -> AsyncIterator[Delivery]:
        trouble = Trouble(f"no tasks of {topic}")
        while True:
            try:
                found = await self.receive(topic)
            except WireError as error:
                await trouble.on_error(error)
                continue
            trouble.on_success()
            for delivery in found:
                yield delivery

    async def put_back(self, deliveries: Iterable[Delivery]) -> None:
        """The tasks were not started. Does not count as a delivery."""
        await self.settle_all(list(deliveries), PUT_BACK, patience_s=0)

    async def close(self) -> None:
        """Unsettled tasks return at once."""
        await self.settled()
        await self.put_back(self._held)
        self._renewer.cancel()
        await asyncio.gather(self._renewer, return_exceptions=True)
        await self._members.close()
        await self.settled()
        await self._settler.close()

    async def settled(self) -> None:
        """Returns once the broker was told of everything passed to `settle_soon`."""
        self._hear()
        if self._settling:
            await asyncio.wait(self._settling)

    def settle_soon(self, delivery: Delivery, verdict: Verdict) -> None:
        """Thread-safe. Does not wait; `close` does. Verdicts in quick succession go to the broker
        together.
        """
        self._verdicts.append((delivery, verdict))
        if not self._is_hearing:
            self._is_hearing = True
            self._loop.call_soon_threadsafe(self._hear)

    def _hear(self) -> None:
        self._is_hearing = False  # Reset first: verdicts from here on schedule `_hear` again.
        by_verdict: dict[Verdict, list[Delivery]] = {}
        while self._verdicts:
            delivery, verdict = self._verdicts.popleft()
            by_verdict.setdefault(verdict, []).append(delivery)
        for verdict, deliveries in by_verdict.items():
            self._spawn(self.settle_all(deliveries, verdict))

    async def settle(self, delivery: Delivery, verdict: Verdict) -> None:
        """Returns once the broker has answered. A task that was lost stays with its new owner."""
        await self.settle_all([delivery], verdict)

    async def settle_all(
        self,
        deliveries: Iterable[Delivery],
        verdict: Verdict,
        *,
        patience_s: float = SETTLE_PATIENCE_S,
    ) -> list[Delivery]:
        """Returns the deliveries that the broker recorded."""
        left = [each for each in deliveries if not self._held.get(each, True)]
        self._held |= dict.fromkeys(left, True)
        deadline_s = self._loop.time() + patience_s
        written = []
        while left:
            codes = await self._settler.settle([each.taken.claim(verdict) for each in left])
            may_retry = self._loop.time() <= deadline_s
            answered, left = list(zip(left, codes, strict=True)), []
            for delivery, code in answered:
                if code.retriable and may_retry:
                    left.append(delivery)
                    continue
                self._held.pop(delivery, None)
                if code is ErrorCode.none:
                    written.append(delivery)
                else:
                    logger.warning("%r may run again: %s", delivery, code.name)
        return written

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lock_ms / 1000 / RENEWALS_PER_LOCK)
            held = list(self._held)
            verdict = Verdict(DeliveryAcknowledgeType.RENEW, lock_ms=self._lock_ms)
            codes = await self._settler.settle([each.taken.claim(verdict) for each in held])
            for delivery, code in zip(held, codes, strict=True):
                is_lost = code is not ErrorCode.none and not code.retriable
                if is_lost and not self._held.get(delivery, True):
                    del self._held[delivery]
                    logger.warning("%r was lost to another worker: %s", delivery, code.name)

    def _return(self, untaken: Untaken) -> None:
        """Tell the broker about records fetched for nobody or missing, so that nothing waits for
        them. If it fails, the tasks are redelivered when their locks expire.
        """
        self._spawn(self._settler.settle(untaken.claims()))

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = self._loop.create_task(work)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


class Trouble:
    """Backs off while brokers do not answer; logs once at the start and once at the end."""

    def __init__(self, what: str, log: Callable[..., None] = logger.warning) -> None:
        self._what = what
        self._log = log
        self._pause_s = 0.0  # No pause yet.

    async def on_error(self, error: WireError) -> None:
        if not self._pause_s:
            self._log("%s, and tries again: %s", self._what, error)
        self._pause_s = min(2 * self._pause_s or _PAUSE_S, _PAUSE_S_MAX)
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1.5))

    def on_success(self) -> None:
        if self._pause_s:
            self._log("%s: over", self._what)
        self._pause_s = 0.0
