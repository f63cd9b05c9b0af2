import pytest

from ottla.records.batch import (
    HEADER_SIZE,
    SEQUENCE_MAX,
    TimestampType,
    assign,
    iterate_headers,
    read_header,
    set_append_time,
    validate_checksum,
)
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.errors import CorruptBatch


def test_header_reads_every_field() -> None:
    batch = build_batch(
        [Record(timestamp=1000, value=b"a"), Record(timestamp=900, value=b"b")],
        base_offset=70,
        compression=3,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        leader_epoch=8,
        transactional=True,
    )
    header = read_header(batch)
    assert header.base_offset == 70
    assert header.size == len(batch)
    assert header.partition_leader_epoch == 8
    assert header.magic == 2
    assert (header.last_offset_delta, header.last_offset, header.next_offset) == (1, 71, 72)
    assert (header.base_timestamp, header.max_timestamp) == (1000, 1000)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, 7)
    assert (header.last_sequence, header.records_count) == (8, 2)
    assert header.compression == 3
    assert header.is_transactional
    assert not header.is_control
    assert header.timestamp_type is TimestampType.CREATE
    assert header.delete_horizon_ms is None


def test_last_sequence_wraps_to_zero() -> None:
    records = [Record(value=b"a"), Record(value=b"b"), Record(value=b"c")]
    batch = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=SEQUENCE_MAX)
    assert read_header(batch).last_sequence == 1
    assert read_header(build_batch(records)).last_sequence == -1


def test_assign_keeps_the_checksum_valid() -> None:
    buffer = bytearray(b"xyz") + build_batch([Record(value=b"a")])
    assign(buffer, 3, 1 << 40, 9)
    header = read_header(buffer, 3)
    assert (header.base_offset, header.partition_leader_epoch) == (1 << 40, 9)
    validate_checksum(buffer, 3, header)


def test_set_append_time_changes_every_timestamp_and_the_checksum() -> None:
    buffer = bytearray(b"xyz") + build_batch([Record(timestamp=5, value=b"a")])
    set_append_time(memoryview(buffer), 3, 777)
    header = read_header(buffer, 3)
    assert header.timestamp_type is TimestampType.APPEND
    assert header.max_timestamp == 777
    validate_checksum(buffer, 3, header)
    assert [record.timestamp for record in iterate_records(buffer, 3)] == [777]


def test_checksum_of_damaged_batch_is_refused() -> None:
    batch = build_batch([Record(value=b"a")])
    batch[-2] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        validate_checksum(batch, 0, read_header(batch))


def test_iterate_headers_stops_before_an_incomplete_batch() -> None:
    first = build_batch([Record(value=b"a")])
    second = build_batch([Record(value=b"bb")], base_offset=1)
    for size in (0, 1, HEADER_SIZE, len(second) - 1):
        found = list(iterate_headers(first + second + second[:size]))
        assert [position for position, _ in found] == [0, len(first)]
        assert [header.base_offset for _, header in found] == [0, 1]


@pytest.mark.parametrize("position", [8, 16])
def test_iterate_headers_refuses_bytes_that_are_no_batch(position: int) -> None:
    batch = build_batch([Record(value=b"a")])
    batch[position] = 0xFF
    with pytest.raises(CorruptBatch):
        list(iterate_headers(batch))
