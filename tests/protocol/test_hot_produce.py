import datetime as dt
import sys
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from tests.protocol.entities import encode, entities, milliseconds, versions

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import response_prefix
from ottla.protocol.hot_produce import (
    PartitionResult,
    ProducedPartition,
    ProducedTopic,
    ProduceRequest,
    RecordErrorResult,
    TopicResult,
    encode_produce_response,
    parse_produce,
)
from ottla.protocol.leader_hints import Leader, NodeEndpoint
from ottla.protocol.wire_primitives import ITEMS_MAX

PRODUCE = 0
each_version = pytest.mark.parametrize("version", versions(PRODUCE))


def expected_request(entity: Any) -> ProduceRequest:
    topics = []
    for topic in entity.topic_data:
        name, topic_id = getattr(topic, "name", ""), getattr(topic, "topic_id", None)
        partitions = [
            ProducedPartition(name, topic_id, partition.index, partition.records)
            for partition in topic.partition_data
        ]
        topics.append(ProducedTopic(name, topic_id, partitions))
    return ProduceRequest(
        entity.transactional_id, entity.acks, milliseconds(entity.timeout), topics
    )


@each_version
@settings(max_examples=30)
@given(data=st.data(), padding=st.binary(max_size=5))
def test_request_is_parsed_as_kio_wrote_it(
    version: int, data: st.DataObject, padding: bytes
) -> None:
    entity = data.draw(entities(load_request_schema(PRODUCE, version)))
    frame = memoryview(padding + encode(entity))
    assert parse_produce(frame, len(padding), version) == expected_request(entity)


@each_version
@settings(max_examples=30)
@given(data=st.data(), records=st.binary(max_size=300), name=st.text(max_size=60))
def test_one_partition_is_parsed_as_kio_wrote_it(
    version: int, data: st.DataObject, records: bytes, name: str
) -> None:
    type_: Any = load_request_schema(PRODUCE, version)
    entity = type_(
        transactional_id=None,
        acks=data.draw(st.sampled_from([-1, 0, 1])),
        timeout=data.draw(entities(type_)).timeout,
        topic_data=(_one_topic(type_, name, records),),
    )
    frame = memoryview(encode(entity))
    assert parse_produce(frame, 0, version) == expected_request(entity)


def _one_topic(type_: type, name: str, records: bytes) -> Any:
    module = sys.modules[type_.__module__]
    partition = module.PartitionProduceData(index=7, records=records)
    if "name" in module.TopicProduceData.__slots__:
        return module.TopicProduceData(name=name, partition_data=(partition,))
    topic_id = uuid.uuid5(uuid.NAMESPACE_DNS, name) if name else None
    return module.TopicProduceData(topic_id=topic_id, partition_data=(partition,))


def test_records_are_a_writable_slice_of_the_frame() -> None:
    type_: Any = load_request_schema(PRODUCE, 9)
    entity = type_(
        acks=1,
        timeout=dt.timedelta(0),
        topic_data=(_one_topic(type_, "t", b"abc"),),
    )
    buffer = bytearray(encode(entity))
    records = parse_produce(memoryview(buffer), 0, 9).topics[0].partitions[0].records
    assert records is not None
    records[:] = b"xyz"
    assert b"xyz" in buffer


@each_version
@settings(max_examples=30)
@given(data=st.data())
def test_damaged_request_is_parsed_or_refused(version: int, data: st.DataObject) -> None:
    frame = bytearray(encode(data.draw(entities(load_request_schema(PRODUCE, version)))))
    for position, mask in data.draw(
        st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 255)), max_size=3)
    ):
        frame[position % len(frame)] ^= mask
    del frame[len(frame) - data.draw(st.integers(0, 6)) :]
    try:
        parse_produce(memoryview(frame), 0, version)
    except ProtocolError:
        pass


@each_version
@settings(max_examples=30)
@given(frame=st.binary(max_size=80))
def test_random_bytes_are_parsed_or_refused(version: int, frame: bytes) -> None:
    try:
        parse_produce(memoryview(frame), 0, version)
    except ProtocolError:
        pass


@each_version
@settings(max_examples=30)
@given(data=st.data(), correlation_id=st.integers(0, 2**31 - 1))
def test_response_is_what_kio_writes(
    version: int, data: st.DataObject, correlation_id: int
) -> None:
    entity = data.draw(entities(load_response_schema(PRODUCE, version)))
    body = response_prefix(PRODUCE, version, correlation_id) + encode(entity)
    encoded = encode_produce_response(
        version,
        correlation_id,
        [_topic_result(topic) for topic in entity.responses],
        milliseconds(entity.throttle_time),
        [
            NodeEndpoint(node.node_id, node.host, node.port, node.rack)
            for node in getattr(entity, "node_endpoints", ())
        ],
    )
    assert encoded == len(body).to_bytes(4, "big") + body


def _topic_result(topic: Any) -> TopicResult:
    return TopicResult(
        getattr(topic, "name", ""),
        getattr(topic, "topic_id", None),
        [_partition_result(partition) for partition in topic.partition_responses],
    )


def _partition_result(partition: Any) -> PartitionResult:
    leader = getattr(partition, "current_leader", None)
    return PartitionResult(
        partition=partition.index,
        error_code=partition.error_code,
        base_offset=partition.base_offset,
        log_append_time_ms=milliseconds(partition.log_append_time),
        log_start_offset=getattr(partition, "log_start_offset", 5),
        error_message=getattr(partition, "error_message", "dropped"),
        record_errors=[
            RecordErrorResult(error.batch_index, error.batch_index_error_message)
            for error in getattr(partition, "record_errors", ())
        ],
        current_leader=leader and Leader(leader.leader_id, leader.leader_epoch),
    )


@each_version
def test_one_partition_without_error_is_what_the_general_way_writes(version: int) -> None:
    result = PartitionResult(3, 0, 1000, -1, 5)
    topic = TopicResult("events", None, [result])
    general = [TopicResult("events", None, [result._replace(current_leader=Leader(-1, -1))])]
    assert encode_produce_response(version, 7, [topic], 9) == encode_produce_response(
        version, 7, general, 9
    )


@pytest.mark.parametrize("shape", ["topics", "partitions"])
def test_number_of_items_is_limited(shape: str) -> None:
    start = b"\xff\xff\x00\x01\x00\x00\x00\x05"
    if shape == "topics":
        frame = start + (ITEMS_MAX + 1).to_bytes(4, "big") + bytes(6) * (ITEMS_MAX + 1)
    else:
        partitions = (ITEMS_MAX - 1).to_bytes(4, "big") + bytes(8) * (ITEMS_MAX - 1)
        frame = start + b"\x00\x00\x00\x02" + (b"\x00\x00" + partitions) * 2
    with pytest.raises(ProtocolError, match="items"):
        parse_produce(memoryview(frame), 0, 3)
