"""Look up partition offsets: earliest, latest, and by time."""

import enum
from collections.abc import Mapping
from typing import Any

from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from ottla.client.wire.cluster import Cluster, TopicPartition, by_topic
from ottla.client.wire.errors import BrokerError, error_of
from ottla.protocol.times import milliseconds

LATEST = -1  # Instead of a time: the offset of the next record.
EARLIEST = -2  # The log start offset.

_TIMEOUT_MS = 30_000
_NO_OFFSET = -1


class Isolation(enum.IntEnum):
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1  # Reads end at the start of the oldest open transaction.


def list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int | None]:
    """The first offset at or after each time in milliseconds; None if no record is that late.

    LATEST and EARLIEST stand for the ends. Raises for a partition that does not exist.
    """
    return cluster.ask_leaders(
        times, lambda asked: offsets_request(asked, isolation), listed_offsets
    )


def offsets_request(
    times: Mapping[TopicPartition, int], isolation: Isolation
) -> ListOffsetsRequest:
    topics = tuple(
        ListOffsetsTopic(
            name=TopicName(topic),
            partitions=tuple(
                ListOffsetsPartition(
                    partition_index=i32(partition),
                    timestamp=i64(times[TopicPartition(topic, partition)]),
                )
                for partition in partitions
            ),
        )
        for topic, partitions in by_topic(times).items()
    )
    return ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(isolation),
        topics=topics,
        timeout=milliseconds(_TIMEOUT_MS),
    )


def listed_offsets(response: Any) -> dict[TopicPartition, int | BrokerError | None]:
    """For `ask_leaders`."""
    found: dict[TopicPartition, int | BrokerError | None] = {}
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.name, answer.partition_index)
            offset = None if answer.offset == _NO_OFFSET else answer.offset
            error = error_of(answer.error_code, f"offsets of partition {topic_partition}")
            found[topic_partition] = error or offset
    return found
