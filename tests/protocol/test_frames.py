import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map
from kio.static.primitive import i16, i32
from tests.protocol.entities import encode, versions

from ottla.protocol.errors import ProtocolError
from ottla.protocol.frames import (
    RequestHeader,
    is_flexible,
    parse_request_header,
    request_prefix,
    response_prefix,
)

API_VERSIONS = [(key, version) for key in api_key_map for version in versions(key)]


@pytest.mark.parametrize("key", api_key_map)
def test_flexible_versions_are_those_of_the_schemas(key: int) -> None:
    for version in versions(key):
        request, response = load_request_schema(key, version), load_response_schema(key, version)
        assert is_flexible(key, version) == request.__flexible__ == response.__flexible__


@given(
    api=st.sampled_from(API_VERSIONS),
    correlation_id=st.integers(0, 2**31 - 1),
    client_id=st.none() | st.text(max_size=20),
)
def test_headers_are_those_of_kio(
    api: tuple[int, int], correlation_id: int, client_id: str | None
) -> None:
    key, version = api
    header_type = load_request_schema(key, version).__header_schema__
    header = encode(
        header_type(
            request_api_key=i16(key),
            request_api_version=i16(version),
            correlation_id=i32(correlation_id),
            client_id=client_id,
        )
    )
    assert request_prefix(key, version, correlation_id, client_id) == header
    assert parse_request_header(memoryview(header + b"body")) == RequestHeader(
        key, version, correlation_id, client_id, len(header)
    )
    response_header = load_response_schema(key, version).__header_schema__
    assert response_prefix(key, version, correlation_id) == encode(
        response_header(correlation_id=i32(correlation_id))
    )


def test_tagged_fields_of_a_header_are_skipped() -> None:
    header = request_prefix(3, 12, 1, "me")
    tagged = header[:-1] + b"\x02\x00\x03abc\x07\x00"
    assert parse_request_header(memoryview(tagged + b"xy")).body_position == len(tagged)


@pytest.mark.parametrize("size", range(13))
def test_short_header_is_refused(size: int) -> None:
    header = request_prefix(3, 12, 1, "me")
    with pytest.raises(ProtocolError):
        parse_request_header(memoryview(header[:-1] + b"\x01\x00\x7f")[:size])


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01\x00\x05ab",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\xff\x0f",
        b"\x02\x05\x00\x05\x00",
        b"\x02\x05\x00\x04\x00",
    ],
)
def test_bad_tagged_fields_are_refused(tags: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(memoryview(request_prefix(3, 12, 1, "me")[:-1] + tags))


def test_client_id_that_is_no_text_is_refused() -> None:
    with pytest.raises(ProtocolError):
        parse_request_header(memoryview(b"\x00\x03\x00\x00\x00\x00\x00\x01\x00\x01\xff"))


def test_unknown_api_is_read_for_the_sake_of_the_answer() -> None:
    header = parse_request_header(memoryview(b"\x03\xe8\x00\x01\x00\x00\x00\x09\xff\xff"))
    assert header == RequestHeader(1000, 1, 9, None, 10)


def test_unknown_version_of_api_versions_has_a_flexible_header() -> None:
    header = parse_request_header(memoryview(request_prefix(18, 99, 5, "x") + b"?"))
    assert header == RequestHeader(18, 99, 5, "x", 12)


@given(frame=st.binary(max_size=40))
def test_random_bytes_are_parsed_or_refused(frame: bytes) -> None:
    try:
        header = parse_request_header(memoryview(frame))
    except ProtocolError:
        return
    assert header.body_position <= len(frame)
