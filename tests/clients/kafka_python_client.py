"""kafka-python, the client written in Python."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient, NewTopic
from kafka.errors import BrokerResponseError
from tests.clients.client import DEFAULT_OPTIONS, TIMEOUT_S, ProduceOptions, Received, Refused, Sent

# Its defaults are 30 seconds.
PATIENCE = {"request_timeout_ms": TIMEOUT_S * 1000, "bootstrap_timeout_ms": TIMEOUT_S * 1000}


@contextmanager
def refusals() -> Iterator[None]:
    try:
        yield
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


class KafkaPythonClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, records: Sequence[Sent], options: ProduceOptions = DEFAULT_OPTIONS
    ) -> list[int]:
        producer = KafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks=options.acks,
            compression_type=None if options.codec == "none" else options.codec,
            enable_idempotence=options.idempotent,
            max_request_size=options.request_bytes_max,
            linger_ms=20,
            delivery_timeout_ms=TIMEOUT_S * 2000,
            max_block_ms=TIMEOUT_S * 1000,
            **PATIENCE,
        )
        try:
            futures = [
                producer.send(
                    topic,
                    record.value,
                    record.key,
                    list(record.headers),
                    record.partition,
                    record.timestamp_ms,
                )
                for record in records
            ]
            with refusals():
                return [future.get(TIMEOUT_S).offset for future in futures]
        finally:
            producer.close()

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Received]:
        topic_partition = TopicPartition(topic, partition)
        received: list[Received] = []
        with self._consumer() as consumer, refusals():
            consumer.assign([topic_partition])
            consumer.seek(topic_partition, offset)
            while len(received) < count:
                polled = consumer.poll(TIMEOUT_S * 1000, max_records=count - len(received))
                assert polled, f"only {len(received)} of {count} records came"
                received += [
                    Received(r.offset, r.key, r.value, tuple(r.headers), r.timestamp)
                    for r in polled[topic_partition]
                ]
        return received

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        topic_partition = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            start = consumer.beginning_offsets([topic_partition])[topic_partition]
            return start, consumer.end_offsets([topic_partition])[topic_partition]

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        topic_partition = TopicPartition(topic, partition)
        with self._consumer() as consumer:
            found = consumer.offsets_for_times({topic_partition: timestamp_ms})[topic_partition]
        return found.offset if found else None

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        new = NewTopic(topic, partitions, 1, topic_configs=dict(config or {}))
        with self._admin() as admin:
            admin.create_topics([new])

    def delete_topic(self, topic: str) -> None:
        with self._admin() as admin:
            admin.delete_topics([topic])

    def add_partitions(self, topic: str, total_count: int) -> None:
        with self._admin() as admin:
            admin.create_partitions({topic: total_count})

    def partitions(self, topic: str) -> list[int]:
        with self._consumer() as consumer:
            return sorted(consumer.partitions_for_topic(topic) or ())

    def topics(self) -> set[str]:
        with self._admin() as admin:
            return set(admin.list_topics())

    def topic_config(self, topic: str) -> dict[str, str | None]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        with self._admin() as admin:
            described = admin.describe_configs([resource], config_filter="all")
        return {name: entry["value"] for name, entry in described["topic"][topic].items()}

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
        with self._admin() as admin:
            outcome = admin.alter_configs([resource], raise_on_unknown=False)["topic"][topic]
        if outcome != "OK":
            found = re.search(r"\[Error (\d+)\]", outcome)
            raise Refused(int(found[1]) if found else -1, outcome)

    @contextmanager
    def _consumer(self) -> Iterator[KafkaConsumer]:
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap, auto_offset_reset="none", **PATIENCE
        )
        try:
            yield consumer
        finally:
            consumer.close()

    @contextmanager
    def _admin(self) -> Iterator[KafkaAdminClient]:
        admin = KafkaAdminClient(bootstrap_servers=self._bootstrap, **PATIENCE)
        try:
            with refusals():
                yield admin
        finally:
            admin.close()
