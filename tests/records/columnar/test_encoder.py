"""The batches equal those of the record builder, and other libraries read them."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists

from ottla.records.batch import iterate_headers, read_header, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.columnar import encoder
from ottla.records.columnar.columns import HEADERS_TYPE
from ottla.records.columnar.encoder import (
    EncodedBatch,
    Rows,
    Stretch,
    Writing,
    encode_batches,
    encode_stretches,
)
from ottla.records.decoder import iterate_records
from ottla.records.errors import InvalidRecord
from ottla.records.validation import validate_produced


def columns(records: list[Record]) -> Rows:
    return Rows(
        np.array([record.timestamp for record in records], np.int64),
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array(
            [[{"key": name, "value": value} for name, value in r.headers] for r in records],
            HEADERS_TYPE,
        ),
    )


def encode(rows: Rows, base_sequence: int = -1, **options: Any) -> list[EncodedBatch]:
    return list(encode_batches(rows, Writing(**options), base_sequence))


@given(records=record_lists)
def test_one_batch_is_the_builders_byte_for_byte(records: list[Record]) -> None:
    (batch,) = encode(columns(records))
    assert batch.data == build_batch(records)
    assert batch.rows == len(records)


@given(records=record_lists, codec=codecs, data=st.data())
def test_slices_and_all_codecs(records: list[Record], codec: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(records) - 1))
    rows = columns(records)
    sliced = Rows(rows.timestamp[first:], *(array.slice(first) for array in rows[1:]))
    (batch,) = encode(sliced, compression=codec)
    found = [record._replace(offset=-1) for record in iterate_records(batch.data)]
    assert found == records[first:]
    assert validate_produced(memoryview(batch.data), max_batch_bytes=1 << 20)


@pytest.mark.parametrize("codec", range(5))
def test_another_implementation_reads_it(codec: int) -> None:
    records = [
        Record(-1, 1_000 + index, b"k%d" % index, b"v" * index, (("h", b"x"), ("n", None)))
        for index in range(300)
    ]
    (batch,) = encode(columns(records), compression=codec)
    reader = DefaultRecordBatch(batch.data)
    assert reader.validate_crc()
    found = [
        Record(-1, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in reader
    ]
    assert found == records


@given(records=record_lists, limit=st.integers(100, 600))
def test_rows_are_split_into_batches_below_the_limit(records: list[Record], limit: int) -> None:
    batches = encode(columns(records), batch_bytes_max=limit)
    for batch in batches:
        validate_checksum(batch.data, 0, read_header(batch.data))
        assert len(batch.data) <= limit or batch.rows == 1
    found = [
        record._replace(offset=-1) for batch in batches for record in iterate_records(batch.data)
    ]
    assert found == records


def test_the_producer_and_its_sequences() -> None:
    rows = columns([Record(timestamp=index, value=b"v" * 50) for index in range(10)])
    batches = encode(
        rows,
        base_sequence=2**31 - 4,
        producer_id=7,
        producer_epoch=3,
        transactional=True,
        batch_bytes_max=61 + 3 * 91,
    )
    headers = [header for batch in batches for _, header in iterate_headers(batch.data)]
    assert [header.records_count for header in headers] == [3, 3, 3, 1]
    assert [header.base_sequence for header in headers] == [2**31 - 4, 2**31 - 1, 2, 5]
    assert {(header.producer_id, header.producer_epoch) for header in headers} == {(7, 3)}
    assert all(header.is_transactional for header in headers)


@given(records=record_lists, limit=st.integers(100, 600), data=st.data())
def test_stretches_are_what_each_is_alone(
    records: list[Record], limit: int, data: st.DataObject
) -> None:
    inner = st.sets(st.integers(1, len(records) - 1)) if len(records) > 1 else st.just(set[int]())
    starts = [0, *sorted(data.draw(inner))]
    stretches = [Stretch(start, 1_000 * index) for index, start in enumerate(starts)]
    found: list[list[EncodedBatch]] = [[] for _ in starts]
    writing = Writing(batch_bytes_max=limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "_ROWS_TOGETHER", data.draw(st.integers(0, 2 * len(records))))
        for index, batch in encode_stretches(columns(records), stretches, writing):
            found[index].append(batch)
    for index, (start, stop) in enumerate(itertools.pairwise([*starts, len(records)])):
        alone = columns(records[start:stop])
        assert found[index] == encode(alone, 1_000 * index, batch_bytes_max=limit)


def test_text_columns_and_missing_ones() -> None:
    timestamps = np.array([5, 3], np.int64)
    (batch,) = encode(Rows(timestamps, value=pa.array(["grün", None])))
    records = list(iterate_records(batch.data))
    assert [record[1:] for record in records] == [
        (5, None, "grün".encode(), ()),
        (3, None, None, ()),
    ]
    assert read_header(batch.data).max_timestamp == 5


def test_null_lists_of_headers_are_empty_ones() -> None:
    headers = pa.array([None, [], [{"key": "a", "value": None}]], HEADERS_TYPE)
    (batch,) = encode(Rows(np.zeros(3, np.int64), headers=headers))
    found = [record.headers for record in iterate_records(batch.data)]
    assert found == [(), (), (("a", None),)]


def test_no_rows_are_no_batch() -> None:
    assert encode(columns([])) == []


def test_a_header_without_a_name_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b"x"}]], HEADERS_TYPE)
    with pytest.raises(InvalidRecord, match="without a name"):
        encode(Rows(np.zeros(1, np.int64), headers=headers))


@given(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62))
def test_times_of_any_distance(first: int, second: int) -> None:
    (batch,) = encode(Rows(np.array([first, second], np.int64)))
    assert [record.timestamp for record in iterate_records(batch.data)] == [first, second]
