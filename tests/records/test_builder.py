import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists, with_offsets

from ottla.records.batch import TimestampType, read_header, validate_checksum
from ottla.records.builder import Record, build_batch, varint
from ottla.records.decoder import iterate_records, read_varint


@given(records=record_lists)
def test_bytes_are_those_of_another_implementation(records: list[Record]) -> None:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=True,
        producer_id=11,
        producer_epoch=2,
        base_sequence=33,
        batch_size=1 << 20,
    )
    for index, record in enumerate(records):
        added = builder.append(
            index, record.timestamp, record.key, record.value, list(record.headers)
        )
        assert added is not None
    ours = build_batch(
        records, producer_id=11, producer_epoch=2, base_sequence=33, transactional=True
    )
    # The other one leaves the leader epoch, which the broker sets, at 0.
    theirs = bytearray(builder.build())
    theirs[12:16] = ours[12:16]
    assert ours == theirs


@given(records=record_lists, codec=codecs)
def test_another_implementation_reads_it(records: list[Record], codec: int) -> None:
    batch = DefaultRecordBatch(bytes(build_batch(records, base_offset=40, compression=codec)))
    assert batch.validate_crc()
    assert [
        Record(read.offset, read.timestamp, read.key, read.value, tuple(read.headers))
        for read in batch
    ] == with_offsets(records, 40)


def test_gaps_of_compaction_are_kept() -> None:
    records = [Record(offset=12, key=b"a"), Record(offset=17, key=b"b")]
    batch = build_batch(records, base_offset=10, last_offset_delta=9)
    header = read_header(batch)
    assert (header.base_offset, header.last_offset, header.records_count) == (10, 19, 2)
    assert [record.offset for record in iterate_records(batch)] == [12, 17]


@pytest.mark.parametrize("codec", [0, 4])
def test_emptied_batch_keeps_its_offsets_and_producer(codec: int) -> None:
    batch = build_batch(
        [],
        base_offset=10,
        last_offset_delta=4,
        max_timestamp=99,
        compression=codec,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
    )
    header = read_header(batch)
    validate_checksum(batch, 0, header)
    assert (header.last_offset, header.last_sequence, header.max_timestamp) == (14, 7, 99)
    assert list(iterate_records(batch)) == []


def test_delete_horizon_does_not_move_timestamps() -> None:
    batch = build_batch([Record(timestamp=500, key=b"k")], delete_horizon_ms=9000)
    assert read_header(batch).delete_horizon_ms == 9000
    assert [record.timestamp for record in iterate_records(batch)] == [500]


def test_append_time_is_the_time_of_every_record() -> None:
    records = [Record(timestamp=5, value=b"a"), Record(timestamp=7, value=b"b")]
    batch = build_batch(records, timestamp_type=TimestampType.APPEND, max_timestamp=50)
    assert [record.timestamp for record in iterate_records(batch)] == [50, 50]


@given(value=st.integers(-(2**63), 2**63 - 1))
def test_varint_round_trip(value: int) -> None:
    encoded = varint(value)
    assert read_varint(encoded, 0) == (value, len(encoded))
