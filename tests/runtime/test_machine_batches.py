import pytest
from tests.kits.manual_timers import ManualTimers
from tests.runtime.machines import TextCodec, Words

from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.runtime.machine_batches import (
    StoredBatch,
    decode_batch,
    encode_batch,
    replay_plain,
    stored_batches,
)

CODEC = TextCodec()


def decoded(content: bytearray, from_offset: int = 0) -> list[tuple[object, int, int]]:
    return [
        (replayed, record.offset, record.timestamp)
        for batch in stored_batches(bytes(content), from_offset)
        for replayed, record in decode_batch(batch, CODEC)
    ]


def test_plain_records_are_one_batch() -> None:
    batch = encode_batch(("a", "b"), CODEC, 7)
    assert read_header(batch).records_count == 2
    assert decoded(batch) == [("a", 0, 7), ("b", 1, 7)]


def test_records_of_a_transaction_carry_their_producer() -> None:
    records = (Transactional(5, 2, "a"), Transactional(5, 2, "b"))
    batch = encode_batch(records, CODEC, 7)
    header = read_header(batch)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert header.is_transactional
    assert not header.is_control
    assert [item[0] for item in decoded(batch)] == list(records)


@pytest.mark.parametrize("committed", [True, False])
def test_the_end_of_a_transaction_is_a_control_batch(committed: bool) -> None:
    marker = TransactionMarker(5, 2, 9, committed)
    batch = encode_batch((marker,), CODEC, 7)
    assert read_header(batch).is_control
    assert decoded(batch) == [(marker, 0, 7)]


def test_other_control_records_say_nothing() -> None:
    leader_change = Record(timestamp=7, key=b"\x00\x00\x00\x02", value=b"")
    assert decoded(build_batch([leader_change], control=True)) == []


def test_batches_before_the_offset_are_left_out() -> None:
    content = encode_batch(("a",), CODEC, 7)
    content += build_batch([Record(timestamp=8, value=b"b")], base_offset=1)
    assert decoded(content, from_offset=1) == [("b", 1, 8)]


def test_a_record_that_cannot_be_read_is_named() -> None:
    batch = StoredBatch([Record(4, 0, None, b"good"), Record(5, 0, None, b"bad")])
    machine = Words(ManualTimers())
    with pytest.raises(ValueError, match="record at offset 5: not a word"):
        replay_plain(machine, batch.records, CODEC)
    assert machine.words == ["good"]
    with pytest.raises(ValueError, match="record at offset 5: not a word"):
        list(decode_batch(batch, CODEC))
