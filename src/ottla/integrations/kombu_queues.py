"""The topics behind a kombu queue, and messages received from them before delivery."""

import asyncio
import contextlib
from asyncio import Task, TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Final

from ottla.client.async_wire.reading import list_offsets
from ottla.client.share_wire.contents import clear, counts
from ottla.client.share_wire.settling import PUT_BACK
from ottla.client.share_wire.share_group_starts import begin_at
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.offsets import LATEST
from ottla.integrations.engine import Engine
from ottla.integrations.task_queue import WAIT_S, Delivery, Trouble
from ottla.integrations.topics import delete_topic, topic_name

PREFETCH_MAX: Final = 100  # Received, not delivered yet.
AHEAD_MAX: Final = 64  # Received in advance for a caller that gets one message at a time.
AHEAD_S: Final = 0.2  # After this long, unrequested messages go back to the group.


class QueueTopics:
    """One topic per priority step; the lowest has the queue's name.

    A queue bound to a fanout exchange is a group of its own on the exchange's topic.
    """

    def __init__(self, engine: Engine, queue: str, steps: Sequence[int]) -> None:
        self._engine = engine
        name = topic_name(queue)
        self._steps = steps  # Ascending.
        self._topics = [
            f"{name}.priority-{step}" if index else name for index, step in enumerate(steps)
        ]
        self._queue = queue
        self.group: str | None = None  # None: the group shared by all queues.
        self._ahead: deque[Delivery] = deque()  # Received, not requested yet.
        self._ahead_count = 1  # How many to receive next.
        self._giving_back: TimerHandle | None = None

    @property
    def by_priority(self) -> list[str]:
        """Topics by descending priority."""
        return self._topics[::-1]

    def topic_for(self, priority: int) -> str:
        index = max((i for i, step in enumerate(self._steps) if step <= priority), default=0)
        return self._topics[index]

    def follow(self, topic: str) -> None:
        """Read the topic from its current end, unless the group has already begun."""
        self._topics, self._steps, self.group = [topic], [0], self._queue
        self._engine.call(self._begin(topic))

    async def _begin(self, topic: str) -> None:
        topic_partition = TopicPartition(topic, 0)
        cluster = self._engine.cluster
        (end,) = (await list_offsets(cluster, {topic_partition: LATEST})).values()
        assert self.group is not None
        await begin_at(cluster, self.group, topic, {0: end or 0})

    def size(self) -> int:
        self._engine.call(self.give_back())
        group = self.group or self._engine.group
        found = (counts(self._engine.cluster, topic, group) for topic in self._topics)
        return sum(self._engine.call(each).available for each in found)

    def purge(self) -> int:
        count = self.size()
        for topic in self._topics:
            self._engine.call(clear(self._engine.cluster, topic))
        return count

    def delete(self) -> None:
        if self.group is None:
            self._engine.call(self.give_back())
            for topic in self._topics:
                self._engine.forget_topic(topic)
                self._engine.call(delete_topic(self._engine.cluster, topic))

    def receive_now(self) -> Delivery | None:
        """Includes what this process has just given back.

        A broker answers with whole record batches, however few records are requested. So a caller
        that gets one message after another has some received in advance: twice as many each time
        the caller wanted them all. That would break priorities, so queues with priorities do
        without.
        """
        with contextlib.suppress(IndexError):
            return self._ahead.popleft()
        return self._engine.call(self._receive_ahead())

    async def _receive_ahead(self) -> Delivery | None:
        await self._engine.tasks.settled()
        count = self._ahead_count if len(self._topics) == 1 else 1
        found = await self.receive(count, waits=False)
        if not found:
            return None
        self._ahead_count = min(2 * count, AHEAD_MAX)
        self._ahead.extend(found[1:])
        if self._giving_back is not None:
            self._giving_back.cancel()
        self._giving_back = self._engine.loop.call_later(AHEAD_S, self._on_idle)
        return found[0]

    def _on_idle(self) -> None:
        self._giving_back = None
        self._ahead_count = 1
        for delivery in self._drained():
            self._engine.tasks.settle_soon(delivery, PUT_BACK)

    async def give_back(self) -> None:
        """Return messages received in advance."""
        await self._engine.tasks.put_back(self._drained())

    def _drained(self) -> list[Delivery]:
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self._ahead.popleft())
        return found

    async def receive(self, count: int, *, waits: bool = True) -> list[Delivery]:
        """From the highest-priority topic that has messages."""
        tasks = self._engine.tasks
        if len(self._topics) == 1:
            wait_s = WAIT_S if waits else 0
            return await tasks.receive(self._topics[0], count, wait_s, group=self.group)
        for topic in self.by_priority:
            if found := await tasks.receive(topic, count, 0, group=self.group):
                return found
        return await self._receive_any(count) if waits else []

    async def _receive_any(self, count: int) -> list[Delivery]:
        """Wait on all topics; tasks received by the cancelled calls are returned."""
        receive = self._engine.tasks.receive
        waiting = [
            asyncio.create_task(receive(topic, count, WAIT_S, group=self.group))
            for topic in self.by_priority
        ]
        found: list[Delivery] = []
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            for result in await asyncio.gather(*waiting, return_exceptions=True):
                if isinstance(result, list):
                    found += result
        return found


class Prefetched:
    """Messages of a queue that one channel has received but not delivered yet.

    Fetches more once half of them are delivered and the channel has room.
    """

    def __init__(self, engine: Engine, topics: QueueTopics, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._topics = topics
        self._wake = wake
        self._found: deque[Delivery] = deque()
        self._is_asked = False  # Until messages arrive.
        self._wanted = asyncio.Event()
        self._count = 1
        self._task: Task[None] = engine.call(self._start())

    def want(self, count: int | None) -> None:
        """Ask for up to `count` messages; None means any number."""
        most = PREFETCH_MAX if count is None else min(count, PREFETCH_MAX)
        waiting_count = len(self._found)
        if 2 * waiting_count < most and not self._is_asked:
            self._is_asked = True
            self._count = most - waiting_count
            self._engine.loop.call_soon_threadsafe(self._wanted.set)

    def take(self) -> Delivery:
        if not self._found:
            raise Empty
        return self._found.popleft()

    def close(self) -> None:
        self._engine.call(self._close())

    async def _close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._engine.tasks.put_back(self._found)
        self._found.clear()

    async def _start(self) -> "Task[None]":
        return asyncio.create_task(self._run())

    async def _run(self) -> None:
        trouble = Trouble(f"no messages of {self._topics.by_priority[-1]}")
        while True:
            await self._wanted.wait()
            try:
                found = await self._topics.receive(self._count)
            except WireError as error:
                await trouble.on_error(error)
                continue
            trouble.on_success()
            if found:
                self._wanted.clear()
                self._found.extend(found)
                self._is_asked = False
                self._wake()
