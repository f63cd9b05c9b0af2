"""Compares the records of two replicas of a partition.

Replicas of a log have the same batches, byte for byte, up to the high watermark. Each replica
compacts at its own time: of compacted logs only the records that both have can be compared. The
caller determines where both begin and end.
"""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import NamedTuple

from ottla.records.batch import Buffer, iterate_headers
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records


class Batch(NamedTuple):
    """What replicas must agree on."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class Difference(NamedTuple):
    offset: int
    problem: str  # In the second log, compared to the first.


def batches_of(content: Buffer) -> Iterator[Batch]:
    for _, header in iterate_headers(content):
        yield Batch(
            header.base_offset, header.last_offset, header.partition_leader_epoch, header.crc
        )


def records_of(content: Buffer) -> Iterator[Record]:
    """All records except transaction markers."""
    for position, header in iterate_headers(content):
        if not header.is_control:
            yield from iterate_records(content, position)


def first_different_batch(reference: Iterable[Batch], other: Iterable[Batch]) -> Difference | None:
    for expected, found in zip_longest(reference, other):
        if expected != found:
            return _difference(expected, found)
    return None


def _difference(expected: Batch | None, found: Batch | None) -> Difference:
    if expected is None or (found is not None and found.base_offset < expected.base_offset):
        assert found is not None
        return Difference(found.base_offset, f"has offset {found.base_offset}, which is not there")
    offset = expected.base_offset
    if found is None or found.base_offset > offset:
        last_offset = expected.last_offset
        if found is not None:
            last_offset = found.base_offset - 1
        return Difference(offset, f"lacks offsets {offset} to {last_offset}")
    if found.last_offset != expected.last_offset:
        problem = f"has a batch to offset {found.last_offset}, not to {expected.last_offset}"
    elif found.leader_epoch != expected.leader_epoch:
        problem = f"has leader epoch {found.leader_epoch}, not {expected.leader_epoch}"
    else:
        problem = f"has other bytes at offsets {offset} to {expected.last_offset}"
    return Difference(offset, problem)


def first_different_record(
    reference: Iterable[Record], other: Iterable[Record]
) -> Difference | None:
    """Among the records that both have."""
    first, second = iter(reference), iter(other)
    expected, found = next(first, None), next(second, None)
    while expected is not None and found is not None:
        if expected.offset < found.offset:
            expected = next(first, None)
        elif found.offset < expected.offset:
            found = next(second, None)
        elif expected != found:
            return Difference(found.offset, f"has another record at offset {found.offset}")
        else:
            expected, found = next(first, None), next(second, None)
    return None
