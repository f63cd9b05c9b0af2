"""The topics behind a queue of kombu, and what was taken from them before it is delivered."""

import asyncio
from asyncio import Task
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Final

from ottla.client.async_wire.reading import list_offsets
from ottla.client.share_wire.contents import clear, counts
from ottla.client.share_wire.share_group_starts import begin_at
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.offsets import LATEST
from ottla.integrations.engine import Engine
from ottla.integrations.task_queue import WAIT_S, Delivery, Trouble
from ottla.integrations.topics import delete_topic, topic_name

PREFETCH_MAX: Final = 10  # Taken at once.


class QueueTopics:
    """One topic for each step of priorities; the lowest has the name of the queue.

    A queue that follows an exchange is a group of its own on the topic of that.
    """

    def __init__(self, engine: Engine, queue: str, steps: Sequence[int]) -> None:
        self._engine = engine
        name = topic_name(queue)
        self._steps = steps  # Ascending.
        self._topics = [
            f"{name}.priority-{step}" if index else name for index, step in enumerate(steps)
        ]
        self._queue = queue
        self.group: str | None = None  # None: that of all queues.

    @property
    def by_priority(self) -> list[str]:
        """The highest first."""
        return self._topics[::-1]

    def topic_for(self, priority: int) -> str:
        index = max((i for i, step in enumerate(self._steps) if step <= priority), default=0)
        return self._topics[index]

    def follow(self, topic: str) -> None:
        """From the end that it has now, unless the group has begun before."""
        self._topics, self._steps, self.group = [topic], [0], self._queue
        self._engine.call(self._begin(topic))

    async def _begin(self, topic: str) -> None:
        place = TopicPartition(topic, 0)
        cluster = self._engine.cluster
        (end,) = (await list_offsets(cluster, {place: LATEST})).values()
        assert self.group is not None
        await begin_at(cluster, self.group, topic, {0: end or 0})

    def size(self) -> int:
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
            for topic in self._topics:
                self._engine.forget_topic(topic)
                self._engine.call(delete_topic(self._engine.cluster, topic))

    def receive_now(self) -> Delivery | None:
        """Also what this process has given back just before."""
        self._engine.call(self._engine.tasks.settled())
        return next(iter(self._engine.call(self.receive(1, waits=False))), None)

    async def receive(self, count: int, *, waits: bool = True) -> list[Delivery]:
        """Of the highest priority that there is something of."""
        tasks = self._engine.tasks
        if len(self._topics) == 1:
            wait_s = WAIT_S if waits else 0
            return await tasks.receive(self._topics[0], count, wait_s, group=self.group)
        for topic in self.by_priority:
            if found := await tasks.receive(topic, count, 0, group=self.group):
                return found
        return await self._receive_any(count) if waits else []

    async def _receive_any(self, count: int) -> list[Delivery]:
        """Whatever comes first; what is taken for those that lose goes back."""
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
    """Messages of a queue that one channel has taken and not delivered yet.

    More are taken when all have been delivered and the channel may have more.
    """

    def __init__(self, engine: Engine, topics: QueueTopics, wake: Callable[[], None]) -> None:
        self._engine = engine
        self._topics = topics
        self._wake = wake
        self._found: deque[Delivery] = deque()
        self._wanted = asyncio.Event()
        self._count = 1
        self._task: Task[None] = engine.call(self._start())

    def want(self, count: int | None) -> None:
        """At most so many; None is for any number."""
        if not self._found and not self._wanted.is_set():
            self._count = max(1, min(PREFETCH_MAX if count is None else count, PREFETCH_MAX))
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
                self._wake()
