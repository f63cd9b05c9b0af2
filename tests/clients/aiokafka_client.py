"""aiokafka, the asyncio client; each call here runs its own event loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError
from tests.clients.client import DEFAULT_OPTIONS, TIMEOUT_S, ProduceOptions, Received, Refused, Sent

T = TypeVar("T")

REQUEST_TIMEOUT_MS = TIMEOUT_S * 1000


def run(call: Callable[[], Awaitable[T]]) -> T:
    async def call_in_time() -> T:
        return await asyncio.wait_for(call(), TIMEOUT_S * 2)

    try:
        return asyncio.run(call_in_time())
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error


async def stop(consumer: AIOKafkaConsumer) -> None:
    """aiokafka cancels a fetch that waits for a retry, and then fails to close completely."""
    try:
        await consumer.stop()
    except asyncio.CancelledError:
        await consumer._client.close()


def check(code: int, text: str | None) -> None:
    if code:
        raise Refused(code, text or "")


class AiokafkaClient:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self, topic: str, records: Sequence[Sent], options: ProduceOptions = DEFAULT_OPTIONS
    ) -> list[int]:
        async def produce() -> list[int]:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks=options.acks,
                compression_type=None if options.codec == "none" else options.codec,
                enable_idempotence=options.idempotent,
                max_request_size=options.request_bytes_max,
                linger_ms=20,
                request_timeout_ms=REQUEST_TIMEOUT_MS,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=record.partition,
                        timestamp_ms=record.timestamp_ms,
                        headers=list(record.headers),
                    )
                    for record in records
                ]
                written = await asyncio.gather(*futures)
            return [
                -1 if topic_partition is None else topic_partition.offset
                for topic_partition in written
            ]

        return run(produce)

    def consume(self, topic: str, partition: int, offset: int, count: int) -> list[Received]:
        async def consume() -> list[Received]:
            topic_partition = TopicPartition(topic, partition)
            received: list[Received] = []
            async with self._consumer() as consumer:
                consumer.assign([topic_partition])
                consumer.seek(topic_partition, offset)
                while len(received) < count:
                    record = await consumer.getone(topic_partition)
                    received.append(
                        Received(
                            record.offset,
                            record.key,
                            record.value,
                            tuple(record.headers),
                            record.timestamp,
                        )
                    )
            return received

        return run(consume)

    def offsets(self, topic: str, partition: int) -> tuple[int, int]:
        async def offsets() -> tuple[int, int]:
            topic_partition = TopicPartition(topic, partition)
            async with self._consumer() as consumer:
                start = (await consumer.beginning_offsets([topic_partition]))[topic_partition]
                return start, (await consumer.end_offsets([topic_partition]))[topic_partition]

        return run(offsets)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        async def offset_for_time() -> int | None:
            topic_partition = TopicPartition(topic, partition)
            async with self._consumer() as consumer:
                found = (await consumer.offsets_for_times({topic_partition: timestamp_ms}))[
                    topic_partition
                ]
            return found.offset if found else None

        return run(offset_for_time)

    def create_topic(
        self, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        async def create() -> None:
            new = NewTopic(topic, partitions, 1, topic_configs=dict(config or {}))
            async with self._admin() as admin:
                response = await admin.create_topics([new])
            for _, code, text, *_ in response.topic_errors:
                check(code, text)

        run(create)

    def delete_topic(self, topic: str) -> None:
        async def delete() -> None:
            async with self._admin() as admin:
                response = await admin.delete_topics([topic])
            for _, code in response.topic_error_codes:
                check(code, None)

        run(delete)

    def add_partitions(self, topic: str, total_count: int) -> None:
        async def add() -> None:
            async with self._admin() as admin:
                await admin.create_partitions({topic: NewPartitions(total_count)})

        run(add)

    def partitions(self, topic: str) -> list[int]:
        async def partitions() -> list[int]:
            async with self._admin() as admin:
                [described] = await admin.describe_topics([topic])
            check(described["error_code"], topic)
            return sorted(partition["partition"] for partition in described["partitions"])

        return run(partitions)

    def topics(self) -> set[str]:
        async def topics() -> set[str]:
            async with self._admin() as admin:
                return set(await admin.list_topics())

        return run(topics)

    def topic_config(self, topic: str) -> dict[str, str | None]:
        async def describe() -> dict[str, str | None]:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic)
            async with self._admin() as admin:
                [response] = await admin.describe_configs([resource])
            [(code, text, _, _, entries)] = response.resources
            check(code, text)
            return {entry[0]: entry[1] for entry in entries}

        return run(describe)

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        """aiokafka only has AlterConfigs, which replaces all configs of the topic."""

        async def alter() -> None:
            resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={key: value})
            async with self._admin() as admin:
                [response] = await admin.alter_configs([resource])
            for code, text, *_ in response.resources:
                check(code, text)

        run(alter)

    @asynccontextmanager
    async def _consumer(self) -> AsyncIterator[AIOKafkaConsumer]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            auto_offset_reset="none",
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        await consumer.start()
        try:
            yield consumer
        finally:
            await stop(consumer)

    @asynccontextmanager
    async def _admin(self) -> AsyncIterator[AIOKafkaAdminClient]:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=self._bootstrap, request_timeout_ms=REQUEST_TIMEOUT_MS
        )
        await admin.start()
        try:
            yield admin
        finally:
            await admin.close()
