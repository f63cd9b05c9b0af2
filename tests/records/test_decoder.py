import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists, with_offsets

from ottla.records.batch import HEADER_SIZE, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import (
    ControlType,
    Marker,
    build_marker,
    control_type,
    iterate_records,
    parse_marker,
)
from ottla.records.errors import InvalidRecord, RecordError


@given(records=record_lists, codec=codecs, padding=st.binary(max_size=9))
def test_round_trip(records: list[Record], codec: int, padding: bytes) -> None:
    batch = build_batch(records, base_offset=1000, compression=codec)
    found = list(iterate_records(padding + batch + padding, len(padding)))
    assert found == with_offsets(records, 1000)


@given(records=record_lists, codec=codecs, passed=st.integers(-2, 20))
def test_records_before_an_offset_are_passed_over(
    records: list[Record], codec: int, passed: int
) -> None:
    batch = build_batch(records, base_offset=1000, compression=codec)
    found = list(iterate_records(batch, from_offset=1000 + passed))
    assert found == with_offsets(records, 1000)[max(0, passed) :]


def test_offsets_with_holes_are_looked_at_also_if_the_header_tells_of_none() -> None:
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 20)
    for offset in (0, 3, 4, 9):
        assert builder.append(offset, 1000, b"key", b"value", [])
    batch = bytearray(builder.build())
    assert [each.offset for each in iterate_records(bytes(batch), from_offset=3)] == [3, 4, 9]
    batch[23:27] = (3).to_bytes(4, "big")  # The last offset, from the first.
    assert [each.offset for each in iterate_records(bytes(batch), from_offset=3)] == [3, 4, 9]


@pytest.mark.parametrize("codec", range(5))
def test_reads_what_another_implementation_writes(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for offset in range(500):
        assert builder.append(offset, 1000 + offset, b"key", b"value" * 20, [("h", b"x")])
    records = list(iterate_records(bytes(builder.build())))
    assert len(records) == 500
    assert records[7] == Record(7, 1007, b"key", b"value" * 20, (("h", b"x"),))


@given(
    records=record_lists,
    codec=codecs,
    flips=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 255)), max_size=5),
    missing=st.integers(0, 20),
)
def test_damaged_batch_gives_records_or_a_record_error(
    records: list[Record], codec: int, flips: list[tuple[int, int]], missing: int
) -> None:
    batch = build_batch(records, compression=codec)
    for position, mask in flips:
        batch[position % len(batch)] ^= mask
    try:
        list(iterate_records(batch[: len(batch) - missing], limit=1 << 20))
    except RecordError:
        pass


@given(body=st.binary(max_size=60), count=st.integers(-2, 2**31 - 1))
def test_random_body_gives_records_or_a_record_error(body: bytes, count: int) -> None:
    batch = build_batch([Record(value=b"a")])[:HEADER_SIZE] + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    try:
        list(iterate_records(batch))
    except RecordError:
        pass


@pytest.mark.parametrize("type_", list(ControlType))
def test_marker_round_trip(type_: ControlType) -> None:
    batch = build_marker(Marker(type_, 5), timestamp_ms=77, producer_id=8, producer_epoch=3)
    header = read_header(batch)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (8, 3, -1)
    (record,) = iterate_records(batch)
    assert record.timestamp == 77
    assert parse_marker(record) == Marker(type_, 5)


def test_marker_bytes_are_kafkas() -> None:
    batch = build_marker(
        Marker(ControlType.COMMIT, 2), timestamp_ms=0, producer_id=8, producer_epoch=3
    )
    (record,) = iterate_records(batch)
    assert record.key == bytes.fromhex("00000001")
    assert record.value == bytes.fromhex("000000000002")


def test_control_record_that_is_no_marker() -> None:
    leader_change = Record(key=bytes.fromhex("00000002"), value=b"")
    assert control_type(leader_change) == 2
    assert parse_marker(leader_change) is None


@pytest.mark.parametrize(
    "record",
    [
        Record(),
        Record(key=b"\x00"),
        Record(key=b"\xff\xff\x00\x00"),
        Record(key=bytes(4)),
        Record(key=bytes(4), value=bytes(5)),
    ],
)
def test_malformed_marker_is_refused(record: Record) -> None:
    with pytest.raises(InvalidRecord):
        parse_marker(record)
