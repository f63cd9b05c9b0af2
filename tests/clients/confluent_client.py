"""confluent-kafka, which is librdkafka."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from tests.clients.client import DEFAULT_OPTIONS, TIMEOUT_S, ProduceOptions, Received, Refused, Sent


def refused(error: KafkaError) -> Refused:
    return Refused(error.code(), error.str())


class ConfluentClient:
    def __init__(self, bootstrap: str) -> None:
        self.config: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2}
        self.admin = AdminClient(self.config)

    def produce(
        self, topic: str, records: Sequence[Sent], options: ProduceOptions = DEFAULT_OPTIONS
    ) -> list[int]:
        config = {
            "acks": options.acks,
            "compression.type": options.codec,
            "enable.idempotence": options.idempotent,
            "message.max.bytes": options.request_bytes_max,
            "message.timeout.ms": TIMEOUT_S * 1000,
            "linger.ms": 20,
        }
        producer = Producer(self.config | config)
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def on_delivery(error: KafkaError | None, message: "Message[Any, Any]") -> None:
            offset = message.offset()
            offsets.append(-1 if offset is None else offset)
            if error:
                errors.append(error)

        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                headers=list(record.headers),
                timestamp=record.timestamp_ms or 0,
                on_delivery=on_delivery,
            )
        assert producer.flush(TIMEOUT_S) == 0
        if errors:
            raise refused(errors[0])
        return offsets

    @contextmanager
    def consumer(self, **more: object) -> Iterator[Consumer]:
        config = {"group.id": "unused", "enable.auto.commit": False, "auto.offset.reset": "error"}
        consumer = Consumer(self.config | config | more)
        try:
            yield consumer
        finally:
            consumer.close()

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Received]:
        received: list[Received] = []
        with self.consumer() as consumer:
            consumer.assign([TopicPartition(topic, partition, offset)])
            while len(received) < count:
                messages = consumer.consume(count - len(received), TIMEOUT_S)
                assert messages, f"only {len(received)} of {count} records came"
                received += map(self._received, messages)
        return received

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        with self.consumer() as consumer:
            topic_partition = TopicPartition(topic, partition)
            low, high = consumer.get_watermark_offsets(topic_partition, timeout=TIMEOUT_S)
        return low, high

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        with self.consumer() as consumer:
            topic_partition = TopicPartition(topic, partition, timestamp_ms)
            [found] = consumer.offsets_for_times([topic_partition], timeout=TIMEOUT_S)
        return found.offset if found.offset >= 0 else None

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, config=dict(config or {}))
        self.wait(self.admin.create_topics([new])[topic])

    def delete_topic(self, topic: str) -> None:
        self.wait(self.admin.delete_topics([topic])[topic])

    def add_partitions(self, topic: str, total_count: int) -> None:
        self.wait(self.admin.create_partitions([NewPartitions(topic, total_count)])[topic])

    def partitions(self, topic: str) -> list[int]:
        return sorted(self.admin.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=TIMEOUT_S).topics)

    def topic_config(self, topic: str) -> dict[str, str | None]:
        return {name: entry.value for name, entry in self.describe(topic).items()}

    def describe(self, topic: str) -> dict[str, ConfigEntry]:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        found: dict[str, ConfigEntry] = self.wait(self.admin.describe_configs([resource])[resource])
        return found

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        self.alter(topic, AlterConfigOpType.SET, key, value)

    def alter(self, topic: str, operation: AlterConfigOpType, key: str, value: str | None) -> None:
        self._alter(ConfigResource(ResourceType.TOPIC, topic), operation, key, value)

    def alter_brokers(self, operation: AlterConfigOpType, key: str, value: str | None) -> None:
        """Each of them."""
        for broker_id in self.admin.list_topics(timeout=TIMEOUT_S).brokers:
            resource = ConfigResource(ResourceType.BROKER, str(broker_id))
            self._alter(resource, operation, key, value)

    def _alter(
        self,
        resource: ConfigResource,
        operation: AlterConfigOpType,
        key: str,
        value: str | None,
    ) -> None:
        resource.add_incremental_config(ConfigEntry(key, value, incremental_operation=operation))
        self.wait(self.admin.incremental_alter_configs([resource])[resource])

    @staticmethod
    def wait(future: "Future[Any]") -> Any:
        try:
            return future.result(TIMEOUT_S)
        except KafkaException as failure:
            raise refused(failure.args[0]) from failure

    @staticmethod
    def _received(message: "Message[Any, Any]") -> Received:
        error = message.error()
        if error:
            raise refused(error)
        return Received(
            message.offset() or 0,
            message.key(),
            message.value(),
            cast("tuple[tuple[str, bytes], ...]", tuple(message.headers() or ())),
            message.timestamp()[1],
        )
