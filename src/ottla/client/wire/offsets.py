"""Look up partition offsets: earliest, latest, and by time."""

import enum
from collections.abc import Collection, Mapping
from typing import Any

from kio.schema.list_offsets.v11.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i64

from ottla.client.wire.cluster import Cluster, TopicPartition, by_topic
from ottla.client.wire.connection import Connection
from ottla.client.wire.errors import BrokerError, validate_answer
from ottla.protocol.errors import ErrorCode
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
    found: dict[TopicPartition, int | None] = {}

    def ask_what_is_missing() -> None:
        missing = [topic_partition for topic_partition in times if topic_partition not in found]
        problem: BrokerError | None = None
        for connection, topic_partitions in _by_leader(cluster, missing).items():
            wanted = {
                topic_partition: times[topic_partition] for topic_partition in topic_partitions
            }
            for topic_partition, answer in _ask(connection, wanted, isolation).items():
                try:
                    validate_answer(answer.error_code, f"offsets of partition {topic_partition}")
                except BrokerError as error:
                    problem = error
                    continue
                found[topic_partition] = None if answer.offset == _NO_OFFSET else answer.offset
        if problem is not None:
            raise problem

    cluster.retry(ask_what_is_missing)
    return found


def _by_leader(
    cluster: Cluster, topic_partitions: Collection[TopicPartition]
) -> dict[Connection, list[TopicPartition]]:
    grouped: dict[Connection, list[TopicPartition]] = {}
    for topic_partition in topic_partitions:
        grouped.setdefault(cluster.leader(topic_partition), []).append(topic_partition)
    return grouped


def _ask(
    connection: Connection, times: Mapping[TopicPartition, int], isolation: Isolation
) -> dict[TopicPartition, Any]:
    return offset_answers(connection.call(offsets_request(times, isolation)), times)


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


def offset_answers(response: Any, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Any]:
    """The result for each requested partition; some may be errors."""
    answers = {
        TopicPartition(topic.name, answer.partition_index): answer
        for topic in response.topics
        for answer in topic.partitions
    }
    if answers.keys() != times.keys():
        raise BrokerError(ErrorCode.unknown_server_error, "an answer about other partitions")
    return answers
