import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.records.strategies import codecs, record_lists

from ottla.records.batch import read_header, set_append_time, write_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidRecord,
    InvalidTimestamp,
    RecordError,
    UnsupportedFormat,
)
from ottla.records.validation import validate_keys, validate_produced, validate_records

LIMIT = 1 << 20


def produced(**arguments: object) -> bytearray:
    return build_batch([Record(timestamp=5, value=b"a"), Record(timestamp=6)], **arguments)  # type: ignore[arg-type]


def rewritten(position: int, data: bytes) -> bytearray:
    batch = produced()
    batch[position : position + len(data)] = data
    write_checksum(batch, 0, len(batch))
    return batch


@given(records=record_lists, codec=codecs)
def test_what_a_client_builds_is_accepted(records: list[Record], codec: int) -> None:
    batch = build_batch(records, compression=codec)
    assert validate_produced(memoryview(batch), max_batch_bytes=LIMIT) == read_header(batch)


@pytest.mark.parametrize("transactional", [False, True])
def test_idempotent_and_transactional_batches_are_accepted(transactional: bool) -> None:
    batch = produced(producer_id=0, producer_epoch=0, base_sequence=0, transactional=transactional)
    validate_produced(memoryview(batch), max_batch_bytes=LIMIT)


@pytest.mark.parametrize(
    ("batch", "error"),
    [
        (b"", CorruptBatch),
        (bytes(17), UnsupportedFormat),
        (bytes(16) + b"\x01" + bytes(80), UnsupportedFormat),
        (bytes(16) + b"\x03" + bytes(80), CorruptBatch),
        (produced()[:20], CorruptBatch),
        (produced()[:-1], CorruptBatch),
        (produced() + b"x", InvalidRecord),
        (produced() + produced(), InvalidRecord),
        (produced(control=True), InvalidRecord),
        (produced(delete_horizon_ms=3), InvalidRecord),
        (produced(last_offset_delta=2), InvalidRecord),
        (produced(transactional=True), InvalidRecord),
        (produced(producer_id=1, producer_epoch=0), InvalidRecord),
        (produced(producer_id=1, base_sequence=0), InvalidRecord),
        (build_batch([], last_offset_delta=0), InvalidRecord),
        (rewritten(8, bytes(4)), CorruptBatch),
        (rewritten(8, b"\xff\xff\xff\xff"), CorruptBatch),
        (rewritten(8, b"\x7f\xff\xff\xff"), CorruptBatch),
        (rewritten(22, b"\x05"), InvalidRecord),
        (rewritten(23, b"\xff\xff\xff\xff"), InvalidRecord),
        (rewritten(57, b"\xff\xff\xff\xff"), InvalidRecord),
    ],
)
def test_bad_batch_is_refused(batch: bytes, error: type[RecordError]) -> None:
    with pytest.raises(error):
        validate_produced(memoryview(batch), max_batch_bytes=LIMIT)


@given(position=st.integers(0, 100), mask=st.integers(1, 255))
def test_any_damage_past_the_leader_epoch_is_found(position: int, mask: int) -> None:
    batch = produced()
    index = 16 + position % (len(batch) - 16)
    batch[index] ^= mask
    with pytest.raises(RecordError):
        validate_produced(memoryview(batch), max_batch_bytes=LIMIT)


def test_size_limit_is_inclusive() -> None:
    batch = memoryview(produced())
    validate_produced(batch, max_batch_bytes=len(batch))
    with pytest.raises(BatchTooLarge):
        validate_produced(batch, max_batch_bytes=len(batch) - 1)


def test_append_time_from_a_client_is_refused() -> None:
    batch = produced()
    set_append_time(batch, 0, 5)
    with pytest.raises(InvalidTimestamp):
        validate_produced(memoryview(batch), max_batch_bytes=LIMIT)


@pytest.mark.parametrize("codec", range(5))
def test_keyless_records_are_named_by_index(codec: int) -> None:
    keys = [b"a", None, b"", None]
    batch = build_batch([Record(key=key, value=b"v") for key in keys], compression=codec)
    with pytest.raises(InvalidRecord) as raised:
        validate_keys(memoryview(batch))
    assert raised.value.record_indexes == [1, 3]
    validate_keys(memoryview(build_batch([Record(key=b"")], compression=codec)))


@given(records=record_lists, codec=codecs)
def test_what_can_be_read_is_taken(records: list[Record], codec: int) -> None:
    validate_records(memoryview(build_batch(records, compression=codec)))


@pytest.mark.parametrize("position", [61, 64, 65])  # Size, offset delta and key of a record.
def test_what_cannot_be_read_is_refused_for_good(position: int) -> None:
    batch = rewritten(position, b"\x7e")
    validate_produced(memoryview(batch), max_batch_bytes=LIMIT)
    with pytest.raises(InvalidRecord):
        validate_records(memoryview(batch))
