"""The ends of partitions, read once for any number of readers.

A tail holds one partition's newest records, decoded, in a bounded buffer. One waiting fetch per
broker keeps all tails up to date that the broker leads. A follower has a position in each of its
partitions and no buffer. While its positions are in the tails it receives the shared records; one
that falls behind the buffers, or starts in the past, reads by itself until it has caught up. So a
reader costs little, and a slow one delays nobody else.

Only committed records are shown.
"""

import asyncio
import itertools
import logging
import random
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ottla.client.wire.cluster import NO_LEADER, TopicPartition
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, WireError
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.gateway.core.filters import EVERYTHING, Filter
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record

TAIL_BYTES_MAX = 1 << 20
RECORD_OVERHEAD_BYTES = 200  # Cost of a decoded record besides its key, value and headers.
WAIT_MS = 250  # A new tail joins when the waiting fetch returns.
READ_COUNT_MAX = 500
NEW_PARTITIONS_S = 30.0  # How often topics are checked for new partitions.
OWN_READS_MAX = 16  # Concurrent; further readers of the past wait.

UNKNOWN_COUNT_MAX = 3  # A broker may not know a brand-new topic yet.

_GONE = (ErrorCode.unknown_topic_or_partition, ErrorCode.unknown_topic_id)
_FIRST_PAUSE_S = 0.05
_PAUSE_S_MAX = 2.0

logger = logging.getLogger(__name__)


class Stretch(NamedTuple):
    """Part of a partition, as returned by a fetch."""

    records: Sequence[Record]
    next_offset: int  # After everything that was examined, shown or not.


class Source(Protocol):
    """How partitions are read. Errors are WireErrors."""

    async def leaders(self, topic: str, *, fresh: bool) -> Mapping[int, int]:
        """Node id by partition."""

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first committed offset at or after each time in milliseconds.

        EARLIEST and LATEST stand for the ends; a time after the last record gives the end.
        """

    async def fetch(
        self, node_id: int, positions: Mapping[TopicPartition, int], *, wait_ms: int
    ) -> dict[TopicPartition, Stretch | BrokerError]:
        """With a wait, uses a connection reserved for waiting fetches."""

    def leave(self, node_id: int) -> None:
        """No more waiting fetches will go to the node."""


@dataclass(eq=False, slots=True)
class Item:
    """A partition's record and its encoding, which readers share."""

    partition: int
    record: Record
    encoded: bytes | None = None


class Gap(NamedTuple):
    """Records that were removed before the reader reached them."""

    partition: int
    first: int
    next_offset: int


class Tail:
    """Invariant: holds every visible record of `[start, next_offset)`, in order."""

    def __init__(self, topic_partition: TopicPartition, offset: int, bytes_max: int) -> None:
        self.topic_partition = topic_partition
        self.start = offset
        self.next_offset = offset
        self.followers: set[Follower] = set()
        self.error: WireError | None = None  # Set when the partition is gone.
        self._items: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        self._bytes_max = bytes_max

    def extend(self, stretch: Stretch) -> None:
        for record in stretch.records:
            if record.offset < self.next_offset:
                continue
            size = _size(record)
            self._items.append((Item(self.topic_partition.partition, record), size))
            self._bytes += size
        self.next_offset = max(self.next_offset, stretch.next_offset)
        while self._bytes > self._bytes_max and len(self._items) > 1:
            item, size = self._items.popleft()
            self._bytes -= size
            self.start = item.record.offset + 1
        self.wake()

    def restart(self, offset: int) -> None:
        """The log does not have the next offset; continue at another."""
        self._items.clear()
        self._bytes = 0
        partition = self.topic_partition.partition
        for follower in self.followers:
            if self.start <= follower.positions[partition] and offset < self.next_offset:
                follower.positions[partition] = offset  # The log was truncated or recreated.
        self.start = self.next_offset = offset
        self.wake()

    def fail(self, error: WireError) -> None:
        self.error = error
        self.wake()

    def wake(self) -> None:
        for follower in self.followers:
            follower.wake()

    def since(self, offset: int, count_max: int) -> list[Item]:
        """The first items at or after an offset that is not before the start."""
        items = self._items
        if not items or items[-1][0].record.offset < offset:
            return []
        if items[0][0].record.offset >= offset:
            return [item for item, _ in itertools.islice(items, count_max)]
        # Readers that keep up want only the last few.
        found = [
            item
            for item, _ in itertools.takewhile(
                lambda pair: pair[0].record.offset >= offset, reversed(items)
            )
        ]
        found.reverse()
        return found[:count_max]


class Closed(Exception):
    """The gateway is stopping; the reader reconnects elsewhere."""


class Follower:
    """Reads partitions of a topic; `read` is called by one task at a time."""

    __slots__ = ("_filter", "_next", "_tails", "_waiter", "grows", "positions", "topic")

    def __init__(
        self, tails: "Tails", topic: str, positions: dict[int, int], wanted: Filter, *, grows: bool
    ) -> None:
        self.topic = topic
        self.positions = positions  # Next offset by partition.
        self.grows = grows  # Whether to read partitions added to the topic later.
        self._tails = tails
        self._filter = wanted
        self._next = 0  # Index of the partition to look at first; rotates.
        self._waiter: asyncio.Future[None] | None = None

    async def read(self, timeout_s: float) -> list[Item | Gap]:
        """The next records, after advancing `positions`; empty after the timeout.

        Skips records that the filter excludes. Raises BrokerError when a partition is gone, Closed
        when the gateway stops.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        pause_s = _FIRST_PAUSE_S
        while True:
            if self._tails.is_closed:
                raise Closed
            found = self._take()
            if not found:
                try:
                    found = await self._read_behind()
                except WireError as error:
                    if not error.may_pass:
                        raise
                    await asyncio.sleep(pause_s * random.uniform(0.5, 1))
                    pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            if found or loop.time() >= deadline:
                return found
            if not self._has_more():
                await self._wait(deadline - loop.time())

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        self.wake()
        self._tails.forget(self)

    def _take(self) -> list[Item | Gap]:
        """Read from the shared buffers."""
        found: list[Item | Gap] = []
        order = list(self.positions)
        self._next = (self._next + 1) % len(order)
        for partition in order[self._next :] + order[: self._next]:
            position = self.positions[partition]
            tail = self._tails.tail(self.topic, partition)
            if tail.error is not None:
                raise tail.error
            if not tail.start <= position < tail.next_offset:
                continue
            count_max = READ_COUNT_MAX - len(found)
            items = tail.since(position, count_max)
            found += [item for item in items if self._filter.matches(partition, item.record)]
            if len(items) == count_max:
                self.positions[partition] = items[-1].record.offset + 1
                break
            self.positions[partition] = tail.next_offset
        return found

    async def _read_behind(self) -> list[Item | Gap]:
        """Fetch directly from the first partition whose position is before its tail."""
        for partition, position in self.positions.items():
            if position >= self._tails.tail(self.topic, partition).start:
                continue
            answer = await self._tails.read(TopicPartition(self.topic, partition), position)
            self.positions[partition] = answer.next_offset
            if isinstance(answer, Gap):
                return [answer]
            return [
                Item(partition, record)
                for record in answer.records
                if record.offset >= position and self._filter.matches(partition, record)
            ]
        return []

    def _has_more(self) -> bool:
        for partition, position in self.positions.items():
            tail = self._tails.tail(self.topic, partition)
            if position < tail.next_offset or tail.error is not None:
                return True
        return self._tails.is_closed

    async def _wait(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(timeout_s, self.wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            timer.cancel()


class Tails:
    """All tails of a gateway, by partition; each exists while it has followers."""

    def __init__(self, source: Source, *, tail_bytes_max: int = TAIL_BYTES_MAX) -> None:
        self.source = source
        self.is_closed = False
        self.own_reads_count = 0
        self._tail_bytes_max = tail_bytes_max
        self._tails: dict[TopicPartition, Tail] = {}
        self._fetches: dict[int, _Fetch] = {}  # By node id.
        self._own_reads = asyncio.Semaphore(OWN_READS_MAX)
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stopping: asyncio.Event) -> None:
        """Watch the topics; end the readers when the gateway stops."""
        while not stopping.is_set():
            try:
                async with asyncio.timeout(NEW_PARTITIONS_S):
                    await stopping.wait()
            except TimeoutError:
                with suppress(WireError):
                    await self.look_for_partitions()
        self.end_readers()

    async def close(self) -> None:
        self.end_readers()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end_readers(self) -> None:
        """Every read, current and future, raises Closed."""
        self.is_closed = True
        for tail in self._tails.values():
            tail.wake()

    async def follow(
        self,
        topic: str,
        positions: Mapping[int, int],
        wanted: Filter = EVERYTHING,
        *,
        grows: bool = False,
    ) -> Follower:
        """A reader that starts at these offsets; the caller closes it."""
        assert positions, "a follower of no partition"
        follower = Follower(self, topic, {}, wanted, grows=grows)
        try:
            for partition, offset in positions.items():
                await self._join(follower, TopicPartition(topic, partition), offset)
        except BaseException:
            follower.close()
            raise
        return follower

    def tail(self, topic: str, partition: int) -> Tail:
        return self._tails[TopicPartition(topic, partition)]

    def is_followed(self, tail: Tail) -> bool:
        return self._tails.get(tail.topic_partition) is tail

    def forget(self, follower: Follower) -> None:
        for partition in follower.positions:
            topic_partition = TopicPartition(follower.topic, partition)
            tail = self._tails.get(topic_partition)
            if tail is not None:
                tail.followers.discard(follower)
                if not tail.followers:
                    del self._tails[topic_partition]

    async def read(self, topic_partition: TopicPartition, offset: int) -> Stretch | Gap:
        """Read one stretch for one reader that is behind."""
        self.own_reads_count += 1
        async with self._own_reads:
            leaders = await self.source.leaders(topic_partition.topic, fresh=False)
            node_id = leaders.get(topic_partition.partition, NO_LEADER)
            answers = await self.source.fetch(node_id, {topic_partition: offset}, wait_ms=0)
            answer = answers[topic_partition]
            if isinstance(answer, OffsetOutOfRange):
                start = (await self.source.offsets({topic_partition: EARLIEST}))[topic_partition]
                if start > offset:
                    return Gap(topic_partition.partition, offset, start)
            if isinstance(answer, BrokerError):
                if answer.may_pass:
                    await self.source.leaders(topic_partition.topic, fresh=True)
                raise answer
            return answer

    async def look_for_partitions(self) -> None:
        """Add new partitions of the topics to followers that grow."""
        growing: dict[str, set[Follower]] = {}
        for tail in self._tails.values():
            found = {follower for follower in tail.followers if follower.grows}
            growing.setdefault(tail.topic_partition.topic, set()).update(found)
        for topic, followers in growing.items():
            if not followers:
                continue
            for partition in await self.source.leaders(topic, fresh=True):
                for follower in followers:
                    if partition not in follower.positions:
                        await self._join(follower, TopicPartition(topic, partition), 0)
                        follower.wake()

    async def _join(self, follower: Follower, topic_partition: TopicPartition, offset: int) -> None:
        if topic_partition not in self._tails:
            end = (await self.source.offsets({topic_partition: LATEST}))[topic_partition]
            if topic_partition not in self._tails:  # Another reader may have added it.
                self._tails[topic_partition] = Tail(topic_partition, end, self._tail_bytes_max)
                self.attach_to_leaders([self._tails[topic_partition]])
        self._tails[topic_partition].followers.add(follower)
        follower.positions[topic_partition.partition] = offset

    def attach_to_leaders(self, tails: Sequence[Tail], pause_s: float = 0) -> None:
        """Add tails to the fetches of their current leaders; after a pause, with fresh metadata."""
        by_topic: dict[str, list[Tail]] = {}
        for tail in tails:
            by_topic.setdefault(tail.topic_partition.topic, []).append(tail)
        for topic, group in by_topic.items():
            self._start(self._attach(topic, group, pause_s))

    async def _attach(self, topic: str, tails: Sequence[Tail], pause_s: float) -> None:
        unknown_count = 0
        while tails := [tail for tail in tails if self.is_followed(tail)]:
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))
            leaders: Mapping[int, int] = {}
            try:
                leaders = await self.source.leaders(topic, fresh=pause_s > 0)
            except WireError as error:
                logger.debug("who leads the partitions of %s: %s", topic, error)
                gone = isinstance(error, BrokerError) and error.code in _GONE
                unknown_count += gone
                if not error.may_pass or unknown_count == UNKNOWN_COUNT_MAX:
                    for tail in tails:
                        tail.fail(error)
                    return
            for tail in tails:
                node_id = leaders.get(tail.topic_partition.partition, NO_LEADER)
                if node_id != NO_LEADER and self.is_followed(tail):
                    self._fetch_of(node_id).tails.add(tail)
            tails = [
                t for t in tails if leaders.get(t.topic_partition.partition, NO_LEADER) == NO_LEADER
            ]
            pause_s = longer(pause_s)

    def _fetch_of(self, node_id: int) -> "_Fetch":
        if node_id not in self._fetches:
            self._fetches[node_id] = _Fetch(self, node_id)
            self._start(self._keep_up(self._fetches[node_id]))
        return self._fetches[node_id]

    async def _keep_up(self, fetch: "_Fetch") -> None:
        try:
            while fetch.drop_unwanted():
                await fetch.once()
        finally:
            del self._fetches[fetch.node_id]
            self.source.leave(fetch.node_id)
            if not self.is_closed and fetch.tails:
                self.attach_to_leaders(list(fetch.tails), _PAUSE_S_MAX)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_end)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("following partitions: %s", error, exc_info=error)


class _Fetch:
    """The waiting fetch that keeps one node's tails up to date, one request at a time."""

    def __init__(self, owner: Tails, node_id: int) -> None:
        self.node_id = node_id
        self.tails: set[Tail] = set()
        self._owner = owner
        self._pause_s = 0.0

    def drop_unwanted(self) -> bool:
        """Drop tails without followers; returns whether any are left."""
        self.tails = {tail for tail in self.tails if self._owner.is_followed(tail)}
        return bool(self.tails)

    async def once(self) -> None:
        asked = {tail.topic_partition: tail for tail in self.tails}
        positions = {topic_partition: tail.next_offset for topic_partition, tail in asked.items()}
        try:
            answers = await self._owner.source.fetch(self.node_id, positions, wait_ms=WAIT_MS)
            refused = []
            for topic_partition, tail in asked.items():
                if not await self._on_answer(tail, answers[topic_partition]):
                    refused.append(tail)
        except WireError as error:
            logger.debug("fetch from node %d: %s", self.node_id, error)
            refused = list(asked.values())
        if refused:
            self.tails -= set(refused)
            self._pause_s = longer(self._pause_s)
            self._owner.attach_to_leaders(refused, self._pause_s)
        else:
            self._pause_s = 0.0

    async def _on_answer(self, tail: Tail, answer: Stretch | BrokerError) -> bool:
        """False if another node must be asked."""
        if isinstance(answer, Stretch):
            if answer.next_offset > tail.next_offset:
                tail.extend(answer)
            return True
        if isinstance(answer, OffsetOutOfRange):
            topic_partition, source = tail.topic_partition, self._owner.source
            start = (await source.offsets({topic_partition: EARLIEST}))[topic_partition]
            if start <= tail.next_offset:
                start = (await source.offsets({topic_partition: LATEST}))[topic_partition]
            tail.restart(start)
            return True
        return False


def longer(pause_s: float) -> float:
    return min(max(2 * pause_s, _FIRST_PAUSE_S), _PAUSE_S_MAX)


def _size(record: Record) -> int:
    size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += RECORD_OVERHEAD_BYTES // 2 + len(name) + len(value or b"")
    return size
