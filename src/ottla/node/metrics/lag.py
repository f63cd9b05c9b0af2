"""The lag of the groups coordinated here, determined periodically.

The leader of a partition knows its high watermark and when its records were written; it may be
another broker. Each leader is asked once per interval, for all groups at once. The time of the
first unread record is requested only if the group lags and its offset has moved since, because it
does not change: that bounds the cost to one batch header per commit in an interval.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from kio.static.primitive import i32, i64

from ottla.controller.image import MetadataImage
from ottla.coordination.coordinators import Coordinators
from ottla.node.node_parts import Parts
from ottla.protocol.errors import ApiError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.messages.describe_offset_times import (
    AskedPartition,
    AskedTopic,
    DescribeOffsetTimesRequest,
    DescribeOffsetTimesResponse,
)
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import NO_TIMESTAMP
from ottla.replication.record_times import first_unread_ms

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine

logger = logging.getLogger(__name__)

_OFFSETS_AT_A_TIME: Final = 200  # Between two turns of the event loop.

Ask = Callable[[int, DescribeOffsetTimesRequest], Awaitable[DescribeOffsetTimesResponse]]
_Key = tuple[str, TopicPartition]  # A group and a partition.


class GroupLag(NamedTuple):
    group_id: str
    topic: str
    partition: int
    offset: int  # The group's committed offset.
    records: int
    since_ms: int  # The time of the first unread record; NO_TIMESTAMP if there is none, or no time.


class _Committed(NamedTuple):
    group_id: str
    topic_partition: TopicPartition
    offset: int
    topic_id: UUID
    leader: int


class _Found(NamedTuple):
    high_watermark: int
    times_ms: dict[int, int]  # By offset.


# The questions for one leader: offsets by topic id and partition.
_Asked = dict[tuple[UUID, int], set[int]]


@dataclass(slots=True, kw_only=True, eq=False)
class LagWatch:
    parts: Parts
    groups: "Coordinators[GroupMachine]"
    ask: Ask
    interval_s: float
    groups_max: int
    # Replaced as a whole, so that another thread can read it.
    lags: list[GroupLag] = field(init=False, default_factory=list)
    left_out_count: int = field(init=False, default=0)  # Groups beyond the limit.
    # An offset, and the time of its record.
    _known: dict[_Key, tuple[int, int]] = field(init=False, default_factory=dict)

    async def watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(self.interval_s)

    async def look(self) -> None:
        committed = await self._committed()
        found = await self._find(committed)
        lags: list[GroupLag] = []
        known: dict[_Key, tuple[int, int]] = {}
        for count, each in enumerate(committed):
            if count % _OFFSETS_AT_A_TIME == 0:
                await asyncio.sleep(0)
            partition = found.get((each.topic_id, each.topic_partition.partition))
            if partition is None:
                continue  # Its leader did not answer, or has changed.
            key = (each.group_id, each.topic_partition)
            records = max(0, partition.high_watermark - each.offset)
            time_ms = NO_TIMESTAMP
            if records:
                time_ms = partition.times_ms.get(each.offset, NO_TIMESTAMP)
                if time_ms == NO_TIMESTAMP:
                    time_ms = self._known_time(key, each.offset)
                if time_ms != NO_TIMESTAMP:
                    known[key] = (each.offset, time_ms)
            lags.append(
                GroupLag(each.group_id, *each.topic_partition, each.offset, records, time_ms)
            )
        self._known = known
        self.lags = lags

    def _known_time(self, key: _Key, offset: int) -> int:
        known_offset, time_ms = self._known.get(key, (offset, NO_TIMESTAMP))
        return time_ms if known_offset == offset else NO_TIMESTAMP

    async def _committed(self) -> list[_Committed]:
        image, found, groups_count = self.parts.feed.image, list[_Committed](), 0
        for runtime in self.groups.all():
            try:
                group_ids = dict.fromkeys(runtime.machine.groups_with_offsets())
            except ApiError:
                continue  # It is loading.
            for group_id in group_ids:
                groups_count += 1
                if groups_count > self.groups_max:
                    continue
                try:
                    offsets = list(runtime.machine.committed_offsets(group_id).items())
                except ApiError:
                    break  # Another broker coordinates it by now.
                for start in range(0, len(offsets), _OFFSETS_AT_A_TIME):
                    for topic_partition, entry in offsets[start : start + _OFFSETS_AT_A_TIME]:
                        found.extend(
                            _of_image(image, group_id, topic_partition, entry.value.offset)
                        )
                    await asyncio.sleep(0)
        self.left_out_count = max(0, groups_count - self.groups_max)
        return found

    async def _find(self, committed: list[_Committed]) -> dict[tuple[UUID, int], _Found]:
        """By topic id and partition."""
        by_leader: dict[int, _Asked] = {}
        for each in committed:
            asked = by_leader.setdefault(each.leader, {})
            offsets = asked.setdefault((each.topic_id, each.topic_partition.partition), set())
            if self._known.get((each.group_id, each.topic_partition), (-1, 0))[0] != each.offset:
                offsets.add(each.offset)
        answers = await asyncio.gather(*(self._of_leader(*item) for item in by_leader.items()))
        return {key: found for answer in answers for key, found in answer.items()}

    async def _of_leader(self, leader: int, asked: _Asked) -> dict[tuple[UUID, int], _Found]:
        if leader == self.parts.node_id:
            return await self.parts.process.in_thread(self._look_up, asked)
        try:
            response = await self.ask(leader, _request(asked))
        except ApiError as error:
            logger.debug("broker %d does not tell how far groups are behind: %s", leader, error)
            return {}
        return _read(response, asked)

    def _look_up(self, asked: _Asked) -> dict[tuple[UUID, int], _Found]:
        found: dict[tuple[UUID, int], _Found] = {}
        for (topic_id, index), offsets in asked.items():
            try:
                partition = self.parts.replicas.find(topic_id, index)
            except ApiError:
                continue
            high_watermark = partition.log.high_watermark
            times = {
                offset: first_unread_ms(partition, offset)
                for offset in offsets
                if offset < high_watermark
            }
            found[topic_id, index] = _Found(high_watermark, times)
        return found


def _of_image(
    image: MetadataImage, group_id: str, topic_partition: TopicPartition, offset: int
) -> Iterator[_Committed]:
    """Nothing if the topic, or the partition's leader, is gone."""
    topic = image.topics.get(topic_partition.topic)
    state = None if topic is None else topic.partitions.get(topic_partition.partition)
    if topic is not None and state is not None and state.leader >= 0:
        yield _Committed(group_id, topic_partition, offset, topic.topic_id, state.leader)


def _request(asked: _Asked) -> DescribeOffsetTimesRequest:
    topics: dict[UUID, list[AskedPartition]] = {}
    for (topic_id, index), offsets in asked.items():
        wanted = AskedPartition(partition_index=i32(index), offsets=tuple(map(i64, offsets)))
        topics.setdefault(topic_id, []).append(wanted)
    return DescribeOffsetTimesRequest(
        topics=tuple(
            AskedTopic(topic_id=topic_id, partitions=tuple(partitions))
            for topic_id, partitions in topics.items()
        )
    )


def _read(response: DescribeOffsetTimesResponse, asked: _Asked) -> dict[tuple[UUID, int], _Found]:
    found: dict[tuple[UUID, int], _Found] = {}
    for topic in response.topics:
        for each in topic.partitions:
            key: Any = (topic.topic_id, int(each.partition_index))
            if key in asked and not each.error_code:
                times = dict(zip(asked[key], map(int, each.timestamps), strict=False))
                found[key] = _Found(int(each.high_watermark), times)
    return found
