"""The columns have the values of the record decoder."""

from collections.abc import Set
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists

from ottla.records.batch import TimestampType, read_header, write_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.columnar.columns import TYPES, Chunk, Column
from ottla.records.columnar.decoder import BYTES_MAX, ROWS_MAX, decode_batches
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError
from ottla.records.isolation import scan_batches

ALL = frozenset(Column)
END = 1 << 40
MS_MAX = (2**63 - 1) // 1000

batches = st.lists(
    st.tuples(record_lists, codecs, st.sampled_from(TimestampType), st.integers(0, 5)),
    min_size=1,
    max_size=5,
)


def decode(
    data: Any, columns: Set[Column] = ALL, start: int = 0, end: int = END
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for chunk in chunks_of(data, columns, start, end):
        assert 0 < chunk.rows <= ROWS_MAX
        assert set(chunk.columns) == set(columns)
        lists = {}
        for column, array in chunk.columns.items():
            array.validate(full=True)
            assert array.type == TYPES[column]
            assert len(array) == chunk.rows
            if column is Column.TIMESTAMP:
                array = array.cast("int64")
            lists[column.value] = array.to_pylist()
        rows += [{name: lists[name][index] for name in lists} for index in range(chunk.rows)]
    return rows


def chunks_of(data: Any, columns: Set[Column] = ALL, start: int = 0, end: int = END) -> list[Chunk]:
    found = scan_batches(data, start, end).batches
    return list(decode_batches(data, found, columns, start, end))


def expected(data: Any, columns: Set[Column] = ALL, start: int = 0, end: int = END) -> Any:
    rows = []
    for position, header in scan_batches(data, start, end).batches:
        for record in iterate_records(data, position):
            if not start <= record.offset < end:
                continue
            headers = [{"key": name, "value": value} for name, value in record.headers]
            row = {
                Column.KEY: record.key,
                Column.VALUE: record.value,
                Column.OFFSET: record.offset,
                Column.TIMESTAMP: max(-MS_MAX, min(MS_MAX, record.timestamp)) * 1000,
                Column.TIMESTAMP_TYPE: int(header.timestamp_type is TimestampType.APPEND),
                Column.HEADERS: headers or None,
            }
            rows.append({column.value: row[column] for column in columns})
    return rows


def build(items: Any) -> bytes:
    """Consecutive batches, each some offsets further."""
    data = bytearray()
    offset = 0
    for records, codec, timestamp_type, gap in items:
        offset += gap
        data += build_batch(
            records, base_offset=offset, compression=codec, timestamp_type=timestamp_type
        )
        offset += len(records)
    return bytes(data)


@given(items=batches, columns=st.frozensets(st.sampled_from(Column), min_size=1), data=st.data())
def test_it_reads_what_the_decoder_of_records_reads(
    items: Any, columns: frozenset[Column], data: st.DataObject
) -> None:
    bytes_ = build(items)
    start = data.draw(st.integers(0, 30))
    end = data.draw(st.integers(start, 60) | st.just(END))
    rows = decode(bytes_, columns, start, end)
    assert rows == expected(bytes_, columns, start, end)


@settings(max_examples=20)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=30, max_size=80),
    value_size=st.sampled_from([0, 1, 50, 56, 63, 64, 127, 128, 8000, 8192, 20_000]),
    codec=st.sampled_from([0, 0, 3]),
)
def test_many_batches_are_read_side_by_side(sizes: list[int], value_size: int, codec: int) -> None:
    items = []
    for index, size in enumerate(sizes):
        value = b"v" * (value_size + index % 3)
        key = None if index % 5 == 0 else b"k" * index
        record = Record(timestamp=1_000 + index, key=key, value=value)
        items.append(([record] * size, codec, TimestampType.CREATE, index % 2))
    data = build(items)
    assert decode(data) == expected(data)


@pytest.mark.parametrize("codec", range(5))
def test_it_reads_what_another_implementation_writes(codec: int) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, False, -1, -1, -1, 1 << 20)
    for offset in range(500):
        assert builder.append(offset, 1000 + offset, b"key", b"value" * 20, [("h", b"x")])
    rows = decode(bytes(builder.build()))
    assert len(rows) == 500
    assert rows[7] == {
        "key": b"key",
        "value": b"value" * 20,
        "offset": 7,
        "timestamp": 1_007_000,
        "timestampType": 0,
        "headers": [{"key": "h", "value": b"x"}],
    }


@pytest.mark.parametrize("codec", [0, 4])
def test_a_batch_of_more_rows_than_a_chunk_comes_in_parts(codec: int) -> None:
    count = 2 * ROWS_MAX + 10
    records = [Record(timestamp=index, value=b"%d" % index) for index in range(count)]
    before = build_batch(records[:3], base_offset=0)
    data = bytes(before + build_batch(records, base_offset=3, compression=codec))
    chunks = chunks_of(data, start=1, end=count)
    assert [chunk.rows for chunk in chunks] == [2, ROWS_MAX, ROWS_MAX, 7]
    values = [value for chunk in chunks for value in chunk.columns[Column.VALUE].to_pylist()]
    assert values == [b"1", b"2", *(b"%d" % index for index in range(count - 3))]


def test_chunks_are_bounded_in_bytes() -> None:
    record = Record(timestamp=1, value=bytes(100_000))
    sizes = []
    for codec in (0, 4):
        data = build([([record] * 10, codec, TimestampType.CREATE, 0)] * 30)
        sizes += [chunk.columns[Column.VALUE].nbytes for chunk in chunks_of(data)]
    assert sum(sizes) > 2 * 30_000_000
    assert max(sizes) < BYTES_MAX + 2_000_000


def test_times_beyond_microseconds_become_the_last_one() -> None:
    data = build([([Record(timestamp=2**62, value=b"a")], 0, TimestampType.CREATE, 0)])
    assert decode(data, {Column.TIMESTAMP}) == [{"timestamp": MS_MAX * 1000}]


def test_numbers_too_long_for_a_word_are_read_all_the_same() -> None:
    records = [Record(timestamp=0, value=b"a"), Record(timestamp=2**60, value=b"b")]
    data = bytes(build_batch(records))
    assert decode(data, {Column.VALUE}) == [{"value": b"a"}, {"value": b"b"}]


def test_header_names_that_are_no_text_have_replacement_characters() -> None:
    batch = build_batch([Record(timestamp=1, headers=(("name", b"x"),))])
    position = bytes(batch).index(b"name")
    batch[position] = 0xFF
    write_checksum(batch, 0, len(batch))
    (row,) = decode(batch, {Column.HEADERS})
    assert row == {"headers": [{"key": "\ufffdame", "value": b"x"}]}


def test_a_compacted_batch_keeps_its_offsets() -> None:
    records = [Record(offset, 7, b"k", b"%d" % offset) for offset in (102, 105, 109)]
    data = bytes(build_batch(records, base_offset=100, last_offset_delta=15))
    rows = decode(data, {Column.OFFSET, Column.VALUE}, 103, 107)
    assert rows == [{"offset": 105, "value": b"105"}]


@settings(max_examples=200)
@given(
    records=record_lists,
    copies=st.sampled_from([1, 30]),
    damage=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=3),
)
def test_damage_is_what_the_decoder_says(
    records: list[Record], copies: int, damage: list[tuple[int, int]]
) -> None:
    """With a valid checksum, as from a broken or malicious producer."""
    data = bytearray()
    for index in range(copies):
        batch = build_batch(records, base_offset=index * len(records))
        for position, byte in damage:
            batch[61 + position % (len(batch) - 61)] = byte
        write_checksum(batch, 0, len(batch))
        data += batch

    def outcome(read: Any) -> Any:
        try:
            return read(data, ALL, -END, END)  # Records outside the range are not checked.
        except RecordError as error:
            assume("UTF-8" not in str(error))
            return type(error), str(error)

    reason = outcome(expected)
    assert outcome(decode) == reason


@given(count=st.integers(1, 2**31 - 1), body=st.binary(min_size=1, max_size=60))
def test_any_count_and_body_give_rows_or_a_record_error(count: int, body: bytes) -> None:
    batch = build_batch([Record(value=b"a")])[:61] + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big")
    write_checksum(batch, 0, len(batch))
    assert read_header(batch).records_count == count
    try:
        decode(batch)
    except RecordError:
        pass
