"""Every version of every API, lifted to the newest version and projected down from it."""

import tracemalloc
import uuid
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.fetch.v18.response import PartitionData
from kio.schema.index import api_key_map
from kio.schema.txn_offset_commit.v5.response import TxnOffsetCommitResponsePartition
from kio.static.primitive import Records, i32, i64
from tests.protocol.entities import encode, entities, versions
from tests.protocol.old_clients import lift, project

from ottla.protocol.codec import (
    api_versions_supported_by_codec,
    newest_request_type,
    newest_response_type,
    read_request,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.errors import ErrorCode, ProtocolError
from ottla.protocol.frames import (
    RequestHeader,
    is_flexible,
    parse_request_header,
    response_prefix,
)
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchResponse
from ottla.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)
from ottla.protocol.schema import schema_of
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.wire_primitives import uvarint

OWN_TAGS_FROM = 10_000

each_api = pytest.mark.parametrize("key", api_key_map)


def assert_same_where_both_have_it(old: Any, new: Any) -> None:
    """Null and empty are the same if the old version has no null."""
    if is_dataclass(old):
        names = {field.name for field in fields(new)}
        for field in fields(old):
            if field.name in names:
                assert_same_where_both_have_it(getattr(old, field.name), getattr(new, field.name))
    elif isinstance(old, tuple):
        assert len(old) == len(new or ())
        for old_item, new_item in zip(old, new or (), strict=True):
            assert_same_where_both_have_it(old_item, new_item)
    else:
        assert old == new or (not old and new is None)


@each_api
@settings(max_examples=5)
@given(data=st.data())
def test_lifted_request_has_what_the_client_sent(key: int, data: st.DataObject) -> None:
    for version in versions(key):
        entity = data.draw(entities(load_request_schema(key, version)))
        lifted = lift(key, version, entity)
        assert type(lifted) is newest_request_type(key)
        assert_same_where_both_have_it(entity, lifted)


@each_api
@settings(max_examples=5)
@given(data=st.data())
def test_request_round_trip_through_every_version(key: int, data: st.DataObject) -> None:
    """A request of any version can be encoded in that version again, byte for byte."""
    for version in versions(key):
        entity = data.draw(entities(load_request_schema(key, version)))
        lifted = lift(key, version, entity)
        frame = memoryview(write_request(key, version, 7, "me", lifted))[4:]
        header = parse_request_header(frame)
        assert header[:4] == (key, version, 7, "me")
        assert bytes(frame[header.body_position :]) == encode(entity)
        assert read_request(header, frame) == lifted


@each_api
@settings(max_examples=5)
@given(data=st.data())
def test_response_round_trip_through_every_version(key: int, data: st.DataObject) -> None:
    for version in versions(key):
        entity = data.draw(entities(load_response_schema(key, version)).filter(_expressible))
        frame = response_prefix(key, version, 9) + encode(entity)
        correlation_id, lifted = read_response(key, version, memoryview(frame))
        assert correlation_id == 9
        assert type(lifted) is newest_response_type(key)
        assert write_response(key, version, 9, lifted)[4:] == frame


def _expressible(entity: Any) -> bool:
    """ApiVersions v3 does not show features whose lowest version is 0."""
    features = getattr(entity, "supported_features", ())
    return entity.__version__ > 3 or all(feature.min_version > 0 for feature in features)


@each_api
@settings(max_examples=5)
@given(data=st.data())
def test_response_of_the_newest_version_can_be_written_in_every_version(
    key: int, data: st.DataObject
) -> None:
    entity = data.draw(entities(newest_response_type(key)).map(_with_one_result))
    entity = _without_own_tags(entity)  # kio refuses this.
    for version in versions(key):
        project(key, version, entity)


def _without_own_tags(entity: Any) -> Any:
    if isinstance(entity, tuple):
        return tuple(map(_without_own_tags, entity))
    if not is_dataclass(entity) or isinstance(entity, type):
        return entity
    return replace(
        entity,
        **{
            field.name: field.default
            if field.metadata.get("tag", 0) >= OWN_TAGS_FROM
            else _without_own_tags(getattr(entity, field.name))
            for field in fields(entity)
        },
    )


def _with_one_result(entity: Any) -> Any:
    """Where old versions cannot have several items, handlers answer with one."""
    for name in ("coordinators", "groups", "results_by_transaction"):
        if type(entity).__name__ in (
            "FindCoordinatorResponse",
            "OffsetFetchResponse",
            "AddPartitionsToTxnResponse",
        ) and hasattr(entity, name):
            items = getattr(entity, name) or (_zero(entity, name),)
            entity = replace(entity, **{name: items[:1]})
    return entity


def _zero(entity: Any, name: str) -> Any:
    type_: Any = type(entity)
    (schema,) = (schema for schema in schema_of(type_) if schema.name == name)
    assert schema.entity is not None
    return schema.entity(**{nested.name: nested.default for nested in schema_of(schema.entity)})


@each_api
@settings(max_examples=5)
@given(frame=st.binary(max_size=80), version=st.integers(-2, 20))
def test_any_request_is_read_or_refused(key: int, frame: bytes, version: int) -> None:
    head = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True) + bytes(4)
    data = memoryview(head + b"\x00\x01c" + frame)
    try:
        read_request(parse_request_header(data), data)
    except ProtocolError:
        pass


@pytest.mark.parametrize(("key", "version"), [(4, 0), (999, 0), (-1, 0), (3, 14), (0, 2), (3, -1)])
def test_unknown_api_or_version_is_refused(key: int, version: int) -> None:
    with pytest.raises(ProtocolError):
        read_request(RequestHeader(key, version, 1, None, 0), memoryview(b""))


def test_ranges_are_those_of_kio_and_what_is_newer() -> None:
    assert api_versions_supported_by_codec(0) == (3, 13)
    assert api_versions_supported_by_codec(3) == (0, 13)
    assert api_versions_supported_by_codec(18) == (0, 5)
    assert api_versions_supported_by_codec(28) == (0, 6)


def test_a_client_says_in_v5_which_broker_it_means_to_reach() -> None:
    """Kafka 4.4's layout, which kio does not have yet."""
    head = bytes.fromhex("0012 0005 00000007 ffff 00")
    software = b"\x03me" + b"\x021"
    frame = memoryview(head + software + b"\x03ab" + bytes.fromhex("00000004 00"))
    request = read_request(parse_request_header(frame), frame)
    assert (request.client_software_name, request.client_software_version) == ("me", "1")
    assert (request.cluster_id, request.node_id) == ("ab", 4)
    assert write_request(18, 5, 7, None, request)[4:] == bytes(frame)

    frame = memoryview(head + software + b"\x00" + bytes.fromhex("ffffffff 00"))
    request = read_request(parse_request_header(frame), frame)
    assert (request.cluster_id, request.node_id) == (None, -1)

    old = memoryview(bytes.fromhex("0012 0004 00000007 ffff 00") + software + b"\x00")
    assert read_request(parse_request_header(old), old) == request


def test_transactional_commits_name_topics_by_id_in_v6() -> None:
    """Kafka 4.4's layout, which kio does not have yet."""
    topic_id = uuid.UUID(int=9)
    partition = bytes.fromhex("00000002 000000000000002a ffffffff 00 00")
    head = bytes.fromhex("001c 0006 00000007 ffff 00")
    body = b"\x02t\x02g" + bytes.fromhex("0000000000000005 0001 00000003") + b"\x02m\x00"
    frame = memoryview(head + body + b"\x02" + topic_id.bytes + b"\x02" + partition + b"\x00\x00")
    request = read_request(parse_request_header(frame), frame)
    assert (request.transactional_id, request.group_id, request.member_id) == ("t", "g", "m")
    assert (request.producer_id, request.producer_epoch, request.generation_id) == (5, 1, 3)
    (topic,) = request.topics
    assert (topic.topic_id, topic.name) == (topic_id, "")
    assert (topic.partitions[0].partition_index, topic.partitions[0].committed_offset) == (2, 42)
    assert write_request(28, 6, 7, None, request)[4:] == bytes(frame)

    result = TxnOffsetCommitResponsePartition(partition_index=i32(2), error_code=ErrorCode.none)
    answered = TxnOffsetCommitResponseTopic(name="n", topic_id=topic_id, partitions=(result,))
    response = TxnOffsetCommitResponse(throttle_time=NO_THROTTLE, topics=(answered,))
    ends = bytes.fromhex("02 00000002 0000 00 00 00")
    start = bytes.fromhex("00000007 00 00000000 02")
    assert write_response(28, 6, 7, response)[4:] == start + topic_id.bytes + ends
    assert write_response(28, 5, 7, response)[4:] == start + b"\x02n" + ends


def test_short_response_is_refused() -> None:
    with pytest.raises(ProtocolError):
        read_response(3, 12, memoryview(b"\x00\x00"))


HUGE_LENGTHS = [b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\xff\x0f", b"\x7f\xff\xff\xff", b"\x7f\xff"]


@each_api
def test_huge_length_anywhere_is_refused_before_anything_is_allocated(key: int) -> None:
    """kio's own reader ends the process here."""
    for version in versions(key):
        for size in range(0, 24, 3):
            for length in HUGE_LENGTHS:
                data = memoryview(_head(key, version) + bytes(size) + length + bytes(8))
                tracemalloc.start()
                try:
                    read_request(parse_request_header(data), data)
                except ProtocolError:
                    pass
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert peak < 1_000_000


def _head(key: int, version: int) -> bytes:
    prefix = key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff"
    return prefix + b"\x00" * is_flexible(key, version)


def test_many_unknown_tagged_fields_are_skipped_and_too_many_refused() -> None:
    body = b"\x02a\x02b"
    tags = b"".join(uvarint(tag) + b"\x03abc" for tag in range(1000))
    data = memoryview(_head(18, 3) + body + uvarint(1000) + tags)
    assert read_request(parse_request_header(data), data).client_software_name == "a"
    data = memoryview(_head(18, 3) + body + uvarint(1001) + tags + uvarint(1000) + b"\x00")
    with pytest.raises(ProtocolError, match="1001 tagged fields"):
        read_request(parse_request_header(data), data)


@pytest.mark.parametrize("in_place", [False, True])
def test_records_are_views_of_the_frame_only_when_asked_for(in_place: bool) -> None:
    answer = PartitionData(
        partition_index=i32(0),
        error_code=ErrorCode.none,
        high_watermark=i64(1),
        aborted_transactions=None,
        records=Records(b"some records"),
    )
    topic = FetchableTopicResponse(topic="t", topic_id=None, partitions=(answer,))
    response = FetchResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, session_id=i32(0), responses=(topic,)
    )
    frame = bytearray(write_response(1, 12, 5, response)[4:])
    _, read = read_response(1, 12, memoryview(frame), in_place=in_place)
    (found,) = read.responses[0].partitions
    frame[frame.index(b"some")] = ord("S")
    assert found.records == (b"Some records" if in_place else b"some records")
