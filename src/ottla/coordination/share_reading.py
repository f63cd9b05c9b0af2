"""Log reads of share-partitions. They may wait for the disk, so they run in a thread.

With `cached_only` they run on the event loop: NotCached is raised instead of waiting, or of reading
so much that others would wait.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import iterate_headers
from ottla.records.record_keys import key_numbers
from ottla.replication.partition import Partition
from ottla.storage.errors import NotCached, StorageError

_FIRST_READ_BYTES: Final = 64 * 1024
_CACHED_READ_BYTES_MAX: Final = 512 * 1024  # Per read, except for a larger batch.
_SPARSE_READ_BYTES: Final = 64 * 1024  # If the next record is near; else one batch.
_NEAR: Final = 100


def read_batches(
    partition: Partition,
    offset: int,
    size_max: int,
    *,
    committed_only: bool = False,
    cached_only: bool = False,
) -> bytes:
    part = partition.read(offset, size_max, committed_only=committed_only, cached_only=cached_only)
    if part is None:
        return b""
    try:
        content = part.read_cached() if cached_only else part.read()
    except (OSError, StorageError) as error:
        raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
    if content is None:
        raise NotCached
    return content


class Enough(NamedTuple):
    """The limits of a read: this many records in this many bytes, or the maximum of bytes."""

    records: int
    bytes_min: int
    bytes_max: int

    def left(self, records_count: int, size: int) -> "Enough":
        return Enough(self.records - records_count, self.bytes_min - size, self.bytes_max - size)

    @property
    def is_met(self) -> bool:
        return self.bytes_max <= 0 or (self.records <= 0 and self.bytes_min <= 0)


def read_enough(
    partition: Partition,
    offset: int,
    wanted: Enough,
    *,
    committed_only: bool,
    cached_only: bool = False,
) -> tuple[bytes, Enough]:
    """Whole batches, and what remains of `wanted`; record sizes are unknown before the read."""
    parts: list[bytes] = []
    size_max = _FIRST_READ_BYTES
    while not wanted.is_met:
        size_max = min(size_max, wanted.bytes_max)
        if cached_only and size_max > _CACHED_READ_BYTES_MAX:
            raise NotCached
        content = read_batches(
            partition, offset, size_max, committed_only=committed_only, cached_only=cached_only
        )
        if not content or (parts and len(content) > wanted.bytes_max):
            break
        parts.append(content)
        first_offset = offset
        for _, header in iterate_headers(content):
            offset = header.next_offset
        wanted = wanted.left(offset - first_offset, len(content))
        size_max *= 2
    return parts[0] if len(parts) == 1 else b"".join(parts), wanted


def batches_with(
    partition: Partition, offsets: Sequence[int], *, committed_only: bool = False
) -> Iterator[tuple[int, bytes]]:
    """The batches with these ascending offsets, each with the first of its offsets."""
    index = 0
    while index < len(offsets):
        found = _some_with(partition, offsets, index, committed_only=committed_only)
        next_index = index + 1  # Retention may have been faster.
        for first, batch, last_offset in found:
            yield first, batch
            next_index = bisect_left(offsets, last_offset + 1, lo=next_index)
        index = next_index


def _some_with(
    partition: Partition, offsets: Sequence[int], index: int, *, committed_only: bool
) -> Iterator[tuple[int, bytes, int]]:
    """Some of the batches from the one at `offsets[index]` on, with the last offset of each."""
    offset = offsets[index]
    is_dense = index + 1 < len(offsets) and offsets[index + 1] - offset < _NEAR
    size_max = _SPARSE_READ_BYTES if is_dense else 1
    try:
        content = read_batches(partition, offset, size_max, committed_only=committed_only)
    except ApiError as error:
        if error.code is ErrorCode.offset_out_of_range:
            return
        raise
    for position, header in iterate_headers(content):
        index = bisect_left(offsets, header.base_offset)
        if index < len(offsets) and offsets[index] <= header.last_offset:
            batch = content[position : position + header.size]
            yield offsets[index], batch, header.last_offset


def key_numbers_at(partition: Partition, offsets: Sequence[int]) -> dict[int, int]:
    """For records at ascending offsets, plus others in the same batches."""
    numbers: dict[int, int] = {}
    for _, batch in batches_with(partition, offsets):
        numbers.update(key_numbers(batch, 0))
    return numbers
