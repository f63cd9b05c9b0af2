"""Which records of a batch the member has acquired, and where the gaps are."""

from kio.schema.share_fetch.v2.response import AcquiredRecords
from kio.static.primitive import i16, i64

from ottla.client.share_wire.acquired import Gap, acquired_records
from ottla.records.builder import Record, build_batch


def acquired(first_offset: int, last_offset: int, delivery_count: int) -> AcquiredRecords:
    return AcquiredRecords(
        first_offset=i64(first_offset),
        last_offset=i64(last_offset),
        delivery_count=i16(delivery_count),
    )


def batch(*offsets: int) -> bytes:
    records = [Record(offset, 1_000, None, b"%d" % offset) for offset in offsets]
    return bytes(build_batch(records, base_offset=offsets[0]))


def offsets_of(batches: bytes, *ranges: AcquiredRecords) -> tuple[list[tuple[int, int]], list[Gap]]:
    found, gaps = acquired_records(3, batches, ranges)
    assert all(each.partition == 3 for each in found)
    return [(each.record.offset, each.delivery_count) for each in found], gaps


def test_only_what_was_acquired_of_a_batch() -> None:
    found = offsets_of(batch(*range(10)), acquired(2, 3, 1), acquired(7, 7, 2))
    assert found == ([(2, 1), (3, 1), (7, 2)], [])


def test_a_range_over_several_batches() -> None:
    found = offsets_of(batch(0, 1) + batch(2, 3) + batch(4, 5), acquired(1, 4, 1))
    assert found == ([(1, 1), (2, 1), (3, 1), (4, 1)], [])


def test_offsets_that_compaction_emptied_are_gaps() -> None:
    found, gaps = offsets_of(batch(0, 3, 4) + batch(8, 9), acquired(0, 9, 1))
    assert found == [(0, 1), (3, 1), (4, 1), (8, 1), (9, 1)]
    assert gaps == [Gap(3, 1, 2, 1, True), Gap(3, 5, 7, 1, True)]


def test_a_gap_at_the_end_of_a_batch() -> None:
    emptied = bytes(build_batch([Record(0, 1_000, None, b"0")], last_offset_delta=4))
    assert offsets_of(emptied, acquired(0, 4, 2)) == ([(0, 2)], [Gap(3, 1, 4, 2, True)])


def test_what_did_not_come_is_not_known_to_be_missing() -> None:
    assert offsets_of(batch(0, 1), acquired(1, 5, 4)) == ([(1, 4)], [Gap(3, 2, 5, 4, False)])
    assert offsets_of(b"", acquired(1, 2, 1)) == ([], [Gap(3, 1, 2, 1, False)])
    assert offsets_of(batch(0)) == ([], [])
