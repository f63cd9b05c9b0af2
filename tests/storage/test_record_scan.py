import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.batch import read_header, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.errors import CorruptBatch, RecordError
from ottla.storage.record_scan import body_of, copy_records, scan_records

DATA = st.none() | st.binary(max_size=200)
RECORDS = st.lists(
    st.builds(
        Record,
        offset=st.just(-1),
        timestamp=st.integers(0, 2**41),
        key=DATA,
        value=DATA,
        headers=st.lists(st.tuples(st.text(max_size=5), DATA), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


@given(
    records=RECORDS,
    compression=st.integers(0, 4),
    base_offset=st.integers(0, 2**60),
    picks=st.lists(st.booleans(), min_size=8, max_size=8),
)
def test_scanned_and_copied_records_are_those_of_the_decoder(
    records: list[Record], compression: int, base_offset: int, picks: list[bool]
) -> None:
    batch = build_batch(records, base_offset=base_offset, compression=compression)
    header = read_header(batch)
    decoded = list(iterate_records(batch))
    body = body_of(memoryview(batch), header)
    scanned = list(scan_records(body, header))
    assert [(each.offset, each.key, each.has_value) for each in scanned] == [
        (record.offset, record.key, record.value is not None) for record in decoded
    ]
    kept = [each for each, pick in zip(scanned, picks, strict=False) if pick] or scanned[:1]
    copy = copy_records(header, body, kept)
    copied = list(iterate_records(copy))
    offsets = {each.offset for each in kept}
    assert copied == [record for record in decoded if record.offset in offsets]
    copied_header = read_header(copy)
    validate_checksum(copy, 0, copied_header)
    assert copied_header.max_timestamp == max(record.timestamp for record in copied)
    assert copied_header.last_offset == header.last_offset


@given(st.binary(max_size=60), st.integers(1, 5))
def test_any_bytes_give_records_or_an_error(body: bytes, count: int) -> None:
    header = read_header(build_batch([Record(value=b"v")] * count))
    try:
        scanned = list(scan_records(body, header))
    except RecordError:
        return
    assert len(scanned) == count
    assert all(each.end <= len(body) for each in scanned)


def test_a_key_that_reaches_past_its_record() -> None:
    header = read_header(build_batch([Record(value=b"v")]))
    with pytest.raises(CorruptBatch, match="a key of"):
        list(scan_records(bytes([10, 0, 0, 0, 20, 65]) + bytes(20), header))
