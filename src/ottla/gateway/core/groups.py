"""Consumer groups of every kind, and their lag in records and in seconds.

The lag in seconds is the age of the oldest unprocessed record. Reading that record costs a fetch,
so it is computed for one group at a time, for a bounded number of partitions at once.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.describe_share_group_offsets.v1.request import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.types import GroupId

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.reading import fetch, list_offsets
from ottla.client.wire.cluster import CoordinatorType, TopicPartition, expect_one
from ottla.client.wire.errors import BrokerError, WireError, validate_answer
from ottla.client.wire.offsets import LATEST, Isolation
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.records.batch import iterate_headers
from ottla.records.decoder import iterate_records

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"

_DESCRIBE: Final[Mapping[str, Any]] = {
    CONSUMER: ConsumerGroupDescribeRequest,
    SHARE: ShareGroupDescribeRequest,
}
_LOOKS_AT_ONCE: Final = 8
_LOOK_BYTES: Final = 64 * 1024


class Group(NamedTuple):
    id: str
    type: str
    state: str
    protocol: str


class Member(NamedTuple):
    id: str
    client_id: str
    host: str
    instance_id: str | None
    partitions: tuple[TopicPartition, ...]


class Progress(NamedTuple):
    """A group's progress in one partition."""

    offset: int  # Everything before it is processed.
    end_offset: int
    lag: int  # Records left to process.
    lag_ms: int | None  # Age of the oldest of them; 0 without a lag, None if unknown.
    note: str | None = None  # A hint for operators, such as waiting dead letters.


Reached = tuple[int, int | None, str | None]  # Offset, lag if the cluster reports it, note.


class GroupDescription(NamedTuple):
    group: Group
    members: tuple[Member, ...]
    progress: Mapping[TopicPartition, Progress]


class Groups:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looks = asyncio.Semaphore(_LOOKS_AT_ONCE)

    async def all(self, kind: str | None = None) -> list[Group]:
        async def ask() -> list[Group]:
            found = []
            for broker in (await self._cluster.every_broker()).values():
                response = await broker.call(ListGroupsRequest())
                validate_answer(response.error_code, "the groups")
                found += [
                    Group(
                        each.group_id,
                        (each.group_type or CLASSIC).lower(),
                        each.group_state,
                        each.protocol_type,
                    )
                    for each in response.groups
                ]
            return found

        groups = await self._cluster.retry(ask)
        return sorted(each for each in groups if kind in (None, each.type))

    async def describe(self, group_id: str) -> GroupDescription:
        """Raises GROUP_ID_NOT_FOUND if there is no such group."""
        group = next((each for each in await self.all() if each.id == group_id), None)
        if group is None:
            raise BrokerError(ErrorCode.group_id_not_found, f"group {group_id}")
        members = await self._members(group)
        if group.type == SHARE:
            offsets = await self._share_offsets(group_id)
        else:
            offsets = await self._committed(group_id)
        return GroupDescription(group, members, await self._progress(offsets))

    async def delete(self, group_id: str) -> None:
        request = DeleteGroupsRequest(groups_names=(GroupId(group_id),))

        async def delete() -> None:
            answer = expect_one((await self._ask(group_id, request)).results)
            validate_answer(answer.error_code, f"group {group_id}")

        await self._cluster.retry(delete)

    # Members.

    async def _members(self, group: Group) -> tuple[Member, ...]:
        """Of classic groups, only the members themselves know their assignments."""
        if group.type in _DESCRIBE:
            request = _DESCRIBE[group.type](
                group_ids=(GroupId(group.id),), include_authorized_operations=False
            )
            return tuple(map(_member, (await self._described(group.id, request)).members))
        asked = DescribeGroupsRequest(
            groups=(GroupId(group.id),), include_authorized_operations=False
        )
        return tuple(
            Member(each.member_id, each.client_id, each.client_host, each.group_instance_id, ())
            for each in (await self._described(group.id, asked)).members
        )

    async def _described(self, group_id: str, request: Any) -> Any:
        async def ask() -> Any:
            found = expect_one((await self._ask(group_id, request)).groups)
            validate_answer(found.error_code, f"group {group_id}")
            return found

        return await self._cluster.retry(ask)

    # Offsets.

    async def _committed(self, group_id: str) -> dict[TopicPartition, Reached]:
        wanted = OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=None)
        request = OffsetFetchRequest(groups=(wanted,), require_stable=False)
        found = await self._described(group_id, request)
        names = {}
        if any(not topic.name for topic in found.topics):
            names = {topic.id: name for name, topic in (await self._cluster.topics()).items()}
        return {
            TopicPartition(topic.name or names[topic.topic_id], each.partition_index): (
                each.committed_offset,
                None,
                None,
            )
            for topic in found.topics
            if topic.name or topic.topic_id in names
            for each in topic.partitions
            if each.committed_offset >= 0
        }

    async def _share_offsets(self, group_id: str) -> dict[TopicPartition, Reached]:
        """With the lag that leaders report, which accounts for records processed out of order."""
        asked = DescribeShareGroupOffsetsRequestGroup(group_id=GroupId(group_id), topics=None)
        request = DescribeShareGroupOffsetsRequest(groups=(asked,))
        found = await self._described(group_id, request)
        return {
            TopicPartition(topic.topic_name, each.partition_index): (
                each.start_offset,
                each.lag if each.lag >= 0 else None,
                each.error_message,
            )
            for topic in found.topics
            for each in topic.partitions
            if each.error_code is ErrorCode.none and each.start_offset >= 0
        }

    async def _progress(
        self, offsets: Mapping[TopicPartition, Reached]
    ) -> dict[TopicPartition, Progress]:
        existing = await self._cluster.topics(
            {topic_partition.topic for topic_partition in offsets}
        )
        topic_partitions = [
            topic_partition
            for topic_partition in sorted(offsets)
            if topic_partition.topic in existing
            and topic_partition.partition in existing[topic_partition.topic].leaders
        ]
        ends = await list_offsets(self._cluster, dict.fromkeys(topic_partitions, LATEST))

        async def progress(topic_partition: TopicPartition) -> Progress:
            offset, lag, note = offsets[topic_partition]
            end_offset = ends[topic_partition] or 0
            if lag is None:
                lag = max(0, end_offset - offset)
            return Progress(
                offset, end_offset, lag, await self._age_ms(topic_partition, offset, lag), note
            )

        found = await asyncio.gather(*map(progress, topic_partitions))
        return dict(zip(topic_partitions, found, strict=True))

    async def _age_ms(self, topic_partition: TopicPartition, offset: int, lag: int) -> int | None:
        """Age of the first record from the offset on; None if it cannot be read."""
        if lag <= 0:
            return 0
        async with self._looks:
            try:
                found = await fetch(
                    self._cluster,
                    await self._cluster.leader(topic_partition),
                    topic_partition,
                    offset,
                    Isolation.READ_UNCOMMITTED,
                    bytes_max=_LOOK_BYTES,
                )
            except WireError:
                return None
        timestamp = _first_timestamp(bytes(found.records), offset)
        if timestamp is None:
            return None
        return max(0, time.time_ns() // 1_000_000 - timestamp)

    async def _ask(self, group_id: str, request: Any) -> Any:
        coordinator = await self._cluster.coordinator(CoordinatorType.GROUP, group_id)
        return await coordinator.call(request)


def _first_timestamp(content: bytes, offset: int) -> int | None:
    for position, header in iterate_headers(content):
        if not header.is_control and header.last_offset >= offset:
            for record in iterate_records(content, position, from_offset=offset):
                return record.timestamp
    return None


def _member(found: Any) -> Member:
    return Member(
        found.member_id,
        found.client_id,
        found.client_host,
        getattr(found, "instance_id", None),  # Members of share groups have none.
        tuple(
            TopicPartition(topic.topic_name, partition)
            for topic in found.assignment.topic_partitions
            for partition in topic.partitions
        ),
    )
