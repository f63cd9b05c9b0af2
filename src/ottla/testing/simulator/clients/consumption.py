"""What a member of a group does with the partitions that it has: read, process, commit."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.types import GroupId
from kio.static.primitive import i32, i64

from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.client import Client, Unavailable, check
from ottla.testing.simulator.clients.reader import Fetcher
from ottla.testing.simulator.events import (
    Confirmed,
    OffsetCommitted,
    OffsetFetched,
    Owned,
    Processed,
)

WAIT_MS = 300


class Consumption:
    def __init__(self, client: Client, history: History, group: str) -> None:
        self.client = client
        self.group = group
        self.owned: dict[TopicPartition, Fetcher] = {}
        self._history = history
        self._committed: dict[TopicPartition, int] = {}  # Offsets that need not be committed again.

    def coordinator(self) -> AbstractAsyncContextManager[Address]:
        return self.client.coordinator(CoordinatorType.GROUP, self.group)

    async def take(self, partition: TopicPartition, member_id: str, epoch: int) -> None:
        """Begin to read a partition where the group has stopped. Unavailable, RefusedError."""
        given_at = asked_at = self.client.now
        offset = await self.fetch_offset(partition, member_id, epoch)
        self._history.tell(OffsetFetched(self.group, partition, offset, asked_at))
        self._history.tell(Owned(self.group, member_id, partition, given_at))
        self.client.tell(f"takes {partition} from {offset}")
        self._committed[partition] = offset
        self.owned[partition] = Fetcher(self.client, partition, max(offset, 0), committed=False)

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in tuple(partitions):
            self.client.tell(f"drops {partition}")
            del self.owned[partition]

    def confirm(self, partitions: Iterable[TopicPartition], member_id: str, sent_at: float) -> None:
        for partition in partitions:
            self._history.tell(Confirmed(self.group, member_id, partition, sent_at))

    async def poll(self) -> None:
        """Read and process what comes next in one of the partitions."""
        partition = self.client.chance.choice(list(self.owned))
        fetcher = self.owned[partition]
        records = await fetcher.poll(WAIT_MS)
        if self.owned.get(partition) is fetcher:
            for record in records:
                self._history.tell(Processed(self.group, partition, record))

    async def commit(self, member_id: str, epoch: int) -> None:
        """What was processed. Unavailable, RefusedError."""
        offsets = {
            partition: fetcher.offset
            for partition, fetcher in self.owned.items()
            if fetcher.offset > max(self._committed[partition], 0)
        }
        if not offsets:
            return
        sent_at = self.client.now
        request = await self._commit_request(offsets, member_id, epoch)
        async with self.coordinator() as address:
            try:
                response = await self.client.call(
                    address, request, self.client.chance.choice((9, 10))
                )
            except Unavailable:
                self._tell_committed(offsets, known=False)
                raise
            for topic in response.topics:
                for each in topic.partitions:
                    if each.error_code in _UNDECIDED:
                        self._tell_committed(offsets, known=False)
                    check(each.error_code)
        self._tell_committed(offsets, known=True)
        self._committed |= offsets
        self.confirm(offsets, member_id, sent_at)

    async def fetch_offset(self, partition: TopicPartition, member_id: str, epoch: int) -> int:
        """That the group has committed, or -1. Waits for transactions that may change it."""
        client = self.client
        topic, index = partition
        wanted = OffsetFetchRequestTopics(
            name=topic, topic_id=await client.topic_id(topic), partition_indexes=(i32(index),)
        )
        request = OffsetFetchRequest(
            groups=(
                OffsetFetchRequestGroup(
                    group_id=GroupId(self.group),
                    member_id=member_id or None,
                    member_epoch=i32(epoch),
                    topics=(wanted,),
                ),
            ),
            require_stable=True,
        )
        async with self.coordinator() as address:
            response = await client.call(address, request, client.chance.choice((9, 10)))
            (group,) = response.groups
            check(group.error_code)
            ((found,),) = (each.partitions for each in group.topics)
            check(found.error_code)
        return int(found.committed_offset)

    async def _commit_request(
        self, offsets: dict[TopicPartition, int], member_id: str, epoch: int
    ) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in offsets.items():
            topics.setdefault(topic, []).append(
                OffsetCommitRequestPartition(
                    partition_index=i32(index), committed_offset=i64(offset), committed_metadata=""
                )
            )
        topic_ids = {topic: await self.client.topic_id(topic) for topic in topics}
        return OffsetCommitRequest(
            group_id=GroupId(self.group),
            generation_id_or_member_epoch=i32(epoch),
            member_id=member_id,
            group_instance_id=None,
            topics=tuple(
                OffsetCommitRequestTopic(
                    name=topic, topic_id=topic_ids[topic], partitions=tuple(partitions)
                )
                for topic, partitions in topics.items()
            ),
        )

    def _tell_committed(self, offsets: dict[TopicPartition, int], *, known: bool) -> None:
        for partition, offset in offsets.items():
            self.client.tell(f"{'committed' if known else 'may commit'} {offset} of {partition}")
            self._history.tell(
                OffsetCommitted(self.group, partition, offset, self.client.now, known)
            )


# The records may have been written, and may come to be committed.
_UNDECIDED = frozenset(
    {
        ErrorCode.request_timed_out,
        ErrorCode.not_coordinator,
        ErrorCode.coordinator_not_available,
        ErrorCode.kafka_storage_error,
        ErrorCode.not_enough_replicas_after_append,
    }
)
