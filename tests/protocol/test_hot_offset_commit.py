from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from tests.protocol.entities import encode, entities, milliseconds

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import response_prefix
from ottla.protocol.hot_offset_commit import (
    CommittedPartition,
    CommittedTopic,
    OffsetCommitRequest,
    TopicResult,
    encode_offset_commit_response,
    parse_offset_commit,
)
from ottla.protocol.wire_primitives import ITEMS_MAX

OFFSET_COMMIT = 8
each_version = pytest.mark.parametrize("version", range(2, 11))


def expected_request(entity: Any) -> OffsetCommitRequest:
    retention = getattr(entity, "retention_time", None)
    return OffsetCommitRequest(
        entity.group_id,
        entity.generation_id_or_member_epoch,
        entity.member_id,
        getattr(entity, "group_instance_id", None),
        -1 if retention is None else milliseconds(retention),
        [
            CommittedTopic(
                getattr(topic, "name", ""),
                getattr(topic, "topic_id", None),
                [
                    CommittedPartition(
                        partition.partition_index,
                        partition.committed_offset,
                        getattr(partition, "committed_leader_epoch", -1),
                        partition.committed_metadata,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in entity.topics
        ],
    )


@each_version
@settings(max_examples=30)
@given(data=st.data(), padding=st.binary(max_size=5))
def test_request_is_parsed_as_kio_wrote_it(
    version: int, data: st.DataObject, padding: bytes
) -> None:
    entity = data.draw(entities(load_request_schema(OFFSET_COMMIT, version)))
    frame = memoryview(padding + encode(entity))
    assert parse_offset_commit(frame, len(padding), version) == expected_request(entity)


@each_version
@settings(max_examples=30)
@given(data=st.data(), correlation_id=st.integers(0, 2**31 - 1))
def test_response_is_what_kio_writes(
    version: int, data: st.DataObject, correlation_id: int
) -> None:
    entity: Any = data.draw(entities(load_response_schema(OFFSET_COMMIT, version)))
    body = response_prefix(OFFSET_COMMIT, version, correlation_id) + encode(entity)
    results = [
        TopicResult(
            getattr(topic, "name", ""),
            getattr(topic, "topic_id", None),
            [(partition.partition_index, partition.error_code) for partition in topic.partitions],
        )
        for topic in entity.topics
    ]
    throttle_ms = milliseconds(getattr(entity, "throttle_time", None))
    encoded = encode_offset_commit_response(version, correlation_id, results, throttle_ms)
    assert encoded == len(body).to_bytes(4, "big") + body


@each_version
@settings(max_examples=30)
@given(data=st.data())
def test_damaged_request_is_parsed_or_refused(version: int, data: st.DataObject) -> None:
    frame = bytearray(encode(data.draw(entities(load_request_schema(OFFSET_COMMIT, version)))))
    for position, mask in data.draw(
        st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 255)), max_size=3)
    ):
        frame[position % len(frame)] ^= mask
    del frame[len(frame) - data.draw(st.integers(0, 6)) :]
    parse_or_refuse(bytes(frame), version)


@each_version
@settings(max_examples=30)
@given(frame=st.binary(max_size=80))
def test_random_bytes_are_parsed_or_refused(version: int, frame: bytes) -> None:
    parse_or_refuse(frame, version)


def parse_or_refuse(frame: bytes, version: int) -> None:
    try:
        parse_offset_commit(memoryview(frame), 0, version)
    except ProtocolError:
        pass


@each_version
def test_null_is_no_group_and_no_member(version: int) -> None:
    null, empty = (b"\x00", b"\x01") if version >= 8 else (b"\xff\xff", b"\x00\x00")
    for frame in (null + bytes(4) + empty, empty + bytes(4) + null):
        with pytest.raises(ProtocolError, match="null where a string must be"):
            parse_offset_commit(memoryview(frame + bytes(20)), 0, version)


@pytest.mark.parametrize("shape", ["topics", "partitions"])
def test_number_of_items_is_limited(shape: str) -> None:
    start = b"\x00\x00" + bytes(4) + b"\x00\x00"
    if shape == "topics":
        frame = start + (ITEMS_MAX + 1).to_bytes(4, "big") + bytes(6) * (ITEMS_MAX + 1)
    else:
        partitions = (ITEMS_MAX - 1).to_bytes(4, "big") + bytes(14) * (ITEMS_MAX - 1)
        frame = start + b"\x00\x00\x00\x02" + (b"\x00\x00" + partitions) * 2
    with pytest.raises(ProtocolError, match="items"):
        parse_offset_commit(memoryview(frame), 0, 5)
