from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.schema.metadata.v1.request import MetadataRequest
from kio.schema.metadata.v12.request import MetadataRequest as FlexibleMetadataRequest
from kio.schema.offset_commit.v2.request import OffsetCommitRequest
from tests.protocol.entities import encode, entities, versions

from ottla.protocol.errors import ProtocolError
from ottla.protocol.reader import read_entity
from ottla.protocol.wire_primitives import ITEMS_MAX

each_api = pytest.mark.parametrize("key", api_key_map)


@each_api
@settings(max_examples=5)
@given(data=st.data(), padding=st.binary(max_size=3))
def test_reads_what_kio_writes(key: int, data: st.DataObject, padding: bytes) -> None:
    for version in versions(key):
        for load in (load_request_schema, load_response_schema):
            type_ = load(key, version)
            entity = data.draw(entities(type_))
            frame = padding + encode(entity)
            assert read_entity(type_, frame + padding, len(padding)) == (entity, len(frame))


@each_api
@settings(max_examples=5)
@given(data=st.data())
def test_damaged_bytes_give_an_entity_or_a_protocol_error(key: int, data: st.DataObject) -> None:
    for version in versions(key):
        type_ = load_request_schema(key, version)
        frame = bytearray(encode(data.draw(entities(type_))))
        flips = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 255)), max_size=3)
        for position, mask in data.draw(flips):
            if frame:
                frame[position % len(frame)] ^= mask
        del frame[len(frame) - data.draw(st.integers(0, 4)) :]
        _read_or_refuse(type_, bytes(frame))


@each_api
@settings(max_examples=5)
@given(frame=st.binary(max_size=60))
def test_random_bytes_give_an_entity_or_a_protocol_error(key: int, frame: bytes) -> None:
    for version in versions(key):
        _read_or_refuse(load_request_schema(key, version), frame)
        _read_or_refuse(load_response_schema(key, version), frame)


@each_api
def test_monotonous_bytes_give_an_entity_or_a_protocol_error(key: int) -> None:
    for version in versions(key):
        for byte in (0x00, 0x01, 0x7F, 0x80, 0xFF):
            for size in (1, 8, 200):
                _read_or_refuse(load_request_schema(key, version), bytes([byte]) * size)


def _read_or_refuse(type_: type, frame: bytes) -> None:
    try:
        _, end = read_entity(type_, frame)
    except ProtocolError:
        return
    assert end <= len(frame)


@pytest.mark.parametrize(
    ("type_", "frame"),
    [
        (MetadataRequest, b"\x7f\xff\xff\xff"),
        (MetadataRequest, b"\xff\xff\xff\xfe"),
        (FlexibleMetadataRequest, b"\xff\xff\xff\xff\x07" + bytes(40)),
        (FlexibleMetadataRequest, b"\xff\xff\xff\xff\x0f" + bytes(40)),
        (FlexibleMetadataRequest, b"\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(40)),
        (ApiVersionsRequest, b"\xff\xff\xff\xff\x07ab"),
        (ApiVersionsRequest, b"\x01\x01\xff\xff\xff\xff\x07"),
        (ApiVersionsRequest, b"\x01\x01\x01\x00\xff\xff\xff\xff\x07"),
        (ApiVersionsRequest, b"\x00\x01\x00"),
        (ApiVersionsRequest, b"\x02\xff\x01\x00"),
    ],
)
def test_lengths_are_not_believed(type_: type, frame: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_entity(type_, frame)


def test_number_of_items_is_limited() -> None:
    frame = (ITEMS_MAX + 1).to_bytes(4, "big") + bytes(2 * ITEMS_MAX + 2)
    with pytest.raises(ProtocolError, match="array"):
        read_entity(MetadataRequest, frame)


def test_unknown_tagged_fields_are_skipped() -> None:
    frame = b"\x02a\x02b" + b"\x02\x05\x03xyz\x07\x00"
    entity, end = read_entity(ApiVersionsRequest, frame)
    assert (entity.client_software_name, entity.client_software_version) == ("a", "b")
    assert end == len(frame)


def test_unknown_error_code_is_an_unknown_error() -> None:
    type_: Any = load_response_schema(12, 0)
    entity, _ = read_entity(type_, b"\x7f\xff")
    assert entity.error_code is ErrorCode.unknown_server_error


def test_time_without_end_is_the_longest_time() -> None:
    request = b"\x00\x01g\xff\xff\xff\xff\x00\x00" + b"\x7f" + b"\xff" * 7 + bytes(4)
    entity, _ = read_entity(OffsetCommitRequest, request)
    assert entity.retention_time.days > 900_000_000
