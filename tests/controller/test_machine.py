from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.types import BrokerId, TopicName
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i8, i32, i64
from tests.controller.cluster import Cluster
from tests.controller.test_configs import increments
from tests.controller.test_topics import addition, creation, deletion, topic

from ottla.controller.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.record_codec import MetadataRecordCodec
from ottla.controller.records import PartitionRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError

NAMES = st.sampled_from(["a", "b", "a.b", "a_b", "c", "bad name"])
BROKERS = st.integers(1, 4)


class AnyHistory(RuleBasedStateMachine):
    """After any requests, a controller can be rebuilt from its log and from its snapshot."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(brokers=2)

    def attempt(self, operation: Callable[[], Result[Any]]) -> None:
        try:
            self.cluster.apply(operation())
        except ApiError:
            pass

    @rule(name=NAMES, partitions=st.integers(-1, 4), factor=st.integers(-1, 3))
    def create_topic(self, name: str, partitions: int, factor: int) -> None:
        request = creation(topic(name, partitions, factor))
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(name=NAMES)
    def delete_topic(self, name: str) -> None:
        request = deletion({"name": name, "topic_id": None})
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(name=NAMES, count=st.integers(0, 6))
    def add_partitions(self, name: str, count: int) -> None:
        self.attempt(lambda: self.cluster.result_of(addition(name, count)))

    @rule(name=NAMES, operation=st.integers(0, 3), value=st.sampled_from(["1", "compact", ""]))
    def alter_topic(self, name: str, operation: int, value: str) -> None:
        key = "cleanup.policy" if value == "compact" else "retention.ms"
        request = increments((key, operation, value), resource=(TOPIC_RESOURCE, name))
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(name=st.sampled_from(["", "1", "3"]), operation=st.integers(0, 1))
    def alter_broker(self, name: str, operation: int) -> None:
        request = increments(("num.partitions", operation, "2"), resource=(BROKER_RESOURCE, name))
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(broker_id=BROKERS, incarnation=st.integers(1, 3))
    def register(self, broker_id: int, incarnation: int) -> None:
        try:
            self.cluster.register(broker_id, incarnation=incarnation)
        except ApiError:
            pass

    @rule(broker_id=BROKERS, want_fence=st.booleans(), want_shut_down=st.booleans())
    def heartbeat(self, broker_id: int, want_fence: bool, want_shut_down: bool) -> None:
        self.attempt(
            lambda: self.cluster.heartbeat_result(
                broker_id, want_fence=want_fence, want_shut_down=want_shut_down
            )
        )

    @rule(broker_id=BROKERS)
    def unregister(self, broker_id: int) -> None:
        request = UnregisterBrokerRequest(broker_id=BrokerId(broker_id))
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(broker_id=BROKERS)
    def expire(self, broker_id: int) -> None:
        if f"broker-session-{broker_id}" in self.cluster.timers.deadlines:
            self.cluster.expire_session(broker_id)

    @rule(broker_id=BROKERS)
    def allocate(self, broker_id: int) -> None:
        broker = self.cluster.image.brokers.get(broker_id)
        request = AllocateProducerIdsRequest(
            broker_id=BrokerId(broker_id), broker_epoch=broker.broker_epoch if broker else i64(-1)
        )
        self.attempt(lambda: self.cluster.result_of(request))

    @invariant()
    def log_and_snapshot_give_the_same_image(self) -> None:
        codec = MetadataRecordCodec()
        from_log = image_of(codec.decode(*codec.encode(record)) for record in self.cluster.records)
        from_snapshot = image_of(
            codec.decode(*codec.encode(record)) for record in self.cluster.machine.snapshot()
        )
        assert from_log == self.cluster.image
        assert from_snapshot == self.cluster.image

    @rule(name=NAMES, replicas=st.none() | st.lists(BROKERS, max_size=3).map(tuple))
    def reassign(self, name: str, replicas: tuple[int, ...] | None) -> None:
        target = ReassignablePartition(
            partition_index=i32(0),
            replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
        )
        request = AlterPartitionReassignmentsRequest(
            topics=(ReassignableTopic(name=TopicName(name), partitions=(target,)),)
        )
        self.attempt(lambda: self.cluster.result_of(request))

    @rule(kind=st.integers(0, 1))
    def elect(self, kind: int) -> None:
        request = ElectLeadersRequest(election_type=i8(kind), topic_partitions=None)
        self.attempt(lambda: self.cluster.result_of(request))

    @invariant()
    def the_index_knows_every_partition(self) -> None:
        index = PartitionIndex(MetadataImage())
        for record in self.cluster.records:
            index.replay(record)
        partitions = [
            partition
            for each in self.cluster.image.topics.values()
            for partition in each.partitions.values()
        ]

        def same(
            found: Iterable[PartitionRecord], is_among: Callable[[PartitionRecord], object]
        ) -> None:
            expected = [partition for partition in partitions if is_among(partition)]
            assert sorted(found, key=partition_key) == sorted(expected, key=partition_key)

        for broker_id in range(1, 5):
            same(index.in_sync(broker_id), partial(is_in_sync, broker_id))
            same(index.in_sync_or_eligible(broker_id), partial(is_in_sync_or_eligible, broker_id))
            assert index.leads_any(broker_id) == any(
                partition.leader == broker_id for partition in partitions
            )
        same(index.leaderless(), lambda partition: partition.leader == -1)
        same(index.not_preferred(), lambda partition: partition.leader != partition.replicas[0])
        same(
            index.reassigned(),
            lambda partition: partition.adding_replicas or partition.removing_replicas,
        )
        same(
            index.with_eligible_leaders_or_leaderless(),
            lambda partition: partition.eligible_leader_replicas or partition.leader == -1,
        )

    @invariant()
    def leaders_are_active_and_in_sync(self) -> None:
        active = {broker.broker_id for broker in self.cluster.image.active_brokers()}
        for each in self.cluster.image.topics.values():
            assert list(each.partitions) == list(range(len(each.partitions)))
            for partition in each.partitions.values():
                assert set(partition.isr) <= set(partition.replicas)
                assert partition.leader == -1 or (
                    partition.leader in active and partition.leader in partition.isr
                )


AnyHistory.TestCase.settings = settings(max_examples=30, stateful_step_count=20)
TestAnyHistory = AnyHistory.TestCase


def is_in_sync(broker_id: int, partition: PartitionRecord) -> bool:
    return broker_id in partition.isr


def is_in_sync_or_eligible(broker_id: int, partition: PartitionRecord) -> bool:
    return broker_id in (*partition.isr, *(partition.eligible_leader_replicas or ()))


def partition_key(partition: PartitionRecord) -> tuple[UUID, int]:
    return partition.topic_id, partition.partition_id


def image_of(records: Iterable[object]) -> MetadataImage:
    image = MetadataImage()
    for record in records:
        image.replay(record)
    return image


def test_topic_ids_come_from_outside() -> None:
    cluster = Cluster()
    cluster.call(creation(topic("a"), topic("b")))
    assert cluster.image.topic_id("b") == UUID(int=2)
