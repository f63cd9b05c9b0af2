"""Quotas with real clients: they are slowed down, and nothing fails."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer
from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.describe_client_quotas.v1.request import ComponentData, DescribeClientQuotasRequest
from kio.schema.metadata.v12.request import MetadataRequest
from kio.schema.types import TopicName
from kio.static.primitive import f64, i8, i16, i32
from tests.broker_process import BrokerProcess
from tests.clients.client import TIMEOUT_S
from tests.clients.conftest import CreateTopic
from tests.clients.test_share_groups import configured_group
from tests.clients.test_share_wire import Member, join
from tests.clients.wire import CLIENT_ID as WIRE_CLIENT_ID
from tests.clients.wire import Wire
from tests.conftest import IMPATIENT

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

pytestmark = pytest.mark.process

VALUE = b"x" * 10_000
RATE = 100_000
COUNT = 25  # Together 250 kB: more than the 100 kB allowed by the window before the first one.


class Quotas:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._entities: list[dict[str, str | None]] = []

    def set(self, entity: dict[str, str | None], **bounds: float | None) -> None:
        self._entities.append(entity)
        entry = EntryData(
            entity=tuple(EntityData(entity_type=k, entity_name=n) for k, n in entity.items()),
            ops=tuple(
                OpData(key=key, value=f64(float(bound or 0)), remove=bound is None)
                for key, bound in bounds.items()
            ),
        )
        request = AlterClientQuotasRequest(entries=(entry,), validate_only=False)
        with Wire(self._bootstrap) as wire:
            (result,) = wire.call(request).entries
        assert result.error_code is ErrorCode.none, result.error_message

    def describe(self, *components: tuple[str, int, str | None], strict: bool) -> list[Any]:
        request = DescribeClientQuotasRequest(
            components=tuple(
                ComponentData(entity_type=kind, match_type=i8(how), match=name)
                for kind, how, name in components
            ),
            strict=strict,
        )
        with Wire(self._bootstrap) as wire:
            response = wire.call(request)
        assert response.error_code is ErrorCode.none
        return [
            (
                {part.entity_type: part.entity_name for part in entry.entity},
                {value.key: value.value for value in entry.values},
            )
            for entry in response.entries or ()
        ]

    def remove_all(self) -> None:
        for entity in list(self._entities):
            self.set(
                entity,
                producer_byte_rate=None,
                consumer_byte_rate=None,
                request_percentage=None,
                controller_mutation_rate=None,
            )


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The broker measures over two windows, so clients are not throttled for long."""
    directory = tmp_path_factory.mktemp("quotas")
    with BrokerProcess(directory, *IMPATIENT, "--set", "quota.window.num=2") as process:
        yield process.bootstrap


@pytest.fixture
def quotas(bootstrap: str) -> Iterator[Quotas]:
    found = Quotas(bootstrap)
    yield found
    found.remove_all()


def produce_with_confluent(bootstrap: str, client_id: str, topic: str, count: int) -> None:
    producer = Producer(
        {"bootstrap.servers": bootstrap, "client.id": client_id, "batch.size": 20_000}
    )
    for _ in range(count):
        producer.produce(topic, VALUE)
    assert producer.flush(TIMEOUT_S) == 0


def produce_with_kafka_python(bootstrap: str, client_id: str, topic: str, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
    for future in [producer.send(topic, VALUE) for _ in range(count)]:
        future.get(TIMEOUT_S)
    producer.close()


def produce_with_aiokafka(bootstrap: str, client_id: str, topic: str, count: int) -> None:
    async def main() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
        async with producer:
            for future in [await producer.send(topic, VALUE) for _ in range(count)]:
                await asyncio.wait_for(future, TIMEOUT_S)

    asyncio.run(main())


@pytest.mark.parametrize(
    "produce", [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]
)
def test_a_producer_over_its_quota_is_slowed_down_and_loses_nothing(
    bootstrap: str, quotas: Quotas, topic: str, produce: Any
) -> None:
    client_id = f"slow-{topic}"
    quotas.set({"client-id": client_id}, producer_byte_rate=RATE)
    begun = time.monotonic()
    produce(bootstrap, client_id, topic, COUNT)
    produce(bootstrap, client_id, topic, 1)
    assert time.monotonic() - begun > 1  # Never sooner than the quota allows.
    with_others = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    with_others.subscribe([topic])
    assert len(take(with_others, COUNT + 1)) == COUNT + 1
    with_others.close()


def take(consumer: Consumer, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=TIMEOUT_S)
        assert messages
        assert not any(message.error() for message in messages)
        found += messages
    return found


def test_a_consumer_over_its_quota_is_slowed_down_and_gets_everything(
    bootstrap: str, quotas: Quotas, topic: str
) -> None:
    client_id = f"slow-{topic}"
    produce_with_confluent(bootstrap, "anyone", topic, COUNT)
    quotas.set({"client-id": client_id}, consumer_byte_rate=RATE)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 50_000,
        }
    )
    begun = time.monotonic()
    consumer.subscribe([topic])
    assert [message.offset() for message in take(consumer, COUNT)] == list(range(COUNT))
    assert time.monotonic() - begun > 1
    consumer.close()


@pytest.mark.usefixtures("own_broker")
def test_records_of_a_share_group_count_for_the_quota_of_their_consumer(
    bootstrap: str, quotas: Quotas, topic: str
) -> None:
    produce_with_confluent(bootstrap, "anyone", topic, COUNT)
    with Wire(bootstrap) as wire:
        member = Member(wire, configured_group(bootstrap, topic), topic)
        join(member)
        assert member.fetch(wait_ms=0).throttle_time == NO_THROTTLE
        member.fetch(epoch=-1)
        quotas.set({"client-id": WIRE_CLIENT_ID}, consumer_byte_rate=len(VALUE))
        member.epoch = 0
        fetched = member.fetch(wait_ms=30_000)
        acquired = sum(
            acquired_range.last_offset - acquired_range.first_offset + 1
            for acquired_range in fetched.responses[0].partitions[0].acquired_records
        )
    assert fetched.throttle_time > NO_THROTTLE
    assert 0 < acquired < COUNT  # No more than the windows allow.


def test_the_answer_says_for_how_long_a_client_is_not_heard(bootstrap: str, quotas: Quotas) -> None:
    quotas.set({"client-id": WIRE_CLIENT_ID}, request_percentage=0.001)
    request = MetadataRequest(
        topics=(), allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    with Wire(bootstrap) as wire:
        throttled = [wire.call(request).throttle_time.total_seconds() for _ in range(3)]
    assert throttled[-1] == 1  # A window is the longest.


def test_quotas_are_described_by_what_they_are_of(bootstrap: str, quotas: Quotas) -> None:
    quotas.set({"user": "ann"}, request_percentage=101)
    quotas.set({"user": "ann", "client-id": None}, request_percentage=102)
    quotas.set({"client-id": "app"}, request_percentage=103)
    ann = ({"user": "ann"}, {"request_percentage": 101})
    both = ({"user": "ann", "client-id": None}, {"request_percentage": 102})
    assert quotas.describe(("user", 0, "ann"), strict=True) == [ann]
    assert sorted(quotas.describe(("user", 0, "ann"), strict=False), key=str) == [both, ann]
    assert quotas.describe(("client-id", 1, None), strict=False) == [both]
    assert both in quotas.describe(("user", 2, None), ("client-id", 2, None), strict=True)
    assert quotas.describe(("user", 0, "bob"), strict=False) == []


def test_quotas_survive_other_quotas_that_are_removed(
    quotas: Quotas, create_topic: CreateTopic
) -> None:
    quotas.set({"user": "carl"}, producer_byte_rate=1, consumer_byte_rate=2)
    quotas.set({"user": "carl"}, producer_byte_rate=None)
    assert quotas.describe(("user", 0, "carl"), strict=True) == [
        ({"user": "carl"}, {"consumer_byte_rate": 2})
    ]


def test_a_client_that_creates_too_many_partitions_is_told_to_wait(
    bootstrap: str, quotas: Quotas, new_name: Callable[[], str]
) -> None:
    quotas.set({"client-id": WIRE_CLIENT_ID}, controller_mutation_rate=0.1)

    def created(count: int) -> Any:
        topic = CreatableTopic(
            name=TopicName(new_name()),
            num_partitions=i32(count),
            replication_factor=i16(1),
            assignments=(),
            configs=(),
        )
        with Wire(bootstrap) as wire:
            return wire.call(
                CreateTopicsRequest(topics=(topic,), timeout=NO_THROTTLE, validate_only=False)
            )

    assert created(3).topics[0].error_code is ErrorCode.none  # Less than 2 had accumulated.
    refused = created(1)
    assert refused.topics[0].error_code is ErrorCode.throttling_quota_exceeded
    assert refused.throttle_time.total_seconds() > 10
