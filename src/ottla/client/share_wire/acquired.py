"""The records that a ShareFetch response gives to its member, out of the batches it came in."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kio.schema.share_fetch.v2.response import AcquiredRecords

from ottla.records.batch import iterate_headers
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records


class Acquired(NamedTuple):
    partition: int
    delivery_count: int
    record: Record


class Gap(NamedTuple):
    """Offsets that were acquired and came without a record."""

    partition: int
    first_offset: int
    last_offset: int
    delivery_count: int
    is_known: bool  # There is none, as compaction leaves it; else the batches end before.


def acquired_records(
    partition: int, batches: bytes, ranges: Sequence[AcquiredRecords]
) -> tuple[list[Acquired], list[Gap]]:
    """The ranges ascend. RecordError if the batches are damaged."""
    found: list[Acquired] = []
    gaps: list[Gap] = []
    if not ranges:
        return found, gaps
    end = max((header.last_offset for _, header in iterate_headers(batches)), default=-1)
    records = _records(batches, ranges[0].first_offset, ranges[-1].last_offset)
    record = next(records, None)
    for first, last, count in ((r.first_offset, r.last_offset, r.delivery_count) for r in ranges):
        expected: int = first
        while record is not None and record.offset <= last:
            if record.offset >= first:
                if record.offset > expected:
                    gaps.append(Gap(partition, expected, record.offset - 1, count, True))
                found.append(Acquired(partition, count, record))
                expected = record.offset + 1
            record = next(records, None)
        if expected <= min(last, end):
            gaps.append(Gap(partition, expected, min(last, end), count, True))
        if max(expected, end + 1) <= last:
            gaps.append(Gap(partition, max(expected, end + 1), last, count, False))
    return found, gaps


def _records(batches: bytes, first_offset: int, last_offset: int) -> Iterator[Record]:
    for position, header in iterate_headers(batches):
        if header.is_control or header.last_offset < first_offset:
            continue
        if header.base_offset > last_offset:
            return
        yield from iterate_records(batches, position, from_offset=first_offset)
