"""Batches with a valid checksum but unreadable records, with record validation on."""

import gzip
import struct
from collections.abc import Callable, Iterator

import pytest
from crc32c import crc32c
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from tests.clients.conftest import CreateTopic
from tests.clients.requests import batch, list_offsets, listed, produce, produced
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

HEADER_SIZE = 61
GZIP = 1
OWN_KEYS_FROM = 10_000
WHOLE = batch(b"a", b"b", b"c")


@pytest.fixture
def wire(bootstrap: str) -> Iterator[Wire]:
    with Wire(bootstrap) as connection:
        yield connection


@pytest.fixture
def is_own(wire: Wire) -> bool:
    asking = ApiVersionsRequest(client_software_name="tests", client_software_version="1")
    keys = [int(api.api_key) for api in wire.call(asking).api_keys]
    return max(keys) >= OWN_KEYS_FROM


@pytest.fixture
def topic(create_topic: CreateTopic, is_own: bool) -> str:
    """Kafka validates always."""
    return create_topic(**({"record.validation.enable": "true"} if is_own else {}))


def with_body(body: bytes, codec: int = 0) -> bytes:
    records = bytearray(WHOLE[:HEADER_SIZE]) + body
    struct.pack_into(">i", records, 8, len(records) - 12)
    struct.pack_into(">h", records, 21, codec)
    struct.pack_into(">I", records, 17, crc32c(bytes(records[21:])))
    return bytes(records)


def changed(position: int, value: int) -> Callable[[bytes], bytes]:
    """One byte of the first record."""

    def change(body: bytes) -> bytes:
        return body[:position] + bytes([value]) + body[position + 1 :]

    return change


UNREADABLE: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda body: body[:-1],
    "with more bytes": lambda body: body + b"\0",
    "a record too long": changed(0, 0x7E),
    "an offset of its own": changed(3, 0x0A),
    "a key too long": changed(4, 0x7E),
    "too many headers": changed(8, 0x7E),
}
# Kafka accepts these, or fails.
REFUSED_ONLY_HERE = [
    ("a record too long", GZIP),
    ("an offset of its own", 0),
    ("an offset of its own", GZIP),
]


@pytest.mark.parametrize("codec", [0, GZIP])
@pytest.mark.parametrize("what", UNREADABLE)
def test_records_that_cannot_be_read_are_refused(
    wire: Wire, topic: str, is_own: bool, what: str, codec: int
) -> None:
    if not is_own and (what, codec) in REFUSED_ONLY_HERE:
        pytest.skip("Kafka does not refuse it")
    body = UNREADABLE[what](WHOLE[HEADER_SIZE:])
    records = with_body(gzip.compress(body) if codec else body, codec)
    answer = produced(wire.call(produce(topic, records)))
    assert answer.error_code is ErrorCode.invalid_record
    assert listed(wire.call(list_offsets(topic, -1))).offset == 0


def test_a_damaged_compressed_body_is_refused(wire: Wire, topic: str, is_own: bool) -> None:
    """Kafka fails on these."""
    body = bytearray(gzip.compress(WHOLE[HEADER_SIZE:]))
    body[12] ^= 0xFF
    answer = produced(wire.call(produce(topic, with_body(bytes(body), GZIP))))
    expected = ErrorCode.invalid_record if is_own else ErrorCode.unknown_server_error
    assert answer.error_code is expected
    assert listed(wire.call(list_offsets(topic, -1))).offset == 0


@pytest.mark.parametrize("codec", [0, GZIP])
def test_records_that_can_be_read_are_taken(wire: Wire, topic: str, codec: int) -> None:
    body = WHOLE[HEADER_SIZE:]
    records = with_body(gzip.compress(body) if codec else body, codec)
    assert produced(wire.call(produce(topic, records))).error_code is ErrorCode.none
    assert listed(wire.call(list_offsets(topic, -1))).offset == 3
