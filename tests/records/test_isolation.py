from typing import Any

import pytest

from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker, build_marker
from ottla.records.errors import CorruptBatch
from ottla.records.isolation import AbortedTransaction, scan_batches

END = 1 << 40


def batch(base_offset: int, count: int = 2, producer_id: int = -1, **options: Any) -> bytes:
    transactional = producer_id >= 0
    return bytes(
        build_batch(
            [Record(timestamp=5, value=b"v") for _ in range(count)],
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=0 if transactional else -1,
            transactional=transactional,
            **options,
        )
    )


def marker(base_offset: int, producer_id: int, type_: ControlType) -> bytes:
    return bytes(
        build_marker(
            Marker(type_, 0),
            timestamp_ms=5,
            producer_id=producer_id,
            producer_epoch=0,
            base_offset=base_offset,
        )
    )


def seen(data: bytes, *aborted: AbortedTransaction, start: int = 0, end: int = END) -> list[int]:
    return [found.header.base_offset for found in scan_batches(data, start, end, aborted).batches]


def test_control_batches_are_never_seen() -> None:
    data = batch(0, producer_id=7) + marker(2, 7, ControlType.COMMIT) + batch(3)
    scan = scan_batches(data, 0, END)
    assert seen(data) == [0, 3]
    assert scan.next_offset == 5


def test_batches_outside_the_range_are_left_out() -> None:
    data = batch(0) + batch(2) + batch(4) + batch(6)
    assert seen(data, start=3, end=6) == [2, 4]
    assert scan_batches(data, 3, 6).next_offset == 6


def test_a_range_that_ends_inside_a_batch_reads_on_behind_it() -> None:
    assert scan_batches(batch(0, 10), 3, 5).next_offset == 10


def test_what_compaction_took_away_before_the_end_is_not_waited_for() -> None:
    data = batch(0) + batch(50)
    assert seen(data, end=20) == [0]
    assert scan_batches(data, 0, 20).next_offset == 20


def test_a_batch_without_records_is_passed() -> None:
    empty = bytes(build_batch([], base_offset=2, last_offset_delta=3))
    assert seen(batch(0) + empty) == [0]
    assert scan_batches(batch(0) + empty, 0, END).next_offset == 6


def test_a_batch_that_is_cut_short_is_left_for_the_next_fetch() -> None:
    data = batch(0) + batch(2)
    assert scan_batches(data[:-1], 0, END).next_offset == 2


def test_aborted_transactions_are_left_out_until_their_marker() -> None:
    data = (
        batch(0, producer_id=7)
        + batch(2, producer_id=8)
        + batch(4)
        + marker(6, 7, ControlType.ABORT)
        + batch(7, producer_id=7)
        + marker(9, 7, ControlType.COMMIT)
        + marker(10, 8, ControlType.COMMIT)
    )
    assert seen(data, AbortedTransaction(7, 0)) == [2, 4, 7]
    assert seen(data) == [0, 2, 4, 7]


def test_a_producer_that_aborts_twice() -> None:
    data = (
        batch(0, producer_id=7)
        + marker(2, 7, ControlType.ABORT)
        + batch(3, producer_id=7)
        + marker(5, 7, ControlType.COMMIT)
        + batch(6, producer_id=7)
        + marker(8, 7, ControlType.ABORT)
    )
    assert seen(data, AbortedTransaction(7, 6), AbortedTransaction(7, 0)) == [3]


def test_an_aborted_transaction_that_began_before_the_fetch() -> None:
    data = batch(10, producer_id=7) + marker(12, 7, ControlType.ABORT)
    assert seen(data, AbortedTransaction(7, 3), start=10) == []


def test_a_batch_that_is_not_transactional_is_seen_whoever_wrote_it() -> None:
    plain = bytes(build_batch([Record(timestamp=5)], producer_id=7, producer_epoch=0))
    assert seen(plain, AbortedTransaction(7, 0)) == [0]


@pytest.mark.parametrize("position", [30, 65])
def test_damage_is_refused(position: int) -> None:
    data = bytearray(batch(0))
    data[position] ^= 1
    with pytest.raises(CorruptBatch):
        scan_batches(data, 0, END)
