"""Batches whose header lies, with a valid checksum: refused, and the partition is unchanged."""

import gzip
import struct
from collections.abc import Iterator

import cramjam
import pytest
import zstandard
from crc32c import crc32c
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import batch, produce, produced
from tests.clients.wire import Wire
from tests.process.beside import ClientBeside, resident_bytes
from tests.process.stored import read_partition

from ottla.protocol.errors import ErrorCode

PLAIN, COMPACTED = "plain", "compacted"
MEMORY_GROWTH_MAX = 400 * 1024 * 1024  # A bomb may decompress to 128 MB before it is refused.
BOMB_BYTES = 300 * 1024 * 1024
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
HEADER_SIZE = 61
ATTRIBUTES = struct.Struct(">h"), 21


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("lies")) as process:
        client = ConfluentClient(process.bootstrap)
        client.create_topic(PLAIN)
        client.create_topic(COMPACTED, config={"cleanup.policy": "compact"})
        yield process


@pytest.fixture
def wire(broker: BrokerProcess) -> Iterator[Wire]:
    with Wire(broker.bootstrap) as connection:
        yield connection


@pytest.fixture(autouse=True)
def _unharmed(broker: BrokerProcess) -> Iterator[None]:
    memory, log_size = resident_bytes(broker), len(broker.log_text())
    with Wire(broker.bootstrap) as wire:
        ends = [read_partition(wire, topic).end_offset for topic in (PLAIN, COMPACTED)]
        with ClientBeside(broker.bootstrap):
            yield
        assert [read_partition(wire, topic).end_offset for topic in (PLAIN, COMPACTED)] == ends
        for topic in (PLAIN, COMPACTED):
            answer = produced(wire.call(produce(topic, batch(b"fine"))))
            assert answer.error_code == ErrorCode.none
            read_partition(wire, topic)
    assert resident_bytes(broker) - memory < MEMORY_GROWTH_MAX
    assert " ERROR " not in broker.log_text()[log_size:]


def _with_checksum(records: bytearray) -> bytes:
    struct.pack_into(">I", records, 17, crc32c(bytes(records[21:])))
    return bytes(records)


def _changed(form: str, position: int, value: int) -> bytes:
    records = bytearray(batch(b"a", b"b", b"c"))
    struct.pack_into(form, records, position, value)
    return _with_checksum(records)


def _compressed(codec: int, payload: bytes, records_count: int = 1) -> bytes:
    records = bytearray(batch(b"a")[:HEADER_SIZE]) + payload
    struct.pack_into(">i", records, 8, len(records) - 12)
    struct.pack_into(">h", records, 21, codec)
    struct.pack_into(">i", records, 23, records_count - 1)
    struct.pack_into(">i", records, 57, records_count)
    return _with_checksum(records)


LENGTH = (">i", 8)
MAGIC = (">b", 16)
LAST_OFFSET_DELTA = (">i", 23)
RECORDS_COUNT = (">i", 57)
PRODUCER_EPOCH_MISSING = (">q", 43)  # A producer id without an epoch.


@pytest.mark.parametrize("topic", [PLAIN, COMPACTED])
@pytest.mark.parametrize(
    ("form", "position", "value"),
    [
        (*RECORDS_COUNT, 0),
        (*RECORDS_COUNT, -1),
        (*RECORDS_COUNT, 2),
        (*RECORDS_COUNT, 2**31 - 1),
        (*LAST_OFFSET_DELTA, 0),
        (*LAST_OFFSET_DELTA, -1),
        (*LAST_OFFSET_DELTA, 2**31 - 1),
        (*LENGTH, 0),
        (*LENGTH, -1),
        (*LENGTH, 10),
        (*LENGTH, 2**31 - 1),
        (*MAGIC, 0),
        (*MAGIC, 1),
        (*MAGIC, 3),
        (*PRODUCER_EPOCH_MISSING, 5),
        (ATTRIBUTES[0].format, ATTRIBUTES[1], 7),
        (ATTRIBUTES[0].format, ATTRIBUTES[1], 1 << 3),
        (ATTRIBUTES[0].format, ATTRIBUTES[1], 1 << 5),
        (ATTRIBUTES[0].format, ATTRIBUTES[1], 1 << 6),
    ],
)
def test_a_lie_in_the_header(wire: Wire, topic: str, form: str, position: int, value: int) -> None:
    answer = produced(wire.call(produce(topic, _changed(form, position, value))))
    assert answer.error_code in (
        ErrorCode.invalid_record,
        ErrorCode.corrupt_message,
        ErrorCode.invalid_timestamp,
        ErrorCode.unsupported_for_message_format,
    )
    assert answer.error_message


def test_more_records_than_bytes(wire: Wire) -> None:
    records = bytearray(batch(b"a"))
    struct.pack_into(">i", records, 23, 2**31 - 2)
    struct.pack_into(">i", records, 57, 2**31 - 1)
    for codec in (0, ZSTD):
        struct.pack_into(">h", records, 21, codec)
        answer = produced(wire.call(produce(PLAIN, _with_checksum(records))))
        assert answer.error_code == ErrorCode.invalid_record


def test_a_wrong_checksum(wire: Wire) -> None:
    for position in range(17, len(batch(b"a"))):
        records = bytearray(batch(b"a"))
        records[position] ^= 0x10
        answer = produced(wire.call(produce(PLAIN, bytes(records))))
        assert answer.error_code == ErrorCode.corrupt_message


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_garbage_instead_of_compressed_records(wire: Wire, codec: int) -> None:
    for payload in (b"", b"\0" * 50, b"\xff" * 50, bytes(range(200))):
        answer = produced(wire.call(produce(COMPACTED, _compressed(codec, payload))))
        assert answer.error_code in (ErrorCode.corrupt_message, ErrorCode.invalid_record)


def _bombs() -> dict[int, bytes]:
    """Each is smaller than a message may be."""
    zeros = bytes(BOMB_BYTES)
    small = bytes(cramjam.snappy.compress_raw(bytes(20 * 1024 * 1024)))
    return {
        GZIP: gzip.compress(zeros, 9),
        SNAPPY: small,  # Its ratio is no more than 20.
        LZ4: bytes(cramjam.lz4.compress(bytes(BOMB_BYTES // 2))),
        ZSTD: zstandard.ZstdCompressor(level=9).compress(zeros),
    }


def test_decompression_bombs(wire: Wire) -> None:
    for codec, payload in _bombs().items():
        records = _compressed(codec, payload)
        answer = produced(wire.call(produce(COMPACTED, records)))
        assert answer.error_code in (
            ErrorCode.message_too_large,
            ErrorCode.corrupt_message,
            ErrorCode.invalid_record,
        ), codec
