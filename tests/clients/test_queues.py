"""Queue features beyond Kafka's: acknowledging for a holder, holds, and delays."""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kio.schema.describe_share_group_offsets.v1 import request as describe
from kio.schema.describe_topic_partitions.v0.request import (
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.share_fetch.v2.request import FetchPartition, FetchTopic
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64
from tests.clients.conftest import CreateTopic
from tests.clients.test_share_groups import configured_group, produce

from ottla.client.wire.connection import Connection
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.delivery_acknowledge import (
    AcknowledgedGroup,
    AcknowledgedPartition,
    AcknowledgedTopic,
    Delivery,
    DeliveryAcknowledgeRequest,
    DeliveryAcknowledgeType,
    DeliveryResult,
)
from ottla.protocol.messages.share_fetch import ShareFetchRequest
from ottla.records.decoder import iterate_records

pytestmark = pytest.mark.usefixtures("own_broker")

ACCEPT, RELEASE, REJECT, RENEW, PUT_BACK, SKIP = DeliveryAcknowledgeType
TIMEOUT_S = 150
HOUR_MS = 3_600_000
LONG_WAIT_MS = 60_000
Acquired = list[tuple[int, int, int]]


def connect(bootstrap: str) -> Connection:
    host, _, port = bootstrap.rpartition(":")
    return Connection(host.strip("[]"), int(port), client_id="queues", timeout_s=TIMEOUT_S)


class Gateway:
    """Fetches from partition 0 as a group member, on its own connection."""

    def __init__(self, bootstrap: str, group: str, topic: str, member: str = "gateway") -> None:
        self.connection = connect(bootstrap)
        self.group = group
        self.topic = topic
        self.member = member
        self._epoch = 0
        try:
            self.topic_id = self._topic_id()
        except BaseException:
            self.close()
            raise

    def _topic_id(self) -> UUID:
        request = DescribeTopicPartitionsRequest(
            topics=(TopicRequest(name=TopicName(self.topic)),),
            response_partition_limit=i32(10),
            cursor=None,
        )
        found = self.connection.call(request).topics[0].topic_id
        assert isinstance(found, UUID)
        return found

    def join(self) -> None:
        find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(self.group,))
        while (found := self.connection.call(find).coordinators[0]).error_code:
            pass
        coordinator = connect(f"{found.host}:{found.port}")
        request = ShareGroupHeartbeatRequest(
            group_id=GroupId(self.group),
            member_id=self.member,
            member_epoch=i32(0),
            subscribed_topic_names=(TopicName(self.topic),),
        )
        while coordinator.call(request).error_code is not ErrorCode.none:
            pass
        coordinator.close()

    def receive(
        self, count: int = 500, *, hold_ms: int = 0, wait_ms: int = LONG_WAIT_MS
    ) -> Acquired:
        return self.fetch(count, hold_ms=hold_ms, wait_ms=wait_ms)[0]

    def fetch(
        self, count: int = 500, *, hold_ms: int = 0, wait_ms: int = LONG_WAIT_MS
    ) -> tuple[Acquired, bytes]:
        """The acquired ranges and their batches."""
        request = ShareFetchRequest(
            group_id=GroupId(self.group),
            member_id=self.member,
            share_session_epoch=i32(self._epoch),
            max_wait=i32Timedelta.parse(timedelta(milliseconds=wait_ms)),
            min_bytes=i32(1),
            max_bytes=i32(1 << 20),
            max_records=i32(count),
            batch_size=i32(500),
            share_acquire_mode=i8(1),
            topics=(
                FetchTopic(
                    topic_id=self.topic_id,
                    partitions=(
                        FetchPartition(partition_index=i32(0), acknowledgement_batches=()),
                    ),
                ),
            ),
            forgotten_topics_data=(),
            hold_ms=i32(hold_ms),
        )
        self._epoch += 1
        response = self.connection.call(request)
        assert response.error_code is ErrorCode.none, response
        acquired: Acquired = []
        content = b""
        for topic in response.responses:
            for partition in topic.partitions:
                assert partition.error_code is ErrorCode.none, partition
                content += partition.records
                acquired.extend(
                    (found.first_offset, found.last_offset, found.delivery_count)
                    for found in partition.acquired_records
                )
        return acquired, content

    def settle(
        self,
        first: int,
        last: int,
        count: int,
        kind: DeliveryAcknowledgeType,
        *,
        holder: str | None = None,
        **terms: i64,
    ) -> ErrorCode:
        delivery = Delivery(
            first_offset=i64(first),
            last_offset=i64(last),
            holder=self.member if holder is None else holder,
            delivery_count=i16(count),
            type=i8(kind),
            **terms,
        )
        (result,) = self.settle_all(delivery)
        code: ErrorCode = result.error_code
        return code

    def settle_all(self, *deliveries: Delivery) -> tuple[DeliveryResult, ...]:
        partition = AcknowledgedPartition(partition_index=i32(0), deliveries=deliveries)
        topic = AcknowledgedTopic(topic_id=self.topic_id, partitions=(partition,))
        group = AcknowledgedGroup(group_id=GroupId(self.group), topics=(topic,))
        response = self.connection.call(DeliveryAcknowledgeRequest(groups=(group,)))
        (answer,) = response.groups[0].topics[0].partitions
        assert answer.error_code is ErrorCode.none, answer
        results: tuple[DeliveryResult, ...] = answer.deliveries
        return results

    def offsets(self) -> tuple[int, int, int]:
        """Start offset, lag and how many records are parked."""
        asked = describe.DescribeShareGroupOffsetsRequestGroup(
            group_id=GroupId(self.group), topics=None
        )
        request = describe.DescribeShareGroupOffsetsRequest(groups=(asked,))
        (topic,) = self.connection.call(request).groups[0].topics
        (partition,) = topic.partitions
        return partition.start_offset, partition.lag, partition.parked_count

    def close(self) -> None:
        self.connection.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def is_reached(due_ms: int) -> bool:
    """The broker uses whole milliseconds, and another clock."""
    return now_ms() + 1 >= due_ms


Open = Callable[..., Gateway]


@pytest.fixture
def open_gateway(
    bootstrap: str, create_topic: CreateTopic, new_name: Callable[[], str]
) -> Iterator[Open]:
    """A member of a group that starts at the beginning of a topic with five records."""
    opened: list[Gateway] = []

    def open_gateway(member: str = "gateway", **config: str) -> Gateway:
        if not opened:
            topic = create_topic()
            group = configured_group(bootstrap, new_name(), **config)
            opened.append(Gateway(bootstrap, group, topic, member))
            opened[0].join()
            produce(bootstrap, topic, *"abcde")
            return opened[0]
        gateway = Gateway(bootstrap, opened[0].group, opened[0].topic, member)
        opened.append(gateway)
        return gateway

    yield open_gateway
    for gateway in opened:
        gateway.close()


def receive_all(gateway: Gateway, count: int, **terms: Any) -> Acquired:
    found: Acquired = []
    while sum(last - first + 1 for first, last, _ in found) < count:
        found.extend(gateway.receive(**terms))
    return found


def test_another_connection_acknowledges_in_the_holders_name(open_gateway: Open) -> None:
    gateway, other = open_gateway(), open_gateway("other")
    receive_all(gateway, 5)

    assert other.settle(0, 3, 1, ACCEPT, holder="gateway") is ErrorCode.none
    assert other.settle(0, 0, 1, ACCEPT, holder="gateway") is ErrorCode.invalid_record_state
    assert other.settle(4, 4, 2, ACCEPT, holder="gateway") is ErrorCode.invalid_record_state
    assert other.settle(4, 4, 1, ACCEPT, holder="other") is ErrorCode.invalid_record_state
    assert other.settle(4, 4, 1, ACCEPT, holder="gateway") is ErrorCode.none
    assert gateway.offsets() == (5, 0, 0)


def test_records_that_are_held_stay_so_when_the_gateway_is_gone(open_gateway: Open) -> None:
    gateway, other = open_gateway(), open_gateway("other")
    receive_all(gateway, 5, hold_ms=HOUR_MS)
    gateway.close()

    assert other.offsets() == (5, 5, 5)
    assert other.receive(wait_ms=0) == []
    assert other.settle(0, 1, 1, ACCEPT, holder="gateway") is ErrorCode.none
    assert other.settle(2, 2, 1, RELEASE, holder="gateway", delay_ms=i64(0)) is ErrorCode.none
    assert other.receive() == [(2, 2, 2)]
    assert other.settle(2, 2, 1, ACCEPT, holder="gateway") is ErrorCode.invalid_record_state
    assert other.settle(2, 2, 2, ACCEPT) is ErrorCode.none
    assert other.offsets() == (5, 2, 2)


def test_locks_become_holds_when_they_are_renewed(open_gateway: Open) -> None:
    gateway, other = open_gateway(), open_gateway("other")
    receive_all(gateway, 5)
    assert gateway.settle(0, 2, 1, RENEW, lock_ms=i64(12 * HOUR_MS)) is ErrorCode.none
    gateway.close()

    assert receive_all(other, 2) == [(3, 4, 2)]
    assert other.receive(wait_ms=0) == []
    assert other.settle(0, 2, 1, RENEW, holder="gateway", lock_ms=i64(1)) is ErrorCode.none
    assert sorted(receive_all(other, 3)) == [(0, 2, 2)]


def test_what_is_put_back_was_not_delivered(open_gateway: Open) -> None:
    gateway = open_gateway()
    receive_all(gateway, 5, hold_ms=HOUR_MS)

    assert gateway.settle(0, 1, 1, PUT_BACK) is ErrorCode.none
    assert gateway.receive() == [(0, 1, 1)]


def test_acknowledgements_count_while_nobody_else_has_the_record(open_gateway: Open) -> None:
    gateway, other = open_gateway(), open_gateway("other")
    receive_all(gateway, 5)
    assert gateway.settle(0, 4, 1, RELEASE, delay_ms=i64(HOUR_MS)) is ErrorCode.none
    gateway.close()

    assert other.offsets() == (5, 5, 5)
    assert other.settle(0, 3, 1, ACCEPT, holder="gateway") is ErrorCode.none
    assert other.offsets() == (5, 1, 1)


def test_released_records_come_again_after_their_delay(open_gateway: Open) -> None:
    gateway = open_gateway()
    receive_all(gateway, 5)
    begin_ms = now_ms()
    assert gateway.settle(1, 1, 1, RELEASE, delay_ms=i64(300)) is ErrorCode.none
    assert gateway.settle(3, 3, 1, RELEASE, delay_ms=i64(HOUR_MS)) is ErrorCode.none

    assert gateway.receive() == [(1, 1, 2)]
    assert is_reached(begin_ms + 300)
    assert gateway.receive(wait_ms=0) == []


def test_back_off_of_the_group_holds_for_releases_and_members_that_go(open_gateway: Open) -> None:
    gateway = open_gateway(**{"share.retry.backoff.ms": "400"})
    other = open_gateway("other")
    receive_all(gateway, 5)
    begin_ms = now_ms()
    assert gateway.settle(0, 1, 1, RELEASE) is ErrorCode.none
    gateway.close()

    assert len({*receive_all(other, 5)}) >= 1
    assert is_reached(begin_ms + 400)


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_records_say_when_they_are_delivered(
    bootstrap: str, open_gateway: Open, codec: str
) -> None:
    gateway = open_gateway()
    _enable_delays(bootstrap, gateway.topic)
    receive_all(gateway, 5)
    assert gateway.settle(0, 4, 1, ACCEPT) is ErrorCode.none
    due_ms = now_ms() + 1_500
    _produce_with_times(bootstrap, gateway.topic, codec, [0, due_ms, due_ms + 100 * HOUR_MS, None])

    assert sorted(receive_all(gateway, 2, wait_ms=50)) == [(5, 5, 1), (8, 8, 1)]
    acquired, content = gateway.fetch()
    assert acquired == [(6, 6, 1)]
    assert is_reached(due_ms)
    assert 6 in [record.offset for record in iterate_records(content)]
    _, lag, parked_count = gateway.offsets()
    assert (lag, parked_count) == (4, 2)


def test_parked_records_of_many_large_batches_all_come(bootstrap: str, open_gateway: Open) -> None:
    gateway = open_gateway()
    _enable_delays(bootstrap, gateway.topic)
    receive_all(gateway, 5)
    assert gateway.settle(0, 4, 1, ACCEPT) is ErrorCode.none
    due_ms = now_ms() + 5_000
    for _ in range(6):
        times: list[int | None] = [due_ms, *[due_ms + 100 * HOUR_MS] * 999]
        _produce_with_times(bootstrap, gateway.topic, "none", times)
    taken: Acquired = []
    while gateway.offsets()[2] + len(taken) < 6_000:
        taken += gateway.receive(wait_ms=0)

    while len(taken) < 6:
        taken += gateway.receive()
    assert sorted(taken) == [(first, first, 1) for first in range(5, 6_005, 1_000)]


def _enable_delays(bootstrap: str, topic: str) -> None:
    entry = ConfigEntry(
        "delivery.delay.enable", "true", incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(TIMEOUT_S)


def _produce_with_times(bootstrap: str, topic: str, codec: str, times: list[int | None]) -> None:
    """In one batch."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "linger.ms": 500, "compression.type": codec}
    )
    for each in times:
        headers: list[tuple[str, str | bytes | None]] = (
            [] if each is None else [("ottla-deliver-at", str(each).encode())]
        )
        producer.produce(topic, "x" * 100, headers=headers, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"type": i8(9)},
        {"first_offset": i64(3), "last_offset": i64(2)},
        {"last_offset": i64(2**62)},
        {"holder": ""},
        {"delivery_count": i16(0)},
        {"type": i8(RENEW), "lock_ms": i64(0)},
        {"type": i8(RENEW), "lock_ms": i64(12 * HOUR_MS + 1)},
        {"delay_ms": i64(-2)},
    ],
)
def test_what_makes_no_sense_is_refused(open_gateway: Open, changes: dict[str, Any]) -> None:
    gateway = open_gateway()
    fields: dict[str, Any] = {
        "first_offset": i64(0),
        "last_offset": i64(0),
        "holder": "gateway",
        "delivery_count": i16(1),
        "type": i8(ACCEPT),
    }
    (result,) = gateway.settle_all(Delivery(**fields | changes))

    assert result.error_code is ErrorCode.invalid_request


def test_a_group_skips_records_whoever_has_them(open_gateway: Open) -> None:
    gateway, other = open_gateway(), open_gateway("other")
    receive_all(gateway, 5)
    assert gateway.settle(0, 0, 1, RENEW, lock_ms=i64(HOUR_MS)) is ErrorCode.none
    assert gateway.settle(1, 1, 1, RELEASE, delay_ms=i64(HOUR_MS)) is ErrorCode.none

    assert other.settle(0, 5, 0, SKIP) is ErrorCode.offset_not_available
    assert other.settle(0, 3, 0, SKIP) is ErrorCode.none
    assert other.offsets() == (4, 1, 0)
    assert gateway.settle(0, 0, 1, ACCEPT) is ErrorCode.invalid_record_state
    assert gateway.settle(4, 4, 1, ACCEPT) is ErrorCode.none
    assert other.offsets() == (5, 0, 0)


def test_records_can_be_delivered_more_often_than_kafka_allows(open_gateway: Open) -> None:
    gateway = open_gateway(**{"share.delivery.attempts.max": "12"})
    receive_all(gateway, 5)
    for count in range(1, 12):
        assert gateway.settle(0, 0, count, RELEASE, delay_ms=i64(0)) is ErrorCode.none
        assert gateway.receive() == [(0, 0, count + 1)]
    assert gateway.settle(0, 0, 12, RELEASE, delay_ms=i64(0)) is ErrorCode.none
    assert gateway.receive(wait_ms=0) == []


@pytest.mark.parametrize("hold_ms", [0, HOUR_MS])
def test_deleted_records_are_no_lag_though_somebody_has_them(
    bootstrap: str, open_gateway: Open, hold_ms: int
) -> None:
    gateway = open_gateway()
    receive_all(gateway, 5, hold_ms=hold_ms)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    (deleted,) = admin.delete_records([TopicPartition(gateway.topic, 0, OFFSET_END)]).values()
    assert deleted.result().low_watermark == 5
    assert gateway.offsets() == (5, 0, 0)
    assert gateway.settle(0, 0, 1, ACCEPT) is ErrorCode.invalid_record_state
