import datetime as dt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.fetch.v18.request import (
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from kio.schema.fetch.v18.response import FetchableTopicResponse, PartitionData
from kio.schema.types import BrokerId
from kio.static.primitive import Records, i32, i64
from tests.protocol.entities import encode, entities, signed

from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.frames import request_prefix, response_prefix
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.hot_replica_fetch import (
    FETCH_KEY,
    VERSION,
    ReplicaFetchData,
    ReplicaFetchPosition,
    ReplicaFetchRequest,
    encode_replica_fetch,
    parse_replica_fetch_response,
)
from ottla.protocol.leader_hints import NO_LEADER, Leader

Request: Any = load_request_schema(FETCH_KEY, VERSION)
Response: Any = load_response_schema(FETCH_KEY, VERSION)

int32, int64 = signed(32), signed(64)
positions = st.builds(ReplicaFetchPosition, int32, int32, int64, int32, int64, int32)
topics = st.lists(st.tuples(st.uuids(), st.lists(positions, max_size=3)), max_size=3)
forgotten = st.lists(st.tuples(st.uuids(), st.lists(int32, max_size=3)), max_size=3)
requests = st.builds(
    ReplicaFetchRequest,
    st.integers(0, 2**31 - 1),
    int64,
    int32,
    int32,
    int32,
    int32,
    int32,
    topics,
    forgotten,
)


@settings(max_examples=50)
@given(request=requests, correlation_id=st.integers(0, 2**31 - 1))
def test_the_request_is_what_kio_writes(request: ReplicaFetchRequest, correlation_id: int) -> None:
    frame = encode_replica_fetch(correlation_id, "me", request)
    body = request_prefix(FETCH_KEY, VERSION, correlation_id, "me") + encode(entity_of(request))
    assert frame == len(body).to_bytes(4, "big") + body


def entity_of(request: ReplicaFetchRequest) -> Any:
    return Request(
        replica_state=ReplicaState(
            replica_id=BrokerId(request.replica_id), replica_epoch=i64(request.replica_epoch)
        ),
        max_wait=dt.timedelta(milliseconds=request.max_wait_ms),
        min_bytes=request.min_bytes,
        max_bytes=request.bytes_max,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=tuple(
            FetchTopic(
                topic_id=topic_id,
                partitions=tuple(
                    FetchPartition(
                        partition=i32(partition.partition),
                        current_leader_epoch=i32(partition.current_leader_epoch),
                        fetch_offset=i64(partition.fetch_offset),
                        last_fetched_epoch=i32(partition.last_fetched_epoch),
                        log_start_offset=i64(partition.log_start_offset),
                        partition_max_bytes=i32(partition.bytes_max),
                    )
                    for partition in wanted
                ),
            )
            for topic_id, wanted in request.topics
        ),
        forgotten_topics_data=tuple(
            ForgottenTopic(topic_id=topic_id, partitions=tuple(map(i32, partitions)))
            for topic_id, partitions in request.forgotten
        ),
        rack_id="",
    )


@settings(max_examples=50)
@given(response=entities(Response))
def test_the_response_is_read_as_kio_wrote_it(response: Any) -> None:
    frame = response_prefix(FETCH_KEY, VERSION, 7) + encode(response)
    parsed = parse_replica_fetch_response(memoryview(frame))
    assert (parsed.error_code, parsed.session_id) == (response.error_code, response.session_id)
    assert [
        (topic_id, [data._replace(records=memoryview(data.records)) for data in partitions])
        for topic_id, partitions in parsed.topics
    ] == [
        (topic.topic_id, [_expected(partition) for partition in topic.partitions])
        for topic in response.responses
    ]


def _expected(partition: Any) -> ReplicaFetchData:
    diverging, leader = partition.diverging_epoch, partition.current_leader
    unknown = (-1, -1)
    return ReplicaFetchData(
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.log_start_offset,
        memoryview(partition.records or b""),
        None
        if diverging is None or (diverging.epoch, diverging.end_offset) == unknown
        else EpochEndOffset(diverging.epoch, diverging.end_offset),
        NO_LEADER if leader is None else Leader(leader.leader_id, leader.leader_epoch),
    )


@settings(max_examples=50)
@given(response=entities(Response), data=st.data())
def test_a_damaged_response_is_read_or_refused(response: Any, data: st.DataObject) -> None:
    frame = bytearray(response_prefix(FETCH_KEY, VERSION, 7) + encode(response))
    for position, mask in data.draw(
        st.lists(st.tuples(st.integers(4, 1000), st.integers(1, 255)), max_size=3)
    ):
        frame[position % len(frame)] ^= mask
    del frame[len(frame) - data.draw(st.integers(0, 6)) :]
    try:
        parse_replica_fetch_response(memoryview(frame))
    except ProtocolError:
        pass


def test_records_are_not_copied() -> None:
    response = Response(
        throttle_time=dt.timedelta(0),
        error_code=ErrorCode.none,
        responses=(
            FetchableTopicResponse(
                topic_id=None,
                partitions=(
                    PartitionData(
                        partition_index=i32(0),
                        error_code=ErrorCode.none,
                        high_watermark=i64(5),
                        aborted_transactions=None,
                        records=Records(b"records"),
                    ),
                ),
            ),
        ),
    )
    frame = bytearray(response_prefix(FETCH_KEY, VERSION, 7) + encode(response))
    ((_, (data,)),) = parse_replica_fetch_response(memoryview(frame)).topics
    frame[frame.index(b"records")] = ord("R")
    assert bytes(data.records) == b"Records"


@pytest.mark.parametrize("size", [0, 3, 8, 14])
def test_a_short_frame_is_refused(size: int) -> None:
    with pytest.raises(ProtocolError):
        parse_replica_fetch_response(memoryview(bytes(size)))
