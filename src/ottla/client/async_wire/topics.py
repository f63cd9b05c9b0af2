"""Create topics on demand, and delete their records."""

from collections.abc import Mapping
from typing import Any, Final

from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import TopicPartition, by_topic
from ottla.client.wire.errors import BrokerError, error_of
from ottla.client.wire.topics import BROKER_DEFAULT, create_request, validate_created
from ottla.protocol.times import milliseconds

ALL_RECORDS: Final = -1  # Up to the high watermark.

_TIMEOUT_MS: Final = 30_000


async def ensure_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create the topic if it is missing; an existing one stays unchanged."""
    if name in await cluster.topics([name]):
        return
    request = create_request(name, partitions=partitions, config=config)

    async def create() -> None:
        validate_created(await (await cluster.controller()).call(request))

    await cluster.retry(create)


async def delete_records(cluster: Cluster, topic: str, before: Mapping[int, int]) -> dict[int, int]:
    """Delete the records before each partition's offset; returns the new log start offsets."""
    wanted = {TopicPartition(topic, partition): offset for partition, offset in before.items()}
    starts = await cluster.ask_leaders(wanted, _delete_request, _log_start_offsets)
    return {topic_partition.partition: start for topic_partition, start in starts.items()}


def _delete_request(before: Mapping[TopicPartition, int]) -> DeleteRecordsRequest:
    topics = tuple(
        DeleteRecordsTopic(
            name=TopicName(topic),
            partitions=tuple(
                DeleteRecordsPartition(
                    partition_index=i32(partition),
                    offset=i64(before[TopicPartition(topic, partition)]),
                )
                for partition in partitions
            ),
        )
        for topic, partitions in by_topic(before).items()
    )
    return DeleteRecordsRequest(topics=topics, timeout=milliseconds(_TIMEOUT_MS))


def _log_start_offsets(response: Any) -> dict[TopicPartition, int | BrokerError]:
    found: dict[TopicPartition, int | BrokerError] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.name, answer.partition_index)
            error = error_of(answer.error_code, f"partition {topic_partition}")
            found[topic_partition] = error or answer.low_watermark
    return found
