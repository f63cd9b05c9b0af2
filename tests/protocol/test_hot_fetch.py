import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from tests.protocol.entities import encode, entities, milliseconds, versions

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import response_prefix
from ottla.protocol.hot_fetch import (
    HIGH_WATERMARK_UNKNOWN,
    AbortedTransaction,
    EpochEndOffset,
    FetchedPartition,
    FetchedTopic,
    FetchRequest,
    ForgottenTopic,
    PartitionData,
    SnapshotId,
    TopicData,
    encode_fetch_response,
    parse_fetch,
)
from ottla.protocol.leader_hints import Leader, NodeEndpoint

FETCH = 1
each_version = pytest.mark.parametrize("version", versions(FETCH))


@dataclass
class Slice:
    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)


def expected_request(entity: Any) -> FetchRequest:
    state = getattr(entity, "replica_state", None)
    return FetchRequest(
        replica_id=state.replica_id if state else entity.replica_id,
        replica_epoch=state.replica_epoch if state else -1,
        max_wait_ms=milliseconds(entity.max_wait),
        min_bytes=entity.min_bytes,
        max_bytes=entity.max_bytes,
        isolation_level=entity.isolation_level,
        session_id=getattr(entity, "session_id", 0),
        session_epoch=getattr(entity, "session_epoch", -1),
        topics=[
            FetchedTopic(
                getattr(topic, "topic", ""),
                getattr(topic, "topic_id", None),
                [_expected_partition(partition) for partition in topic.partitions],
            )
            for topic in entity.topics
        ],
        forgotten=[
            ForgottenTopic(
                getattr(topic, "topic", ""),
                getattr(topic, "topic_id", None),
                list(topic.partitions),
            )
            for topic in getattr(entity, "forgotten_topics_data", ())
        ],
        rack_id=getattr(entity, "rack_id", ""),
        cluster_id=getattr(entity, "cluster_id", None),
    )


def _expected_partition(partition: Any) -> FetchedPartition:
    return FetchedPartition(
        partition=partition.partition,
        current_leader_epoch=getattr(partition, "current_leader_epoch", -1),
        fetch_offset=partition.fetch_offset,
        last_fetched_epoch=getattr(partition, "last_fetched_epoch", -1),
        log_start_offset=getattr(partition, "log_start_offset", -1),
        partition_max_bytes=partition.partition_max_bytes,
        replica_directory_id=getattr(partition, "replica_directory_id", None),
        high_watermark=getattr(partition, "high_watermark", HIGH_WATERMARK_UNKNOWN),
    )


@each_version
@settings(max_examples=30)
@given(data=st.data(), padding=st.binary(max_size=5))
def test_request_is_parsed_as_kio_wrote_it(
    version: int, data: st.DataObject, padding: bytes
) -> None:
    entity = data.draw(entities(load_request_schema(FETCH, version)))
    frame = memoryview(padding + encode(entity))
    assert parse_fetch(frame, len(padding), version) == expected_request(entity)


@each_version
@settings(max_examples=30)
@given(data=st.data())
def test_damaged_request_is_parsed_or_refused(version: int, data: st.DataObject) -> None:
    frame = bytearray(encode(data.draw(entities(load_request_schema(FETCH, version)))))
    for position, mask in data.draw(
        st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 255)), max_size=3)
    ):
        frame[position % len(frame)] ^= mask
    del frame[len(frame) - data.draw(st.integers(0, 6)) :]
    try:
        parse_fetch(memoryview(frame), 0, version)
    except ProtocolError:
        pass


@each_version
@settings(max_examples=30)
@given(frame=st.binary(max_size=80))
def test_random_bytes_are_parsed_or_refused(version: int, frame: bytes) -> None:
    try:
        parse_fetch(memoryview(frame), 0, version)
    except ProtocolError:
        pass


def test_unknown_tagged_fields_are_skipped() -> None:
    entity: Any = load_request_schema(FETCH, 18)
    frame = encode(
        entity(max_wait=_ms(5), min_bytes=1, topics=(), forgotten_topics_data=(), rack_id="r")
    )
    request = parse_fetch(memoryview(frame[:-1] + b"\x02\x00\x03\x03xy\x63\x01z"), 0, 18)
    assert (request.cluster_id, request.rack_id) == ("xy", "r")


def _ms(value: int) -> Any:
    return dt.timedelta(milliseconds=value)


@each_version
@settings(max_examples=30)
@given(data=st.data(), correlation_id=st.integers(0, 2**31 - 1))
def test_response_is_what_kio_writes(
    version: int, data: st.DataObject, correlation_id: int
) -> None:
    entity = data.draw(entities(load_response_schema(FETCH, version)).map(_without_null_records))
    body = response_prefix(FETCH, version, correlation_id) + encode(entity)
    parts = encode_fetch_response(
        version,
        correlation_id,
        milliseconds(entity.throttle_time),
        getattr(entity, "error_code", 3),
        getattr(entity, "session_id", 3),
        [_topic_data(topic) for topic in entity.responses],
        node_endpoints=[
            NodeEndpoint(node.node_id, node.host, node.port, node.rack)
            for node in getattr(entity, "node_endpoints", ())
        ],
    )
    encoded = b"".join(part if isinstance(part, bytes) else part.data for part in parts)  # type: ignore[attr-defined]
    assert encoded == len(body).to_bytes(4, "big") + body


def _without_null_records(response: Any) -> Any:
    """Null records are sent as no bytes: not every client reads null."""
    topics = [
        replace(
            topic,
            partitions=tuple(
                replace(partition, records=partition.records or b"")
                for partition in topic.partitions
            ),
        )
        for topic in response.responses
    ]
    return replace(response, responses=tuple(topics))


def _topic_data(topic: Any) -> TopicData:
    return TopicData(
        getattr(topic, "topic", ""),
        getattr(topic, "topic_id", None),
        [_partition_data(partition) for partition in topic.partitions],
    )


def _partition_data(partition: Any) -> PartitionData:
    diverging = getattr(partition, "diverging_epoch", None)
    leader = getattr(partition, "current_leader", None)
    snapshot = getattr(partition, "snapshot_id", None)
    aborted = partition.aborted_transactions
    return PartitionData(
        partition=partition.partition_index,
        error_code=partition.error_code,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=getattr(partition, "log_start_offset", 5),
        aborted_transactions=aborted
        and [AbortedTransaction(item.producer_id, item.first_offset) for item in aborted],
        preferred_read_replica=getattr(partition, "preferred_read_replica", 5),
        records=Slice(partition.records) if partition.records else None,
        diverging_epoch=diverging and EpochEndOffset(diverging.epoch, diverging.end_offset),
        current_leader=leader and Leader(leader.leader_id, leader.leader_epoch),
        snapshot_id=snapshot and SnapshotId(snapshot.end_offset, snapshot.epoch),
    )


@each_version
def test_records_are_passed_on_untouched(version: int) -> None:
    records = Slice(b"x" * 300)
    partitions = [PartitionData(index, records=records) for index in range(2)]
    partitions.insert(1, PartitionData(5))
    parts = encode_fetch_response(version, 1, 0, 0, 0, [TopicData("t", None, partitions)])
    flexible = version >= 12
    assert [part is records for part in parts] == [False, True, False, True] + [False] * flexible
