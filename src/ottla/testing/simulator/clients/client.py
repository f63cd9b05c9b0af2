"""What every client needs: a map of leaders, and calls that fail in one of two ways."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.static.primitive import i8

from ottla.client.wire.cluster import metadata_request
from ottla.network.peers import Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition

if TYPE_CHECKING:
    from ottla.testing.simulator.host import Host

CALL_TIMEOUT_MS = 3_000
BACKOFF_S = 0.1

# Try again, with fresh metadata.
RETRIABLE = frozenset(
    {
        ErrorCode.not_leader_or_follower,
        ErrorCode.leader_not_available,
        ErrorCode.unknown_topic_or_partition,
        ErrorCode.unknown_topic_id,
        ErrorCode.fenced_leader_epoch,
        ErrorCode.unknown_leader_epoch,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.kafka_storage_error,
        ErrorCode.offset_not_available,
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        ErrorCode.not_controller,
        ErrorCode.network_exception,
        ErrorCode.replica_not_available,
        ErrorCode.broker_not_available,
        ErrorCode.concurrent_transactions,
        ErrorCode.unstable_offset_commit,
    }
)


class Unavailable(Exception):
    """No response, or one that says to retry."""


@dataclass(frozen=True, slots=True)
class Leader:
    address: Address
    epoch: int


class Client:
    def __init__(self, host: "Host", bootstrap: Sequence[Address]) -> None:
        assert host.process is not None
        self.name = host.name
        self.host = host
        self.process = host.process
        self.chance: random.Random = host.random()
        self.stopping = False
        self.superseded = False  # Another process does its work now.
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self.deleted_topic_ids: set[UUID] = set()  # Brokers that still know them are not believed.
        self.replicas: dict[TopicPartition, tuple[int, ...]] = {}  # As was last heard.
        self._peers = Peers(self.process, self.name, self.chance.random)
        self._bootstrap = bootstrap
        self._leaders: dict[TopicPartition, Leader] = {}
        self._leader_epochs: dict[TopicPartition, int] = {}  # The newest that was heard of.
        self._coordinators: dict[tuple[i8, str], Address] = {}

    @property
    def now(self) -> float:
        return self.host.scheduler.now

    def tell(self, what: str) -> None:
        self.host.scheduler.tell(self.name, what)

    async def back_off(self) -> None:
        await asyncio.sleep(BACKOFF_S * self.chance.uniform(0.5, 2.0))

    async def call(
        self,
        address: Address,
        request: Any,
        version: int | None = None,
        *,
        purpose: str = "",
        timeout_ms: int = CALL_TIMEOUT_MS,
    ) -> Any:
        """In the newest version, if none is given."""
        try:
            return await self._peers.call(
                address, request, version=version, purpose=purpose, timeout_ms=timeout_ms
            )
        except PeerUnreachable as error:
            raise Unavailable(str(error)) from error

    async def call_any(
        self, request: object, version: int | None = None, *, timeout_ms: int = CALL_TIMEOUT_MS
    ) -> Any:
        address = self.chance.choice(self._bootstrap)
        return await self.call(address, request, version, timeout_ms=timeout_ms)

    async def refresh(self) -> None:
        """Ask some broker who leads which partition."""
        response = await self.call_any(metadata_request(None))
        addresses = {
            broker.node_id: Address(broker.host, broker.port) for broker in response.brokers
        }
        topics = [each for each in response.topics if each.topic_id not in self.deleted_topic_ids]
        self.replicas = {
            TopicPartition(topic.name, each.partition_index): tuple(each.replica_nodes)
            for topic in topics
            for each in topic.partitions
        }
        for topic in topics:
            if self.topic_ids.get(topic.name, topic.topic_id) != topic.topic_id:
                self.forget_topic(topic.name)
            self.topic_ids[topic.name] = topic.topic_id
            for each in topic.partitions:
                if each.leader_id in addresses:
                    partition = TopicPartition(topic.name, each.partition_index)
                    leader = Leader(addresses[each.leader_id], each.leader_epoch)
                    self._learn_leader(partition, leader)
        self.topic_names = {topic_id: name for name, topic_id in self.topic_ids.items()}

    def forget_topic(self, topic: str) -> None:
        """The topic was deleted; another of the same name may follow."""
        self.topic_ids.pop(topic, None)
        for known in (self._leaders, self._leader_epochs):
            for partition in [each for each in known if each.topic == topic]:
                del known[partition]

    async def topic_id(self, topic: str) -> UUID:
        if topic not in self.topic_ids:
            await self.refresh()
        if topic not in self.topic_ids:
            raise Unavailable(f"{topic} is not known")
        return self.topic_ids[topic]

    def _learn_leader(self, partition: TopicPartition, leader: Leader) -> None:
        """Brokers may be behind; as in Kafka's clients, an older epoch is ignored."""
        if leader.epoch >= self._leader_epochs.get(partition, -1):
            self._leaders[partition] = leader
            self._leader_epochs[partition] = leader.epoch

    @asynccontextmanager
    async def leader(self, partition: TopicPartition) -> AsyncIterator[Leader]:
        """Looked for again if it is Unavailable in this context."""
        try:
            yield await self.find_leader(partition)
        except Unavailable:
            self.forget_leader(partition)
            raise

    async def find_leader(self, partition: TopicPartition) -> Leader:
        if partition not in self._leaders:
            await self.refresh()
        if partition not in self._leaders:
            raise Unavailable(f"{partition} has no leader")
        return self._leaders[partition]

    def forget_leader(self, partition: TopicPartition) -> None:
        self._leaders.pop(partition, None)

    @asynccontextmanager
    async def coordinator(self, kind: i8, key: str) -> AsyncIterator[Address]:
        """Looked for again if it is Unavailable in this context."""
        if (kind, key) not in self._coordinators:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
            (found,) = (await self.call_any(request)).coordinators
            check(found.error_code)
            self._coordinators[kind, key] = Address(found.host, found.port)
        try:
            yield self._coordinators[kind, key]
        except Unavailable:
            self._coordinators.pop((kind, key), None)
            raise


def check(code: ErrorCode) -> None:
    if code is ErrorCode.none:
        return
    if code in RETRIABLE:
        raise Unavailable(code.name)
    raise RefusedError(code)


class RefusedError(Exception):
    """A response that says that retrying is useless."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
