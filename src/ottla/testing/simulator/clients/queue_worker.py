"""A consumer of a share group that holds what it gets, as a gateway does for others.

It accepts most records, releases some with a delay, and forgets some, whose hold then ends. When it
is to stop it goes on until nothing has come for longer than any delay, and stays with a partition
for as long as something comes: a group that gives a record of each key at a time drains slowly.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import UUID

from kio.schema.share_fetch.v2.request import FetchPartition, FetchTopic
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i64

from ottla.client.wire import configs
from ottla.client.wire.cluster import CoordinatorType
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    Delivery,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeType,
)
from ottla.protocol.messages.share_fetch import ShareFetchRequest
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import iterate_headers
from ottla.records.decoder import iterate_records
from ottla.testing.simulator.checkers.checker import History
from ottla.testing.simulator.clients.admin import Admin
from ottla.testing.simulator.clients.client import Client, RefusedError, Unavailable, check
from ottla.testing.simulator.events import Delivered, QueueDrained, Settled
from ottla.testing.simulator.host import Host

RECORD_LIMIT = i8(1)
GROUP = "workers"
GROUP_CONFIG = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": "10"}
ORDER = {"share.record.order": "key"}
WAIT_MS = 300
HOLDS_MS = (2_000, 6_000)
DELAYS_MS = (500, 6_000)
COUNT_MAX = 3  # What came so often is accepted.
IDLE_S = 15.0


class QueueWorker:
    def __init__(
        self,
        client: Client,
        history: History,
        partitions: list[TopicPartition],
        *,
        in_order: bool = False,
    ) -> None:
        """`partitions` may grow."""
        self._in_order = in_order
        self._client = client
        self._history = history
        self._partitions = partitions
        self._member_id = str(UUID(int=client.chance.getrandbits(128), version=4))
        self._joined_count = 0  # Partitions that there were when the group heard of them.
        self._draining: TopicPartition | None = None  # Something came of it just now.

    async def run(self) -> None:
        client = self._client
        last_delivery_at = client.now
        while not client.stopping or client.now < last_delivery_at + IDLE_S:
            if not client.stopping:
                last_delivery_at = client.now
            try:
                if self._joined_count < len(self._partitions):
                    await self._join()
                partition = self._draining or client.chance.choice(self._partitions)
                self._draining = None
                if await self._work(partition):
                    last_delivery_at = client.now
                    self._draining = partition if client.stopping else None
            except Unavailable:
                last_delivery_at = client.now
                await client.back_off()
            except RefusedError as error:
                client.tell(f"is refused: {error}")
                self._joined_count = 0
                last_delivery_at = client.now
                await client.back_off()
        self._history.tell(QueueDrained(GROUP))

    async def _join(self) -> None:
        """The group gets its configuration, and state for each partition."""
        client = self._client
        count = len(self._partitions)
        for key, value in (GROUP_CONFIG | (ORDER if self._in_order else {})).items():
            await Admin(client).set_config(key, value, GROUP, configs.GROUP)
        request = ShareGroupHeartbeatRequest(
            group_id=GroupId(GROUP),
            member_id=self._member_id,
            member_epoch=i32(0),
            subscribed_topic_names=(TopicName(self._partitions[0].topic),),
        )
        async with client.coordinator(CoordinatorType.GROUP, GROUP) as address:
            check((await client.call(address, request)).error_code)
        self._joined_count = count

    async def _work(self, partition: TopicPartition) -> bool:
        """Whether something came."""
        client = self._client
        async with client.leader(partition) as leader:
            found = await self._receive(partition, leader.address)
        for offset, count in found:
            if count >= COUNT_MAX or client.stopping or client.chance.random() < 0.6:
                await self._settle(partition, offset, count, DeliveryAcknowledgeType.ACCEPT, 0)
            elif client.chance.random() < 0.7:
                delay_ms = client.chance.choice(DELAYS_MS)
                kind = DeliveryAcknowledgeType.RELEASE
                await self._settle(partition, offset, count, kind, delay_ms)
        return bool(found)

    async def _receive(self, partition: TopicPartition, address: Address) -> list[tuple[int, int]]:
        client = self._client
        host = self._host(address)
        hold_ms = client.chance.choice(HOLDS_MS)
        sent_at, sent_ms, moved_ms = client.now, host.now_ms(), host.wall_offset_ms
        request = await self._fetch_request(partition, hold_ms)
        response = await client.call(address, request, purpose=f"{partition}")
        check(response.error_code)
        answers = [data for topic in response.responses for data in topic.partitions]
        for data in answers:
            check(data.error_code)
        found = [
            (offset, int(acquired.delivery_count))
            for data in answers
            for acquired in data.acquired_records
            for offset in range(acquired.first_offset, acquired.last_offset + 1)
        ]
        keys = self._keys(answers)
        for offset, count in found:
            self._history.tell(
                Delivered(
                    partition,
                    offset,
                    count,
                    sent_at=sent_at,
                    hold_until_ms=sent_ms + hold_ms,
                    clock_ms=host.now_ms() if host.wall_offset_ms == moved_ms else None,
                    leader=host.name,
                    clock_set_ms=moved_ms,
                    key=keys.get(offset),
                )
            )
        return found

    def _keys(self, answers: list[Any]) -> dict[int, bytes | None]:
        if not self._in_order:
            return {}
        return {
            record.offset: record.key
            for data in answers
            for position, _ in iterate_headers(data.records or b"")
            for record in iterate_records(data.records, position)
        }

    async def _fetch_request(self, partition: TopicPartition, hold_ms: int) -> ShareFetchRequest:
        topic, index = partition
        wanted = FetchPartition(partition_index=i32(index), acknowledgement_batches=())
        return ShareFetchRequest(
            group_id=GroupId(GROUP),
            member_id=self._member_id,
            share_session_epoch=i32(0),
            max_wait=milliseconds(WAIT_MS),
            min_bytes=i32(1),
            max_bytes=i32(1 << 20),
            max_records=i32(self._client.chance.randint(1, 20)),
            batch_size=i32(500),
            share_acquire_mode=RECORD_LIMIT,
            topics=(FetchTopic(topic_id=await self._client.topic_id(topic), partitions=(wanted,)),),
            forgotten_topics_data=(),
            hold_ms=i32(hold_ms),
        )

    async def _settle(
        self,
        partition: TopicPartition,
        offset: int,
        count: int,
        kind: DeliveryAcknowledgeType,
        delay_ms: int,
    ) -> None:
        """Once. It is told before, for who is killed meanwhile tells nothing."""
        client = self._client
        delivery = Delivery(
            first_offset=i64(offset),
            last_offset=i64(offset),
            holder=self._member_id,
            delivery_count=i16(count),
            type=i8(kind),
            delay_ms=i64(delay_ms),
        )
        with suppress(Unavailable):
            async with client.leader(partition) as leader:
                settled = Settled(
                    partition,
                    offset,
                    count,
                    is_accepted=kind is DeliveryAcknowledgeType.ACCEPT,
                    due_ms=self._host(leader.address).now_ms() + delay_ms,
                    at=client.now,
                    known=False,
                )
                self._history.tell(settled)
                code = await self._call_settle(partition, leader.address, delivery)
            if code is ErrorCode.none:
                self._history.tell(replace(settled, at=client.now, known=True))

    async def _call_settle(
        self, partition: TopicPartition, address: Address, delivery: Delivery
    ) -> ErrorCode:
        topic, index = partition
        asked = AcknowledgedPartition(partition_index=i32(index), deliveries=(delivery,))
        topics = (
            AcknowledgedTopic(topic_id=await self._client.topic_id(topic), partitions=(asked,)),
        )
        group = AcknowledgedGroup(group_id=GroupId(GROUP), topics=topics)
        request = DeliveryAcknowledgeRequest(groups=(group,))
        response: Any = await self._client.call(address, request)
        (answer,) = response.groups[0].topics[0].partitions
        check(answer.error_code)
        code: ErrorCode = answer.deliveries[0].error_code
        return code

    def _host(self, address: Address) -> Host:
        network = self._client.host.network
        return network.hosts[network.resolve(address.host)]
