"""Minimal kio requests: one topic, one partition, defaults for the rest."""

import datetime as dt
from typing import Any

from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.list_offsets.v7.request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i8, i16, i32, i32Timedelta, i64

from ottla.records.builder import Record, build_batch

NO_EPOCH = -1
NO_SESSION_EPOCH = -1
FIRST_SESSION_EPOCH = 0


def milliseconds(count: int) -> i32Timedelta:
    return i32Timedelta.parse(dt.timedelta(milliseconds=count))


TIMEOUT = milliseconds(90_000)  # For requests with a timeout.


def batch(*values: bytes, key: bytes | None = b"k", **options: Any) -> bytes:
    return bytes(build_batch([Record(timestamp=1, key=key, value=v) for v in values], **options))


def produce(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> Any:
    data = TopicProduceData(
        name=TopicName(topic),
        partition_data=(
            PartitionProduceData(
                index=i32(partition), records=None if records is None else Records(records)
            ),
        ),
    )
    return ProduceRequest(
        transactional_id=None, acks=i16(acks), timeout=TIMEOUT, topic_data=(data,)
    )


def fetch(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    leader_epoch: int = NO_EPOCH,
    last_fetched_epoch: int = NO_EPOCH,
    session_id: int = 0,
    session_epoch: int = NO_SESSION_EPOCH,
) -> Any:
    wanted = FetchPartition(
        partition=i32(partition),
        current_leader_epoch=i32(leader_epoch),
        fetch_offset=i64(offset),
        last_fetched_epoch=i32(last_fetched_epoch),
        partition_max_bytes=i32(max_bytes),
    )
    return FetchRequest(
        replica_id=BrokerId(-1),
        max_wait=milliseconds(max_wait_ms),
        min_bytes=i32(min_bytes),
        max_bytes=i32(max_bytes),
        isolation_level=i8(0),
        session_id=i32(session_id),
        session_epoch=i32(session_epoch),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
        forgotten_topics_data=(),
    )


def list_offsets(
    topic: str, timestamp: int, *, partition: int = 0, leader_epoch: int = NO_EPOCH
) -> Any:
    wanted = ListOffsetsPartition(
        partition_index=i32(partition),
        current_leader_epoch=i32(leader_epoch),
        timestamp=i64(timestamp),
    )
    return ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(0),
        topics=(ListOffsetsTopic(name=TopicName(topic), partitions=(wanted,)),),
    )


def metadata(*topics: str, auto_create: bool = False) -> Any:
    return MetadataRequest(
        topics=tuple(
            MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics
        ),
        allow_auto_topic_creation=auto_create,
        include_topic_authorized_operations=False,
    )


def produced(response: Any) -> Any:
    """The one partition of a produce response."""
    return response.responses[0].partition_responses[0]


def fetched(response: Any) -> Any:
    """The one partition of a fetch response."""
    return response.responses[0].partitions[0]


def listed(response: Any) -> Any:
    """The one partition of a list offsets response."""
    return response.topics[0].partitions[0]
